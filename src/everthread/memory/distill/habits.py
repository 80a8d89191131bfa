"""Habits and likings: the wordings that an adverb makes last, and those of a mere taste."""

from everthread.memory.distill.fragments import ADVERBS, IT
from everthread.memory.distill.manners import Rule

_HABITUALLY = (
    r"(?:usually|always|generally|typically|normally|never|rarely|seldom|hardly ever|mostly|almost always|"
    r"almost never|"
    r"almost exclusively|exclusively|ordinarily|tend to|in general|as a rule|routinely)"
)
_UNLASTING = (
    r"(?!(?:think|know|wonder|forget|forgot|want|wanted|need|get|look|try|end|find|feel|hear|see|say|said|ask|"
    r"have to|had|"
    r"knew|thought|heard|saw|been|got|was|were|did|meant|mean|hope|expect|guess|mind|wish|struggle|wanting|"
    r"looking|trying|\w+ed|is|are)\b)"
)
_ITS_OWN = r"(?! (?:the|my|any|some|a|an)\b| [\"_])"

HABITS: tuple[Rule, ...] = (
    # Habits: the adverb says that it lasts.
    ("stated", "habit", rf"(?:i|we) (?:{_HABITUALLY} (?:just |also |only )?){_UNLASTING}[a-z]+(?<!ing)\b{IT}"),
    ("stated", "habit", rf"{_HABITUALLY},? (?:i|we) (?:just |also |only )?{_UNLASTING}[a-z]+(?<!ing)\b{IT}"),
    (
        "stated",
        "habit",
        rf"i (?:only|exclusively) (?:ever )?(?:eat|drink|fly|travel|stay|book|use|take|buy|wear|shop|sit|choose|"
        rf"order|rent)\b{IT}|(?:i|we) (?:eat|drink|fly|travel|stay|book|use|take|buy|wear) (?:only|nothing but|"
        rf"exclusively)\b",
    ),
    (
        "stated",
        "habit",
        rf"i {_UNLASTING}(?!(?:lose|receive|have (?:\w+ )?(?:problems?|issues?|errors?|"
        rf"trouble))\b)[a-z]+\b{IT}.{{2,60}}?\b"
        r"(?:as a rule|by default|out of habit|for (?:religious|health|medical|ethical|safety) reasons|most (?:days|"
        r"nights|mornings|"
        r"evenings|weeks|weekends)|on (?:weekdays|weekends)|(?:every|each|once an?|twice an?) (?:single )?(?:day|"
        r"week|month|year|"
        r"summer|winter|spring|autumn|fall|morning|evening|night|weekend|(?:mon|tues|wednes|thurs|fri|satur|"
        r"sun)day))(?=[,.;!]|$| (?:and|but|so|for)\b)",
    ),
    # Likings: true, and easily said of something else than a lasting taste.
    (
        "taste",
        "preference",
        rf"(?:i|we) {ADVERBS}(?:like|love|enjoy|adore)\b{IT}{_ITS_OWN}(?! to (?:go|travel|leave|book|fly|stay|"
        rf"take|get|find|make|rent|buy|reserve|depart|watch|eat|dine|visit|attend|come|return)\b)",
    ),
    (
        "taste",
        "preference",
        rf"(?:i'm|i am) {ADVERBS}(?:a (?:big |huge |great )?fan of|fond of|(?:really |very )?into)\b{IT}",
    ),
)
"""Habits and likings by any wording; the first that fits counts."""
