"""Words that attacks are made of, to undo scrambled letters and missing spaces."""

import re
from functools import cache

from everthread.memory.rules import BUILT_IN

_WORD = re.compile(r"[a-z]{5,20}")
_LETTERS_OF_A_CORE_WORD = 6


def is_telling(low: str) -> bool:
    """Tell whether a text, lower case, has at least two longer words that attacks are made of."""
    return len(_core() & set(_WORD.findall(low))) >= 2


def unscrambled(low: str) -> str:
    """Put words of attacks right whose inner letters have changed places, as in `ignroe preivous instrucitons`."""
    return _WORD.sub(lambda word: _anagrams().get(_key(word.group()), word.group()), low)


def segmented(run: str) -> str:
    """Put the spaces back into words that were run together."""
    return " ".join(_blocks().sub(lambda word: f" {word.group()} ", run).split()) if len(run) >= 8 else run


def _key(word: str) -> tuple[str, str, str]:
    return word[0], word[-1], "".join(sorted(word))


@cache
def _vocabulary() -> frozenset[str]:
    return BUILT_IN.pack("attacks").words["attack_words"]


@cache
def _core() -> frozenset[str]:
    return frozenset(word for word in _vocabulary() if len(word) >= _LETTERS_OF_A_CORE_WORD)


@cache
def _anagrams() -> dict[tuple[str, str, str], str]:
    return {_key(word): word for word in _core()}


@cache
def _blocks() -> re.Pattern[str]:
    return re.compile("|".join(sorted(_vocabulary(), key=lambda word: (-len(word), word))))
