"""Fit the weights of `everthread.memory.guard.weighing` on sentences of our own, and write `weights.yaml`.

Logistic regression with an L1 penalty, by FISTA: few weights stay, and each of them can be read. Deterministic, and
nothing but the standard library. Run it after a change to the ideas or to the sentences:

    python scripts/weigh_guard.py tests/unit/memory/guard/sentences.jsonl
"""

import json
import math
import sys
from collections import Counter
from pathlib import Path

from everthread.memory.folding import folded
from everthread.memory.guard.weighing import WEIGHTS_FILE, features, sentences_of
from everthread.memory.guard.wording import is_harmless
from everthread.memory.rules import BUILT_IN

_PENALTY = 1.5
_STEPS = 1_500
_FEWEST = 3
"""Sentences that have a feature, at the least; what is rarer is chance."""
_FALSE_ALARMS = 0.01
"""Share of the harmless sentences that the threshold lets the weights alone refuse."""
_HEAD = """# How much ideas weigh, alone and in pairs; written by scripts/weigh_guard.py, not by hand.
threshold: {threshold}
bias: {bias}
weights:
{rows}
"""


def main(path: str) -> None:
    """Fit and write."""
    sentences = [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines() if line.strip()]
    rows = [(_features(row["text"]), row["label"] == "block", row["text"]) for row in sentences]
    counts = Counter(feature for found, _, _ in rows for feature in found)
    names = sorted(feature for feature, count in counts.items() if count >= _FEWEST)
    place = {feature: number for number, feature in enumerate(names)}
    matrix = [[place[feature] for feature in found if feature in place] for found, _, _ in rows]
    weights, bias = _fitted(matrix, [label for _, label, _ in rows], len(names))
    kept = {name: round(weight, 1) for name, weight in zip(names, weights, strict=True) if abs(weight) >= 0.05}
    bias = round(bias, 1)
    harmless = sorted(
        (bias + sum(kept.get(feature, 0.0) for feature in found))
        for found, label, text in rows
        if not label and not is_harmless(folded(text).low, BUILT_IN)
    )
    threshold = math.ceil(10 * harmless[-1 - int(_FALSE_ALARMS * sum(not label for _, label, _ in rows))]) / 10
    lines = "\n".join(f"  {name}: {weight}" for name, weight in sorted(kept.items()))
    WEIGHTS_FILE.write_text(_HEAD.format(threshold=threshold, bias=bias, rows=lines), encoding="utf-8")
    print(f"{len(rows):,} sentences, {len(kept):,} weights, threshold {threshold}")


def _features(text: str) -> frozenset[str]:
    return frozenset(name for sentence in sentences_of(folded(text).low) for name in features(sentence, BUILT_IN))


def _fitted(matrix: list[list[int]], labels: list[bool], size: int) -> tuple[list[float], float]:
    """Minimise the balanced log loss plus the penalty; returns weights and bias."""
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
        new = [_shrunk(ahead[place] - step * slope[place], step * _PENALTY) for place in range(size)]
        new_bias = bias_ahead - step * slope_of_bias
        following = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        pull = (momentum - 1) / following
        ahead = [value + pull * (value - old) for value, old in zip(new, weights, strict=True)]
        bias_ahead = new_bias + pull * (new_bias - bias)
        weights, bias, momentum = new, new_bias, following
    return weights, bias


def _largest(matrix: list[list[int]], size: int) -> float:
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


if __name__ == "__main__":
    main(sys.argv[1])
