"""Tell whether two notes say the same."""

import re
from collections.abc import Sequence
from itertools import groupby

from everthread.memory.consolidate.claims import cue
from everthread.memory.text.languages import is_foreign
from everthread.memory.text.wording import Wording, are_opposed, unframed, wording
from everthread.memory.text.words import same_start

Signed = tuple[str, bool]

_SHORTEST = 8
"""Letters of the shortest word that may be misspelt: `hotel` and `hostel` are two things."""

_MARK = re.compile(r"(?<![\w.,])(?<!\d\s)[−-](?=\d)|(?<=\w)[+#]+|(?:(?<=\b[A-Z])|(?<=\bAB))[−-](?!\w)")
"""What is part of a number or name though it is no letter: `-5 degrees`, `C++`, `C#`, blood type `O-`."""


def says_the_same(one: str, other: str) -> bool:
    """Tell whether two texts say the same: the same words, numbers and denials, misspellings aside.

    A text that says more is not the same: `aisle seats` is a rule where `aisle seats on long flights` is a case.
    """
    first, second = wording(one), wording(other)
    if not first.signed or not second.signed:
        return " ".join(one.lower().split()) == " ".join(other.lower().split())
    if first.numbers != second.numbers or are_opposed(first, second) or _marks(one) != _marks(other):
        return False
    if first.is_directed or second.is_directed or _is_directed_elsewhere(f"{unframed(one)} {unframed(other)}"):
        return _are_spellings(first, second, first.signed, second.signed)
    shared = set(first.signed) & set(second.signed)
    left = [word for word in dict.fromkeys(first.signed) if word not in shared]
    right = [word for word in dict.fromkeys(second.signed) if word not in shared]
    if not _are_spellings(first, second, sorted(left), sorted(right)) or _trade_places(first, second):
        return False
    return not _change_clauses(one, other, frozenset(word for word, _ in shared))


def _is_directed_elsewhere(text: str) -> bool:
    """Tell whether the order matters in a text of another language: `té al café` is not `café al té`."""
    return is_foreign(text) and cue("directed-elsewhere").search(text) is not None


def _marks(text: str) -> list[str]:
    return sorted(_MARK.findall(unframed(text).replace("−", "-")))


def _trade_places(first: Wording, second: Wording) -> bool:
    """Tell whether names stand in each other's place: `Tom owes Ann 50` is not `Ann owes Tom 50`."""
    names = first.names | second.names
    before, after = (
        [frozenset(run) for is_name, run in groupby((word for word, _ in text.signed), names.__contains__) if is_name]
        for text in (first, second)
    )
    return before != after and sorted(map(sorted, before)) == sorted(map(sorted, after))


def _change_clauses(one: str, other: str, shared: frozenset[str]) -> bool:
    """Tell whether words that both share stand in other clauses: `tea at noon, coffee at night`, or the reverse.

    A clause may take words from another, such as the verb of both, but not give one back.
    """
    before, after = (
        [words for clause in cue("clause-end").split(text) if (words := wording(clause).words & shared)]
        for text in (one, other)
    )
    return any(not any(clause <= rest or clause >= rest for rest in after) for clause in before)


def _are_spellings(first: Wording, second: Wording, left: Sequence[Signed], right: Sequence[Signed]) -> bool:
    """Tell whether two lists are the same word for word, misspellings aside."""
    names = first.names | second.names
    return len(left) == len(right) and all(
        sign == other_sign and _is_spelling(word, other, names)
        for (word, sign), (other, other_sign) in zip(left, right, strict=True)
    )


def _is_spelling(word: str, other: str, names: frozenset[str]) -> bool:
    if word == other:
        return True
    if not (word.isalpha() and other.isalpha()) or max(len(word), len(other)) < _SHORTEST or {word, other} & names:
        return False
    if not (word + other).isascii():
        return False  # no English: `végétarien` is no spelling of `végétalien`
    if word.endswith(other) or other.endswith(word):
        return False  # un-, non-, in-, dis-: the opposite
    start = same_start(word, other)
    end = same_start(word[start:][::-1], other[start:][::-1])
    left, right = word[start : len(word) - end], other[start : len(other) - end]
    # One letter added, left out or replaced, or two neighbours swapped.
    return max(len(left), len(right)) <= 1 or (len(left) == 2 and left == right[::-1])
