"""What a sentence says: its content words, and which of them a negation covers. No guess at meaning."""

import re
from dataclasses import dataclass
from functools import lru_cache

from everthread.memory.rules import BUILT_IN
from everthread.memory.text.dates import NUMBER_WORDS
from everthread.memory.text.words import stem

__all__ = ["SLACK", "Wording", "are_opposed", "change_words", "is_change", "root", "unframed", "wording"]

_PACK = BUILT_IN.pack("wording")
_TOKEN = re.compile(
    # Pronouns that people give as theirs, `they/them`, are one word; each alone says nothing.
    r"(?:she|he|they|xe|ze)/(?:her|him|them|they|xem|hir)(?:/[a-z]+)?|\d+(?:[.,:]\d+)*|[^\W\d_]+(?:'[^\W\d_]+)?|[,;.!?()]",
    re.IGNORECASE,
)
_ORDINAL = re.compile(r"(\d)(?:st|nd|rd|th)\b", re.IGNORECASE)
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}\b)")
_FRAME = re.compile(
    r"^\s*(?:the )?user (?:said|says|asked|wrote)(?: that)?\s*:?\s*|^\s*(?:note|memory)\s*:\s*", re.IGNORECASE
)
_SIGNS = {"$": " dollar ", "€": " euro ", "£": " pound ", "%": " percent ", "&": " and "}
_SAME = {"usd": "dollar", "eur": "euro", "gbp": "pound", "dontcare": "any", "centre": "center", "favourite": "favorite"}
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety hundred".split()  # noqa: SIM905
_NUMBERS = {word: str(number) for number, word in enumerate(NUMBER_WORDS)} | {
    word: str(10 * number) for number, word in enumerate(_TENS, start=2)
}
_PAIRS = (("in", "out"), ("up", "down"), ("on", "off"), ("before", "after"), ("over", "under"), ("from", "to"))
_OPPOSITE = {word: opposite for pair in _PAIRS for word, opposite in (pair, pair[::-1])}


def root(word: str) -> str:
    """Return the stem of a word, the same for two spellings and names of one thing."""
    word = word.removesuffix("'s")
    return stem(_SAME.get(word, word))


SLACK = frozenset(map(root, _PACK.words["slack"]))
"""Roots that add nothing to a value: `the window, please`, `200 is fine`, `two bags are enough`."""


@dataclass(frozen=True)
class Wording:
    """The content words of a text in order, each with whether it is denied, and its numbers."""

    signed: tuple[tuple[str, bool], ...]
    """Root and whether a negation covers it: `no red wine` denies `red` and `wine`."""
    numbers: tuple[str, ...]
    is_directed: bool
    """The order of the words matters, as in `from Rome to Paris`."""
    particles: frozenset[str]
    """Small words with an opposite, such as `in` and `out`: `check in` is not `check out`."""
    names: frozenset[str]
    """Roots of words written with a capital inside the text: no spelling of them is taken for another."""

    @property
    def words(self) -> frozenset[str]:
        """Roots of content words, whether denied or not."""
        return frozenset(word for word, _ in self.signed)

    @property
    def affirmed(self) -> frozenset[str]:
        """Roots of content words that are not denied."""
        return frozenset(word for word, is_denied in self.signed if not is_denied)

    @property
    def denied(self) -> frozenset[str]:
        """Roots of content words that are denied."""
        return frozenset(word for word, is_denied in self.signed if is_denied)


def unframed(text: str) -> str:
    """Return what a note says without its frame: `User said: "I like tea"` becomes `I like tea`."""
    return _FRAME.sub("", text).strip().strip("\"'“”‘’.!").strip()


def is_change(text: str) -> bool:
    """Tell whether the wording tells of a change, so that little else must agree for a new value to replace an old."""
    return _PACK.fits("change", text)


def change_words(text: str) -> frozenset[str]:
    """Return the roots of the words that tell of a change."""
    matches = (match for rule in _PACK.sections["change"] for match in rule.pattern.finditer(text))
    return frozenset(word for match in matches for word in wording(match.group()).words)


@lru_cache(maxsize=8192)
def wording(text: str) -> Wording:
    """Read a text."""
    plain = unframed(text).replace("’", "'").replace("-", " ")
    for sign, word in _SIGNS.items():
        plain = plain.replace(sign, word)
    tokens = _TOKEN.findall(_THOUSANDS.sub("", _ORDINAL.sub(r"\1 ", plain)))
    lowered = [token.lower() for token in tokens]
    signed: list[tuple[str, bool]] = []
    numbers: list[str] = []
    names: set[str] = set()
    is_denied = False
    for place, (token, word) in enumerate(zip(tokens, lowered, strict=True)):
        if word in _PACK.words["breaks"]:
            is_denied = False
        elif word in _PACK.words["negators"] or word.endswith("n't"):
            is_denied = True
        elif word == "longer" and is_denied:
            continue
        elif word[0].isdigit() or word in _NUMBERS:
            numbers.append(_NUMBERS.get(word, word))
            signed.append((numbers[-1], is_denied))
        elif word.partition("'")[0] not in _PACK.words["filler"] and word[0].isalpha():
            signed.append((root(word), is_denied))
            if place and token[0].isupper():
                names.add(root(word))
    return Wording(
        signed=tuple(signed),
        numbers=tuple(sorted(numbers)),
        is_directed=not _PACK.words["directed"].isdisjoint(lowered),
        particles=frozenset(lowered) & _OPPOSITE.keys(),
        names=frozenset(names),
    )


def are_opposed(one: Wording, other: Wording) -> bool:
    """Tell whether one text has a particle where the other one has its opposite, as in `check in` and `check out`."""
    mine, theirs = one.particles - other.particles, other.particles - one.particles
    return any(_OPPOSITE[word] in theirs for word in mine)
