"""What a sentence says: its content words, and which of them a negation covers. No guess at meaning."""

import re
from dataclasses import dataclass
from functools import lru_cache

from everthread.memory.rules import BUILT_IN
from everthread.memory.text.dates import NUMBER_WORDS
from everthread.memory.text.languages import UNSPACED, is_english
from everthread.memory.text.words import fold, stem

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
_ELISION = re.compile(r"(?<![\w'])([cdjlmnst]|qu)'(?=[^\W\d_]{2})", re.IGNORECASE)
"""`n'aime` says `ne aime`."""

_LONGEST_RUN = 80
"""Characters without a space or mark that are read; more are no clause."""

_PARTICLE = re.compile(r"(?<=[\u30a0-\u30ff\u3400-\u9fff])[はがをも]|[はがをも](?=[\u30a0-\u30ff\u3400-\u9fff])")
"""Small words of Japanese between nouns and verbs; inside of a word in hiragana they are letters."""

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


_ELSEWHERE, _BEHIND, _LONGER, _IN_TURKISH = (
    frozenset(map(fold, _PACK.words[name])) for name in ("negators_elsewhere", "negators_behind", "longer", "turkish")
)
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
    plain = _ELISION.sub(r"\1e ", unframed(text).replace("’", "'").replace("-", " "))
    plain = _PACK.pattern("no-denial").sub(r" \g<kept> ", plain)
    for sign, word in _SIGNS.items():
        plain = plain.replace(sign, word)
    tokens = _TOKEN.findall(_THOUSANDS.sub("", _ORDINAL.sub(r"\1 ", plain)))
    lowered = [token.lower() for token in tokens]
    is_elsewhere, is_turkish = not is_english(plain), not _IN_TURKISH.isdisjoint(map(fold, lowered))
    signed: list[tuple[str, bool]] = []
    numbers: list[str] = []
    names: set[str] = set()
    is_denied = False
    clause, last = 0, -1  # Where the clause begins, and where a negator that may deny what is ahead of it stands.
    for place, (token, word) in enumerate(zip(tokens, lowered, strict=True)):
        is_name = place > 0 and token[0].isupper()
        if word in _PACK.words["breaks"]:
            if last == len(signed):
                _deny(signed, clause)
            is_denied, clause, last = False, len(signed), -1
        elif word in _PACK.words["negators"] or word.endswith("n't"):
            is_denied = True
        elif is_elsewhere and not is_name and fold(word) in _ELSEWHERE:
            is_denied, last = True, len(signed)
        elif is_elsewhere and not is_name and fold(word) in _BEHIND:
            _deny(signed, clause)
            clause = len(signed)
        elif is_denied and fold(word) in _LONGER:
            continue
        elif word[0].isdigit() or word in _NUMBERS:
            numbers.append(_NUMBERS.get(word, word))
            signed.append((numbers[-1], is_denied))
        elif UNSPACED.search(word):
            signed += _unspaced(word)
        elif is_turkish and not is_name and (verb := _PACK.match("verb", fold(word))):
            signed.append((verb[1]["stem"], is_denied or verb[0].values["sign"] == "denied"))
            if signed[-1][1]:
                _deny(signed, clause)
                clause = len(signed)
        elif word.partition("'")[0] not in _PACK.words["filler"] and word[0].isalpha():
            signed.append((root(word), is_denied))
            if is_name:
                names.add(root(word))
    if last == len(signed):
        _deny(signed, clause)
    return Wording(
        signed=tuple(signed),
        numbers=tuple(sorted(numbers)),
        is_directed=not _PACK.words["directed"].isdisjoint(lowered),
        particles=frozenset(lowered) & _OPPOSITE.keys(),
        names=frozenset(names),
    )


def _deny(signed: list[tuple[str, bool]], start: int) -> None:
    """Mark the words of a clause as denied."""
    signed[start:] = [(word, True) for word, _ in signed[start:]]


def _unspaced(run: str) -> list[tuple[str, bool]]:
    """Return what a run of Japanese or Chinese says, and whether it denies that."""
    found = _PACK.match("unspaced", run) if len(run) <= _LONGEST_RUN else None
    if found is None:
        return [(run, False)]
    rule, match = found
    said = "".join(filter(None, match.groups()))
    return [(word, rule.values["sign"] == "denied") for word in _PARTICLE.sub(" ", said).split()]


def are_opposed(one: Wording, other: Wording) -> bool:
    """Tell whether one text has a particle where the other one has its opposite, as in `check in` and `check out`."""
    mine, theirs = one.particles - other.particles, other.particles - one.particles
    return any(_OPPOSITE[word] in theirs for word in mine)
