"""Pure ranking: BM25 on lists of item numbers, the same for every database."""

import math
from collections.abc import Mapping, Set

K1 = 1.2
B = 0.75
"""Of BM25, the values of SQLite's own `bm25()`."""

OFTEN_COUNTS = 2.5
"""What "twice or more" counts as; the index knows no more. From two to five times it is at most 17 % off."""

_NONE: frozenset[int] = frozenset()


def inverse_frequency(items: int, holders: float) -> float:
    """Return the weight of a word that `holders` of `items` hold; above zero even when all do."""
    return math.log(1 + (max(items, holders) - holders + 0.5) / (holders + 0.5))


def bm25(
    hits: Mapping[str, Set[int]],
    often: Mapping[str, Set[int]],
    weights: Mapping[str, float],
    lengths: Mapping[int, int],
    mean_length: float,
) -> dict[int, float]:
    """Score items by BM25, higher is better.

    Args:
        hits: by word, the items that hold it.
        often: by word, those that hold it twice or more.
        weights: by word, its inverse frequency.
        lengths: by item, its words; items that are not in it get no score.
        mean_length: words of an item on average.
    """
    every = lengths.keys()
    base = 0.0
    once: dict[int, float] = {}
    more: dict[int, float] = {}
    for word, items in hits.items():
        gain, repeated = weights[word] * (K1 + 1), often.get(word, _NONE)
        single = items - repeated if repeated else items
        for item in items & repeated:
            more[item] = more.get(item, 0.0) + gain
        if 2 * len(single) <= len(lengths):
            for item in single:
                once[item] = once.get(item, 0.0) + gain
        else:
            # Most items hold it: there are fewer to take it from than to give it to.
            base += gain
            for item in every - single:
                once[item] = once.get(item, 0.0) - gain
    # A count is one of two, so what remains is done once for an item and not for each of its words.
    scores: dict[int, float] = {}
    for item, length in lengths.items():
        norm = K1 * (1 - B + B * length / (mean_length or 1))
        scores[item] = (base + once.get(item, 0.0)) / (1 + norm)
        if item in more:
            scores[item] += more[item] * OFTEN_COUNTS / (OFTEN_COUNTS + norm)
    return scores
