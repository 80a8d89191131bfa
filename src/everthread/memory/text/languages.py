"""Which language a text is in: English, which the rules read, or another one."""

import re

from everthread.memory.rules import BUILT_IN

UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
"""A sign of Japanese or Chinese, which have no spaces and say in a sign what others say in a word."""

_WORD = re.compile(r"[^\W\d_]+")
_LATIN = re.compile(r"[A-Za-z]")
_LONGEST = 2_000
"""Characters that tell."""


def is_foreign(text: str) -> bool:
    """Tell whether a text is known to be in another language than English: by its small words, or by its script."""
    words = _words(text)
    if words and not any(map(_LATIN.search, words)):
        return True
    return _small(words, "others") > _small(words, "english")


def is_english(text: str) -> bool:
    """Tell whether a text is known to be in English; of a few words without small ones nobody knows."""
    words = _words(text)
    return _small(words, "english") > _small(words, "others")


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text[:_LONGEST])]


def _small(words: list[str], language: str) -> int:
    small = BUILT_IN.pack("wording").words[language]
    return sum(word in small for word in words)
