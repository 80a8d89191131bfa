"""Tell what the words of a text mean, by a lexicon of eight languages.

In `meanings.tsv` a line is a meaning: its name, and by language the words that have it, with `|` between them. `*`
stands for any ending; a word of several is a phrase. What a model learns of a meaning in one language, it knows in all,
also of a word that no sentence of ours has.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from everthread.memory.folding import folded

_READING = Lock()
_FILE = Path(__file__).with_name("meanings.tsv")
_WORD = re.compile(r"[\w']+")
_ELIDED = re.compile(r"\b(?:[cdjlmnst]|qu|jusqu|lorsqu|puisqu)'(?=\w)")
"""What French and some others write together with the word behind it."""
_KANA = re.compile(r"[\u3040-\u30ff]")
_HAN = re.compile(r"[\u4e00-\u9fff]")


class _Entry(NamedTuple):
    language: str
    words: tuple[str, ...]
    has_any_ending: bool
    """Of the last word."""
    meaning: str


@dataclass(frozen=True)
class _Lexicon:
    words: dict[str, list[_Entry]]
    """By the first word of each, or its beginning."""
    beginnings: dict[str, list[_Entry]]
    """Those of one word with any ending, by the beginning."""
    signs: dict[str, dict[str, list[str]]]
    """Meanings by what has them in the text, by language; Chinese and Japanese have no spaces between words."""
    longest: int
    """Signs of such an entry."""


@lru_cache(maxsize=512)
def meanings_in(text: str) -> tuple[str, ...]:
    """Return the names of the meanings of a sentence, in its order; of the language that most of its words are from."""
    low = folded(text).low
    language = "ja" if _KANA.search(low) else "zh" if _HAN.search(low) else None
    return tuple(_in_signs(low, language) if language else _in_words(_words(low)))


def _words(low: str) -> list[str]:
    return [word.strip("'") for word in _WORD.findall(_ELIDED.sub("", low))]


def _in_signs(text: str, language: str) -> Iterator[str]:
    lexicon = _lexicon()
    known = lexicon.signs[language]
    for start in range(len(text)):
        ends = range(min(start + lexicon.longest, len(text)), start, -1)
        yield from next((known[text[start:end]] for end in ends if text[start:end] in known), ())


def _in_words(words: list[str]) -> list[str]:
    found: dict[str, dict[int, list[_Entry]]] = defaultdict(dict)
    for place in range(len(words)):
        for entry in _entries(words, place):
            found[entry.language].setdefault(place, []).append(entry)
    shared = Counter(place for places in found.values() for place in places)

    def known(language: str) -> float:
        """Return how many letters of the text are of a language; what others have too says less."""
        return sum(len(entries[0].words[0]) / shared[place] for place, entries in found[language].items())

    language = max(found, key=known, default=None)
    return [entry.meaning for entries in found[language].values() for entry in entries] if language else []


def _entries(words: list[str], place: int) -> Iterator[_Entry]:
    """Yield what the lexicon has of a word and those behind it: by language phrases, and the longest beginning."""
    lexicon, word = _lexicon(), words[place]
    found = [entry for entry in lexicon.words.get(word, ()) if len(entry.words) == 1 or _is_at(entry, words, place)]
    yield from found
    is_told = {entry.language for entry in found if len(entry.words) == 1}
    for end in range(len(word) - 1, 0, -1):
        if known := lexicon.beginnings.get(word[:end]):
            found = [entry for entry in known if entry.language not in is_told]
            yield from found
            is_told.update(entry.language for entry in found)


def _is_at(entry: _Entry, words: list[str], place: int) -> bool:
    *first, last = entry.words
    there = words[place : place + len(entry.words)]
    if len(there) < len(entry.words) or there[:-1] != first:
        return False
    return there[-1].startswith(last) if entry.has_any_ending else there[-1] == last


def _lexicon() -> _Lexicon:
    with _READING:  # `cache` alone lets two threads read it at once
        return _read_lexicon()


@cache
def _read_lexicon() -> _Lexicon:
    head, *lines = _FILE.read_text(encoding="utf-8").splitlines()
    languages = head.split("\t")[1:]
    words: dict[str, list[_Entry]] = defaultdict(list)
    beginnings: dict[str, list[_Entry]] = defaultdict(list)
    signs: dict[str, dict[str, list[str]]] = {"ja": defaultdict(list), "zh": defaultdict(list)}
    for line in lines:
        meaning, *columns = line.split("\t")
        for language, column in zip(languages, columns, strict=True):
            for low in folded(column).low.split("|"):
                if language in signs:
                    signs[language][low].append(meaning)
                else:
                    # One word is most of them, and need not be looked for.
                    plain = low.removesuffix("*")
                    entry = _Entry(language, (plain,) if plain.isalpha() else tuple(_words(low)), plain != low, meaning)
                    words[entry.words[0]].append(entry)
                    if entry.has_any_ending and len(entry.words) == 1:
                        beginnings[entry.words[0]].append(entry)
    longest = max(len(written) for known in signs.values() for written in known)
    # No `defaultdict`, which would keep whatever is looked up.
    plain_signs = {language: dict(known) for language, known in signs.items()}
    return _Lexicon(dict(words), dict(beginnings), plain_signs, longest)
