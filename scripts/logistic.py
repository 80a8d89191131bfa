"""Logistic regression with an L1 penalty, by FISTA: few weights stay, and each of them can be read.

Deterministic, and nothing but the standard library.
"""

import math
from collections.abc import Sequence

__all__ = ["fitted"]

_STEPS = 1_500


def fitted(
    matrix: Sequence[Sequence[int]], labels: Sequence[bool], size: int, *, penalty: float
) -> tuple[list[float], float]:
    """Minimise the balanced log loss plus the penalty.

    Args:
        matrix: for each example the places of what it has, in [0, size).
        labels: which of them are positive.
        size: number of weights.
        penalty: of the sum of their sizes; the larger it is, the fewer stay.

    Returns:
        Weights and bias.
    """
    positive = sum(labels)
    worth = [len(labels) / (2 * (positive if label else len(labels) - positive)) for label in labels]
    step = 1 / (0.25 * max(worth) * _largest(matrix, size))
    weights, ahead, momentum = [0.0] * size, [0.0] * size, 1.0
    bias = bias_ahead = 0.0
    for _ in range(_STEPS):
        slope, slope_of_bias = [0.0] * size, 0.0
        for places, label, value in zip(matrix, labels, worth, strict=True):
            score = bias_ahead + sum(ahead[place] for place in places)
            error = value * (1 / (1 + math.exp(-max(min(score, 30), -30))) - label)
            slope_of_bias += error
            for place in places:
                slope[place] += error
        new = [_shrunk(ahead[place] - step * slope[place], step * penalty) for place in range(size)]
        new_bias = bias_ahead - step * slope_of_bias
        following = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        pull = (momentum - 1) / following
        ahead = [value + pull * (value - old) for value, old in zip(new, weights, strict=True)]
        bias_ahead = new_bias + pull * (new_bias - bias)
        weights, bias, momentum = new, new_bias, following
    return weights, bias


def _largest(matrix: Sequence[Sequence[int]], size: int) -> float:
    """Return the largest eigenvalue of the Gram matrix with the bias column, by power iteration."""
    vector, of_bias = [1.0] * size, 1.0
    largest = 1.0
    for _ in range(50):
        seen = [of_bias + sum(vector[place] for place in places) for places in matrix]
        back = [0.0] * size
        for places, value in zip(matrix, seen, strict=True):
            for place in places:
                back[place] += value
        largest = math.sqrt(sum(value * value for value in back) + sum(seen) ** 2)
        vector, of_bias = [value / largest for value in back], sum(seen) / largest
    return largest


def _shrunk(value: float, by: float) -> float:
    return math.copysign(max(abs(value) - by, 0.0), value)
