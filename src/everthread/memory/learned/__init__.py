"""What a text is, told by its wording: linear models that are fitted to thousands of sentences of our own.

A folded text is cut into words, neighbouring words, and pieces of words of up to five letters; Chinese and Japanese,
which put no spaces between words, are told by the pieces. Each feature has a place in a table of weights, by its
hash; the weights of a text are added up. There are no rules in it, so it also judges wordings that nobody wrote down,
in all languages that the sentences are in, and it cannot say why: what has to be certain is a rule's.

`scripts/fit_wordings.py` fits the tables and writes the files of this folder.
"""

import re
from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from math import sqrt
from pathlib import Path
from typing import Literal
from zlib import crc32

import yaml

from everthread.memory.folding import folded

__all__ = ["FOLDER", "PLACES", "Question", "features", "weight"]

Question = Literal["guard", "rule", "lasting"]
"""Does a note want to steer the assistant? Is a sentence a standing rule, is it a lasting statement of a user?"""

FOLDER = Path(__file__).parent

PLACES = 1 << 17
"""Of a table of weights; features that share a place share its weight."""

_LONGEST_PIECE = 5
_LONGEST_WORD = 30
"""Letters; what is longer is a code. Chinese and Japanese have no spaces."""
_WORD = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True)
class _Model:
    weights: "array[int]"
    unit: float
    """What 1 of the table is worth."""
    bias: float


def weight(text: str, of: Question) -> float:
    """Return what speaks for a text; from 0 on it is taken for what was asked.

    Args:
        text: one sentence, or a few; their number of features does not count, only which they are.
        of: the question.
    """
    model, found = _models()[of], features(text)
    return model.bias + model.unit * sum(model.weights[place] for place in found) / sqrt(len(found) or 1)


def features(text: str) -> frozenset[int]:
    """Return the places of what a text is made of; each weighs one by the square root of their number."""
    words = [word for word in _WORD.findall(folded(text).low) if len(word) <= _LONGEST_WORD or not word.isascii()]
    found = {f"={word}" for word in words}
    found.update(f"={one} {other}" for one, other in pairwise(words))
    for word in words:
        apart = f" {word} "
        for length in range(1, _LONGEST_PIECE + 1):
            found.update(apart[start : start + length] for start in range(len(apart) - length + 1))
    return frozenset(crc32(feature.encode()) % PLACES for feature in found)


@cache
def _models() -> Mapping[str, _Model]:
    numbers = yaml.safe_load((FOLDER / "models.yaml").read_text(encoding="utf-8"))
    return {
        of: _Model(array("b", (FOLDER / f"{of}.bin").read_bytes()), about["unit"], about["bias"])
        for of, about in numbers.items()
    }
