"""Text as words: folded, stemmed, and scripts without spaces as characters and pairs of them.

An index and its queries go through the same functions, so that they agree on what a word is. Change `VERSION`
with any change of the rules here or of the dates in `index_words`: an older index has to be built again.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence

from everthread.memory.text.dates import date_words, queried_date_words

VERSION = 2
"""Version of the words that `index_words` and `query_words` return."""

LONGEST_WORD = 64
"""Characters of a word that count; a longer one is cut, in the index and in the query alike."""

MOST_INDEXED = 1_000_000
"""Characters of a text whose words are indexed."""

MOST_WORDS = 128
"""Words of a query that count; of more, the longest are taken, since those are the rare ones."""

STOP_WORDS = frozenset(
    """
    a about again all also am an and any are as at be been being but by can could did didn do does doesn doing don
    done ever for from had has hasn have haven having he hello her hers hey hi him his how i if in into is isn it its
    just like may me might mine more most must my no nor not of off ok okay on once only or other our ours out over
    own please same shall she should so some such tell than thank thanks that the their theirs them then there these
    they this those through to too under until up us very was wasn we were weren what when where which while who whom
    whose why will with would yes you your yours
    """.split()  # noqa: SIM905
)
"""English words that hold no subject; dropping them costs nothing in other languages."""

_MOST_STEMS = 16_384
"""Words whose stems are kept, some 3 MB."""

_ASCII = {code: chr(code) if chr(code).isalnum() else " " for code in range(128)}
"""For `translate`, which takes a quarter of the time of a pattern: what is no part of a word becomes a space."""

_UNSPACED = re.compile(
    r"([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"
    r"\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+)"
)
"""A run of Thai, Lao, Burmese, Khmer, Chinese, Japanese or Korean."""

_MARKS = re.compile(
    r"[\u0300-\u036f\u0591-\u05bd\u064b-\u065f\u0670\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]"
)
_STROKES = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ħ": "h", "ı": "i", "ŧ": "t", "æ": "ae", "œ": "oe", "ð": "d", "þ": "th"}
)
_CLITIC = re.compile(r"(?<=\w)['’][^\W\d_]{1,2}\b")
"""What an apostrophe adds to a word: `Anna's`, `I'll`."""


class _Separators(dict[int, int]):
    """Maps every character that is no part of a word to a space; lone surrogates and NUL are such."""

    def __missing__(self, code: int) -> int:
        character = chr(code)
        is_part = character.isalnum() or unicodedata.category(character).startswith("M")
        return self.setdefault(code, code if is_part else 32)


_separators = _Separators()


def fold(text: str) -> str:
    """Return a text without case, diacritics and variants of width."""
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text).casefold())
    return unicodedata.normalize("NFKC", _MARKS.sub("", plain)).translate(_STROKES)


def words(text: str) -> list[str]:
    """Return the folded words of a text in order, without what an apostrophe adds to them."""
    return _cut(fold(_CLITIC.sub("", text)), pairs_only=True)


def content_words(text: str) -> list[str]:
    """Return the distinct folded words of a text that hold a subject, in order."""
    return list(dict.fromkeys(word for word in words(text) if word not in STOP_WORDS))


def index_words(texts: Iterable[str]) -> list[str]:
    """Return the words of texts to be indexed, in order and as often as they stand there; dates are words as well.

    Of a text over `MOST_INDEXED` characters both ends are read: a log of 50 MB is read back by its handle.
    """
    found: list[str] = []
    for text in texts:
        half = MOST_INDEXED // 2
        folded = fold(text if len(text) <= MOST_INDEXED else f"{text[:half]}\n{text[-half:]}")
        dates, rest = date_words(folded)
        found += dates
        found += map(_stems.__getitem__, _cut(rest, pairs_only=False))
    return found


def query_words(text: str) -> list[str]:
    """Return the distinct words of a query; any string is a query, and one without words gives none."""
    dates, rest = queried_date_words(fold(text))
    found = list(dict.fromkeys([*dates, *map(stem, _cut(rest, pairs_only=True))]))
    if len(found) > MOST_WORDS:
        found = sorted(found, key=lambda word: (-len(word), word))[:MOST_WORDS]
    return found


def same_start(one: Sequence[object], other: Sequence[object]) -> int:
    """Return how many letters two words begin with in common, or how many words two texts do."""
    shorter = min(len(one), len(other))
    return next((place for place in range(shorter) if one[place] != other[place]), shorter)


def stem(word: str) -> str:
    """Cut English plurals, -ed and -ing off a folded word; words of other scripts stay.

    Source: steps 1a to 1c of M. F. Porter, "An algorithm for suffix stripping", 1980; the later steps
    merge words that mean different things.
    """
    return _stems[word]


class _Stems(dict[str, str]):
    """Stems that were asked for; half the time of an `lru_cache`, and a text is full of words."""

    def __missing__(self, word: str) -> str:
        if len(self) >= _MOST_STEMS:
            self.clear()
        return self.setdefault(word, _stem(word))


_stems = _Stems()
_VOWEL = re.compile(r"[aeiouy]")
_SHORT = re.compile(r"^[^aeiouy]*[aeiouy][^aeiouywx]$")


def _cut(folded: str, *, pairs_only: bool) -> list[str]:
    if folded.isascii():
        return folded.translate(_ASCII).split()
    found: list[str] = []
    for chunk in folded.translate(_separators).split():
        if chunk.isascii():
            found.append(chunk)
            continue
        for place, run in enumerate(_UNSPACED.split(chunk)):
            if place % 2:
                found.extend(_pairs(run, pairs_only=pairs_only))
            elif run:
                found.append(run)
    return found


def _pairs(run: str, *, pairs_only: bool) -> list[str]:
    """Cut a run of a script without spaces into pairs; single characters let a query of one find it."""
    pairs = [run[i : i + 2] for i in range(len(run) - 1)]
    return pairs if pairs_only and pairs else pairs + list(run)


def _stem(word: str) -> str:
    if len(word) <= 3 or not (word.isascii() and word.isalpha()):
        return word[:LONGEST_WORD]
    if word.endswith(("sses", "shes", "ches", "xes", "zes")) or (word.endswith("ies") and len(word) > 4):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        root = word.removesuffix(ending)
        if root != word and not word.endswith("eed") and _VOWEL.search(root):
            word = _restored(root)
            break
    if word.endswith("y") and _VOWEL.search(word[:-1]):
        word = word[:-1] + "i"
    return word[:LONGEST_WORD]


def _restored(root: str) -> str:
    """Give a root back the letter that its ending had changed: `plann` is `plan`, `hop` was `hope`."""
    if root.endswith(("at", "bl", "iz")):
        return root + "e"
    if len(root) > 2 and root[-1] == root[-2] and root[-1] not in "aeioulsz":
        return root[:-1]
    return root + "e" if _SHORT.match(root) else root
