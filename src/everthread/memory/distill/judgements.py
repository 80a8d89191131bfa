"""Judgements whose subject is the thing, as in `chain hotels leave me cold`, and what suits the user."""

from everthread.memory.distill.fragments import ADVERBS, IT, KIND, THING
from everthread.memory.distill.manners import Rule

JUDGEMENTS: tuple[Rule, ...] = (
    (
        "stated",
        "preference",
        rf"{KIND} (?:\w+ly |always |usually |just |do |does )?(?:leaves? me cold|puts? me off|turns? me off|"
        rf"(?:stress|freak)(?:es)? me "
        r"out|drives? me (?:crazy|mad|nuts|up the wall)|wears? me out|bores? me|scares? me|terrif(?:y|ies) me|"
        r"bothers? me|appeals? to me|suits? me (?:best|better)|"
        r"(?:doesn't|don't|does not|do not|never) (?:appeal to|suit|interest|excite|work for) me)\b",
    ),
    (
        "stated",
        "preference",
        rf"{KIND} (?:\w+ly |always )?(?<!not )(?<!n't )(?<!nothing )(?:matters?|counts?|means?) (?!nothing|"
        rf"little)(?:\w+ ){{0,3}}to me\b|{KIND} (?:is|are) (?!not|never|no longer)(?:\w+ ){{0,3}}"
        r"(?:important|essential|crucial|vital|a must|a priority|a deal-?breaker|a no-?go|out of the question|"
        r"non-?negotiable|sacred|torture|a nightmare) "
        r"(?:to|for|with) me\b",
    ),
    (
        "stated",
        "preference",
        rf"{KIND} (?:always |usually )?(?:beats?|trumps?) .{{2,40}}\b(?:for me|in my book|any ?(?:day|time)|"
        rf"every (?:single )?time)\b",
    ),
    (
        "stated",
        "preference",
        rf"{KIND} and (?:i|me) (?:just |really )?(?:don't|do not|never|aren't|are not) (?:get (?:along|on)|mix|"
        rf"agree|friends|a good \w+)\b",
    ),
    (
        "stated",
        "preference",
        r"(?:i|we) (?:\w+ly |always )?(?:swear by|stick (?:to|with)|lean towards?|make (?:it )?a (?:point|rule|"
        r"habit)\b|"
        rf"am in the habit of|draw the line at|won't hear of|live on|thrive on|struggle with)\b{IT}(?! (?:the|my)\b)",
    ),
    (
        "stated",
        "preference",
        r"(?:e-?mail|phone|text|texting|sms|chat|teams|slack|whatsapp|a (?:call|text)|calling|[\w-]+) (?:is|"
        r"'s) (?:always |usually )?"
        r"(?:by far )?(?:the|my) (?:best|easiest|fastest|quickest|only|preferred|surest) (?:way|channel) (?:to|"
        r"of) (?:reach|contact|"
        r"get (?:hold of|to)|reaching|contacting|getting hold of) me\b|i'm (?:best|easiest|easier) (?:reached|"
        r"to reach) \w+",
    ),
    (
        "stated",
        "preference",
        r"the (?:only|one) [\w -]{2,30}? (?:i|we) (?:\w+ly )?(?:trust|use|eat|drink|fly|enjoy|tolerate|accept|avoid|"
        r"hate|can (?:eat|stand|drink|use|take)|can't \w+|won't \w+) (?:is|are)\b"
        rf"|{THING} (?:is|are) the (?:one|only) thing (?:that )?i (?:have to|must|need to|can't|cannot|won't|never|"
        rf"always|really|hate|"
        r"avoid)\b",
    ),
    (
        "stated",
        "preference",
        rf"(?:i'm|i am) {ADVERBS}(?:hopeless|useless|bad|terrible|awful|no good|clumsy|slow) (?:with|at|"
        rf"on) {KIND}(?=[,.;!]|$| and\b)"
        r"|(?:i|we) (?:sleep|see|hear|walk|work|travel|eat|digest|read|type|concentrate|function) (?:very |really |"
        r"much )?(?:badly|poorly|best|"
        r"better|worst|slowly|lightly|light|little)\b|i (?:do|get) my best (?:work|sleep|ideas)\b|(?:i'm|"
        r"i am) at my best\b",
    ),
    (
        "stated",
        "preference",
        r"(?:you can |please )?(?:always |best |only )?(?:reach|contact|message|e-?mail|text) me (?:best |only |"
        r"always )?(?:on|by|via|"
        r"through|over) (?!(?:mon|tues|wednes|thurs|fri|satur|sun)day|my\b|the\b|this\b|that\b)[a-z-]+",
    ),
)
"""Judgements by any wording; the first that fits counts."""
