"""Tell what the words of a text mean, by a lexicon of eight languages.

In `meanings.tsv` a line is a meaning: its name, and by language the words that have it, with `|` between them. `*`
stands for any ending; a word of several is a phrase. What a model learns of a meaning in one language, it knows in all,
also of a word that no sentence of ours has.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from everthread.memory.folding import folded

__all__ = ["meanings_in"]

_FILE = Path(__file__).with_name("meanings.tsv")
_WORD = re.compile(r"[\w']+")
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
    """By the first word of each entry, or the beginning of it."""
    signs: dict[str, dict[str, list[str]]]
    """Meanings by what has them in the text, by language; Chinese and Japanese have no spaces between words."""
    longest: int
    """Signs of such an entry."""


def meanings_in(text: str) -> list[str]:
    """Return the names of the meanings of a sentence, in its order; of the language that most of its words are from."""
    low = folded(text).low
    language = "ja" if _KANA.search(low) else "zh" if _HAN.search(low) else None
    return list(_in_signs(low, language) if language else _in_words(_WORD.findall(low)))


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
    lexicon, word = _lexicon().words, words[place]
    is_told: set[str] = set()
    for end in range(len(word), 0, -1):
        here = [entry for entry in lexicon.get(word[:end], ()) if _is_at(entry, words, place)]
        yield from (entry for entry in here if len(entry.words) > 1 or entry.language not in is_told)
        is_told.update(entry.language for entry in here if len(entry.words) == 1)


def _is_at(entry: _Entry, words: list[str], place: int) -> bool:
    there = words[place : place + len(entry.words)]
    *first, last = entry.words
    return (
        len(there) == len(entry.words)
        and there[:-1] == first
        and (there[-1].startswith(last) if entry.has_any_ending else there[-1] == last)
    )


@cache
def _lexicon() -> _Lexicon:
    head, *lines = _FILE.read_text(encoding="utf-8").splitlines()
    languages = head.split("\t")[1:]
    words: dict[str, list[_Entry]] = defaultdict(list)
    signs: dict[str, dict[str, list[str]]] = {"ja": defaultdict(list), "zh": defaultdict(list)}
    for line in lines:
        meaning, *columns = line.split("\t")
        for language, column in zip(languages, columns, strict=True):
            for low in folded(column).low.split("|"):
                if language in signs:
                    signs[language][low].append(meaning)
                else:
                    entry = _Entry(language, tuple(_WORD.findall(low)), low.endswith("*"), meaning)
                    words[entry.words[0]].append(entry)
    longest = max(len(written) for known in signs.values() for written in known)
    return _Lexicon(dict(words), {language: dict(known) for language, known in signs.items()}, longest)
