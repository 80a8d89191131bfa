"""Text as words: folded, stemmed, and scripts without spaces as characters and pairs of them.

The index and the query go through the same functions, so what they call a word always agrees. Change
`VERSION` with any change of these rules: indexes of an older version are then built again when opened.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable

from everthread.storage.lexical.dates import MONTHS, asked_dates, date_words

VERSION = 1
"""Version of the rules in this file and in `dates`."""

LONGEST_WORD = 64
"""Characters of a word that count; a longer one is cut, in the index and in the query alike."""

MOST_WORDS = 128
"""Words of a query that count; of more, the longest are taken, since those are the rare ones."""

_MOST_STEMS = 16_384
"""Words whose stems are remembered, some 3 MB."""

_ASCII = {code: chr(code) if chr(code).isalnum() else " " for code in range(128)}
"""For `translate`: what is no part of a word becomes a space. A quarter of the time of a pattern."""

_UNSPACED = re.compile(
    r"([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"
    r"\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+)"
)
_MARKS = re.compile(
    r"[\u0300-\u036f\u0591-\u05bd\u064b-\u065f\u0670\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]"
)
_STROKES = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ħ": "h", "ı": "i", "ŧ": "t", "æ": "ae", "œ": "oe", "ð": "d", "þ": "th"}
)


class _Separators(dict[int, int]):
    """Maps every character that is no part of a word to a space; lone surrogates and NUL are such."""

    def __missing__(self, code: int) -> int:
        character = chr(code)
        is_part = character.isalnum() or unicodedata.category(character).startswith("M")
        return self.setdefault(code, code if is_part else 32)


_separators = _Separators()


def document_words(texts: Iterable[str]) -> dict[str, int]:
    """Count the words of texts to be indexed."""
    words: list[str] = []
    for text in texts:
        folded = fold(text)
        cut = _cut(folded, pairs_only=False)
        dates, rest = date_words(folded, has_month=not (folded.isascii() and MONTHS.isdisjoint(cut)))
        words += dates
        words += map(_stems.__getitem__, cut if rest == folded else _cut(rest, pairs_only=False))
    return Counter(words)


def query_words(text: str) -> list[str]:
    """Return the distinct words of a query; any string is a query, and one without words gives none."""
    dates, rest = asked_dates(fold(text))
    words = list(dict.fromkeys([*dates, *map(stem, _cut(rest, pairs_only=True))]))
    if len(words) > MOST_WORDS:
        words = sorted(words, key=lambda word: (-len(word), word))[:MOST_WORDS]
    return words


def fold(text: str) -> str:
    """Return a text without case, diacritics and variants of width."""
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text).casefold())
    return unicodedata.normalize("NFKC", _MARKS.sub("", plain)).translate(_STROKES)


def _cut(folded: str, *, pairs_only: bool) -> list[str]:
    if folded.isascii():
        return folded.translate(_ASCII).split()
    words: list[str] = []
    for chunk in folded.translate(_separators).split():
        if chunk.isascii():
            words.append(chunk)
            continue
        for place, run in enumerate(_UNSPACED.split(chunk)):
            if place % 2:
                words.extend(_pairs(run, pairs_only=pairs_only))
            elif run:
                words.append(run)
    return words


def _pairs(run: str, *, pairs_only: bool) -> list[str]:
    """Cut a run of a script without spaces into pairs; single characters let a query of one find it."""
    pairs = [run[i : i + 2] for i in range(len(run) - 1)]
    return pairs if pairs_only and pairs else pairs + list(run)


def stem(word: str) -> str:
    """Cut English plurals, -ed and -ing off a lower-case ASCII word.

    Source: steps 1a to 1c of M. F. Porter, "An algorithm for suffix stripping", 1980; the later steps
    merge words that mean different things.
    """
    if len(word) <= 3 or not (word.isascii() and word.isalpha()):
        return word[:LONGEST_WORD]
    if word.endswith(("sses", "shes", "ches", "xes", "zes")) or (word.endswith("ies") and len(word) > 4):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        if word.endswith(ending) and not word.endswith("eed") and _VOWEL.search(word[: -len(ending)]):
            word = _mend(word[: -len(ending)])
            break
    if word.endswith("y") and _VOWEL.search(word[:-1]):
        word = word[:-1] + "i"
    return word[:LONGEST_WORD]


class _Stems(dict[str, str]):
    """Stems that were asked for; half the time of an `lru_cache`, and a text is full of words."""

    def __missing__(self, word: str) -> str:
        if len(self) >= _MOST_STEMS:
            self.clear()
        return self.setdefault(word, stem(word))


_stems = _Stems()

_VOWEL = re.compile(r"[aeiouy]")
_SHORT = re.compile(r"^[^aeiouy]*[aeiouy][^aeiouywx]$")


def _mend(root: str) -> str:
    """Give a root back the letter that its ending had changed: `plann` is `plan`, `hop` was `hope`."""
    if root.endswith(("at", "bl", "iz")):
        return root + "e"
    if len(root) > 2 and root[-1] == root[-2] and root[-1] not in "aeioulsz":
        return root[:-1]
    return root + "e" if _SHORT.match(root) else root
