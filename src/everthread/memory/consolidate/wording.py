"""What a note says, as signed words: enough to compare notes, and nothing that guesses at meaning."""

import re
from dataclasses import dataclass
from functools import lru_cache

__all__ = ["CHANGE", "SLACK", "Wording", "are_opposed", "said", "stem", "wording"]

_TOKEN = re.compile(r"\d+(?:[.,:]\d+)*|[^\W\d_]+(?:'[^\W\d_]+)?|[,;.!?()]")
_ORDINAL = re.compile(r"(\d)(?:st|nd|rd|th)\b", re.IGNORECASE)
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}\b)")
_SAID = re.compile(
    r"^\s*(?:the )?user (?:said|says|asked|wrote)(?: that)?\s*:?\s*|^\s*(?:note|memory)\s*:\s*", re.IGNORECASE
)

CHANGE = re.compile(
    r"\b(?:now(?:adays)?|no longer|not any ?more|instead|from now on|these days|as of|changed?|switch(?:ed|es)?"
    r"|adjust(?:ed|s)?|rescheduled?|postponed?|extended?|increased?|raised?|reduced?|lowered|revised?|updated?"
    r"|upgraded?|improved?|moved|replaced?|correction|actually)\b",
    re.IGNORECASE,
)
"""Wording that tells of a change, so that little else must agree for a new value to replace an old one."""

SLACK = frozenset(
    """again all best better come default enough fine good max maximum more ok okay one only plenty price rule thing
    total trip usual whole""".split()  # noqa: SIM905
)
"""Content words that add nothing to a value: `the window, please`, `200 is fine`, `two bags are enough`."""

_FILLER = frozenset(
    """a an the is are am was were be been being i me my mine we us our you your he him his she her they them their
    it its user users this that these those there here of on in at by to for from with as and or so if then when
    while during about into up down out prefer prefers preferred prefer like likes liked want wants wanted love
    loves enjoy enjoys would will shall should can could may might do does did done has have had having usually
    generally always often really just also very please remember now currently actually instead anymore ever any
    some s re ve ll m d t said says asked get gets getting going go gonna kinda let lets rather than""".split()  # noqa: SIM905
)
_NEGATORS = frozenset(
    """not no never none nothing neither nor without cannot non avoid avoids avoided avoiding hate hates hated dislike
    dislikes disliked refuse refuses refused except""".split()  # noqa: SIM905
)
_BREAKS = frozenset({",", ";", ".", "!", "?", "(", ")", "but", "though", "however", "because", "although"})
_DIRECTED = frozenset({"from", "to", "over", "than", "before", "after", "rather", "instead", "unless", "until", "if"})
_PAIRS = (("in", "out"), ("up", "down"), ("on", "off"), ("before", "after"), ("over", "under"), ("from", "to"))
_OPPOSITE = {word: opposite for pair in _PAIRS for word, opposite in (pair, pair[::-1])}
_NUMBERS = {
    word: str(number)
    for number, word in enumerate("zero one two three four five six seven eight nine ten eleven twelve".split())  # noqa: SIM905
} | {"twenty": "20", "thirty": "30", "forty": "40", "fifty": "50", "hundred": "100"}
_SIGNS = {"$": " dollar ", "€": " euro ", "£": " pound ", "%": " percent ", "&": " and "}
_SAME = {"usd": "dollar", "eur": "euro", "gbp": "pound", "dontcare": "any", "centre": "center", "favourite": "favorite"}


@dataclass(frozen=True)
class Wording:
    """The content words of a text in order, each with whether it is denied, and its numbers."""

    signed: tuple[tuple[str, bool], ...]
    """Word and whether a negation covers it: `no red wine` denies `red` and `wine`."""
    numbers: tuple[str, ...]
    is_directed: bool
    """The order of the words matters, as in `from Rome to Paris`."""
    particles: frozenset[str]
    """Small words with an opposite, such as `in` and `out`: `check in` is not `check out`."""
    names: frozenset[str]
    """Words written with a capital inside the text: no spelling of them is taken for another."""

    @property
    def words(self) -> frozenset[str]:
        """Content words, whether denied or not."""
        return frozenset(word for word, _ in self.signed)

    @property
    def affirmed(self) -> frozenset[str]:
        """Content words that are not denied."""
        return frozenset(word for word, is_denied in self.signed if not is_denied)

    @property
    def denied(self) -> frozenset[str]:
        """Content words that are denied."""
        return frozenset(word for word, is_denied in self.signed if is_denied)


def said(text: str) -> str:
    """Return what a note says without its frame: `User said: "I like tea"` becomes `I like tea`."""
    return _SAID.sub("", text).strip().strip("\"'“”‘’.!").strip()


@lru_cache(maxsize=8192)
def wording(text: str) -> Wording:
    """Read a text."""
    plain = said(text).replace("’", "'").replace("-", " ")
    for sign, word in _SIGNS.items():
        plain = plain.replace(sign, word)
    plain = _THOUSANDS.sub("", _ORDINAL.sub(r"\1 ", plain))
    tokens = _TOKEN.findall(plain)
    signed: list[tuple[str, bool]] = []
    numbers: list[str] = []
    names: set[str] = set()
    is_denied = False
    for place, token in enumerate(tokens):
        word = token.lower()
        if word in _BREAKS:
            is_denied = False
        elif word in _NEGATORS or word.endswith("n't"):
            is_denied = True
        elif word == "longer" and is_denied:
            continue
        elif word[0].isdigit() or word in _NUMBERS:
            number = _NUMBERS.get(word, word)
            numbers.append(number)
            signed.append((number, is_denied))
        elif word.partition("'")[0] not in _FILLER and word[0].isalpha():
            found = stem(word)
            signed.append((found, is_denied))
            if place and token[0].isupper():
                names.add(found)
    is_directed = any(token.lower() in _DIRECTED for token in tokens)
    particles = frozenset(token.lower() for token in tokens) & _OPPOSITE.keys()
    return Wording(tuple(signed), tuple(sorted(numbers)), is_directed, particles, frozenset(names))


def are_opposed(one: Wording, other: Wording) -> bool:
    """Tell whether one text has a particle where the other one has its opposite, as in `check in` and `check out`."""
    mine, theirs = one.particles - other.particles, other.particles - one.particles
    return any(_OPPOSITE[word] in theirs for word in mine)


def stem(word: str) -> str:
    """Return a word without its plural or its possessive ending."""
    word = _SAME.get(word, word).removesuffix("'s")
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes")):
        return word[:-2]
    if word.endswith("s") and len(word) > 3 and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word
