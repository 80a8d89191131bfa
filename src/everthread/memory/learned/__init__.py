"""What a text is, told by its wording: linear models that are fitted to thousands of sentences of our own.

A folded text is cut into words, neighbouring words, and pieces of words of up to five letters; Chinese and Japanese,
which put no spaces between words, are told by the pieces. Notes for the guard and rules are told by what their words
mean as well, by `meanings.tsv`: each meaning alone, and with the next two. Each feature has a place in a table of
weights, by its hash; the weights of a text are added up. There are no rules in it, so it also judges wordings that
nobody wrote down, in all languages that the sentences are in, and it cannot say why: what has to be certain is a
rule's. Whether a note holds a value is told by the shapes of its codes, too.

`scripts/fit_wordings.py` fits the tables and writes the files of this folder.
"""

import re
from array import array
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from math import sqrt
from pathlib import Path
from typing import Literal
from zlib import crc32

import yaml

from everthread.memory.folding import folded
from everthread.memory.learned.meanings import meanings_in
from everthread.memory.learned.shapes import without_codes

Question = Literal["guard", "value", "rule", "lasting", "own"]
"""What a model answers.

- `guard`: does a note want to steer the assistant?
- `value`: does a note hold a value that names a person or opens a door?
- `rule`: is a sentence a standing rule?
- `lasting`: is a sentence a lasting statement of a user?
- `own`: does a user say a sentence themselves, rather than paste it?
"""

FOLDER = Path(__file__).parent

PLACES: Mapping[Question, int] = {
    "guard": 1 << 19,
    "value": 1 << 18,
    "rule": 1 << 18,
    "lasting": 1 << 18,
    "own": 1 << 17,
}
"""Of each table of weights, by how much it is fitted to; features that share a place share its weight."""

_BY_MEANING: Set[Question] = frozenset({"guard", "value", "rule"})

_NUMBERS_ARE_ONE: Set[Question] = frozenset({"guard", "rule", "lasting"})
"""Which number it is tells nothing of them; of a value its digits tell, and of whose words they are, dates."""

EAST_ASIAN = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")
"""Signs of Chinese and Japanese."""

_LONGEST_PIECE = 5
_LONGEST_WORD = 30
"""Letters; what is longer is a code. Chinese and Japanese have no spaces."""
_WORD = re.compile(r"\w+|[^\w\s]")
_NUMBER = re.compile(r"\d+")
_MAIL = re.compile(r"[\w.+-]{1,64}@[\w.-]{1,64}")


@dataclass(frozen=True)
class _Model:
    weights: "array[int]"
    unit: float
    """What 1 of the table is worth; the tables hold whole numbers."""
    bias: float
    """Added to every text; it sets the line, which is 0."""
    apart: float
    """Added for texts with a line of their own (`is_apart`)."""


def weight(text: str, of: Question) -> float:
    """Return what speaks for a text; from 0 on it is taken for what was asked.

    Args:
        text: one sentence, or a few; their number of features does not count, only which they are.
        of: the question.
    """
    parts = feature_sets(text, of)
    return weight_of(parts, of) + (_models()[of].apart if is_apart(text, parts, of) else 0.0)


def is_apart(text: str, parts: Sequence[Set[int]], of: Question) -> bool:
    """Tell whether a text has other features than most, and so a line of its own.

    Of values it is one without codes; else one in Chinese or Japanese, which have no spaces between words.

    Args:
        text: one sentence, or a few.
        parts: its features, from `feature_sets`.
        of: the question.
    """
    return not parts[-1] if of == "value" else EAST_ASIAN.search(text) is not None


def feature_sets(text: str, of: Question) -> list[frozenset[int]]:
    """Return the features of a text as sets of places: of its wording and, for some questions, of what its words mean.

    For values a last set has the shapes of its codes. Each set weighs as much as another, however many features it has.
    """
    if of not in _BY_MEANING:
        return [features(text, of)]
    text, shapes = without_codes(text) if of == "value" else (text, [])
    meanings = meanings_in(text)
    named = [f"meaning {one}" for one in meanings]
    named += [f"meanings {one} {other}" for one, other in pairwise(meanings)]
    named += [f"meanings {one} … {other}" for one, other in zip(meanings, meanings[2:], strict=False)]
    parts = [features(text, of), places_of(named, of)]
    return [*parts, places_of(shapes, of)] if of == "value" else parts


def weight_of(parts: Iterable[Set[int]], of: Question) -> float:
    """Return what speaks for something that is told by several texts, each given as its `features`.

    Args:
        parts: what each is made of; a part with more features weighs no more than the others.
        of: the question.
    """
    model = _models()[of]
    return model.bias + model.unit * sum(
        sum(model.weights[place] for place in part) / sqrt(len(part) or 1) for part in parts
    )


def features(text: str, of: Question, about: str = "", *, has_pieces: bool = True) -> frozenset[int]:
    """Return the places of what a text is made of; each counts one by the square root of their number.

    Args:
        text: one sentence, or a few. A mail address tells whose words they are, and nothing else.
        of: the question, in whose table they are looked up.
        about: what the text is, where there are several; the same word of another text is another feature.
        has_pieces: with the pieces of words.
    """
    told = text if of == "own" else _MAIL.sub(" ", text)
    if of in _NUMBERS_ARE_ONE:
        told = _NUMBER.sub("0", told)
    words = [word for word in _WORD.findall(folded(told).low) if len(word) <= _LONGEST_WORD or not word.isascii()]
    found = {f"={word}" for word in words}
    found.update(f"={one} {other}" for one, other in pairwise(words))
    for word in words if has_pieces else ():
        apart = f" {word} "
        for length in range(1, _LONGEST_PIECE + 1):
            found.update(apart[start : start + length] for start in range(len(apart) - length + 1))
    return places_of((about + feature for feature in found), of)


def places_of(found: Iterable[str], of: Question) -> frozenset[int]:
    """Return the places of features in the table of a question, by their names."""
    places = PLACES[of]
    return frozenset(crc32(feature.encode("utf-8", "surrogatepass")) % places for feature in found)


@cache
def _models() -> Mapping[str, _Model]:
    numbers = yaml.safe_load((FOLDER / "models.yaml").read_text(encoding="utf-8"))
    return {of: _Model(array("b", (FOLDER / f"{of}.bin").read_bytes()), **about) for of, about in numbers.items()}
