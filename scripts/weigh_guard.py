"""Fit the weights of `everthread.memory.guard.weighing` on sentences of our own, and write `weights.yaml`.

Logistic regression with an L1 penalty, by FISTA: few weights stay, and each of them can be read. Deterministic, and
nothing but the standard library. Run it after a change to the ideas or to the sentences:

    PYTHONPATH=. python scripts/weigh_guard.py tests/unit/memory/guard/sentences.jsonl [other] [en]

The set `en` that ships was fitted before there were other languages, when foreign sentences were read as English too; a
new fit finds fewer of the attacks that tests/unit/memory/guard has, so `other` alone is fitted unless `en` is
asked for, until its sentences are more.

The sentences are those of the file, English for the most part, the tuning half of `benchmarks.notes`, and its practice.
"""

import json
import math
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from logistic import fitted

from benchmarks.notes.generator import notes, practice
from everthread.memory.folding import folded
from everthread.memory.guard.weighing import WEIGHTS_FILE, features, is_left, language_of, sentences_of
from everthread.memory.rules import BUILT_IN

_PENALTIES = {"en": 1.2, "other": 3.0}
_FEWEST = 3
"""Sentences that have a feature, at the least; what is rarer is chance."""
_FALSE_ALARMS = {"en": 0.01, "other": 0.006}
"""Share of the harmless sentences that the threshold lets the weights alone refuse."""
_HEAD = "# How much ideas weigh, alone and in pairs; written by scripts/weigh_guard.py, not by hand.\n"


@dataclass(frozen=True)
class _Row:
    features: frozenset[str]
    is_bad: bool
    group: str
    """`en` or `other`."""
    is_in_file: bool
    is_left: bool
    """No sentence of it is weighed, so that it says nothing about the threshold."""


def main(path: str, groups: list[str]) -> None:
    """Fit and write: English by the sentences of the file, the other languages by all, since they share the ideas."""
    rows = list(_rows(path))
    sets = yaml.safe_load(WEIGHTS_FILE.read_text(encoding="utf-8"))
    for group in groups:
        sets[group] = _set(group, [row for row in rows if group == "other" or (row.is_in_file and row.group == "en")])
    WEIGHTS_FILE.write_text(_HEAD + yaml.safe_dump(sets, width=120), encoding="utf-8")


def _set(group: str, rows: list[_Row]) -> dict[str, Any]:
    counts = Counter(feature for row in rows for feature in row.features)
    names = sorted(feature for feature, count in counts.items() if count >= _FEWEST)
    place = {feature: number for number, feature in enumerate(names)}
    matrix = [[place[feature] for feature in row.features if feature in place] for row in rows]
    weights, bias = fitted(matrix, [row.is_bad for row in rows], len(names), penalty=_PENALTIES[group])
    kept = {name: round(weight, 1) for name, weight in zip(names, weights, strict=True) if abs(weight) >= 0.05}
    bias = round(bias, 1)
    good = [row for row in rows if row.group == group and not row.is_bad]
    heavy = sorted(bias + sum(kept.get(name, 0.0) for name in row.features) for row in good if not row.is_left)
    threshold = math.ceil(10 * heavy[-1 - int(_FALSE_ALARMS[group] * len(good))]) / 10
    print(f"{group}: {len(rows):,} sentences, {len(kept):,} weights, threshold {threshold}")
    return {"threshold": threshold, "bias": bias, "weights": kept}


def _rows(path: str) -> Iterator[_Row]:
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        sentence = json.loads(line)
        yield _row(sentence["text"], sentence["label"] == "block", is_in_file=True)
    for note in (*notes("tuning"), *practice()):
        if note.kind != "values":
            yield _row(note.text, note.is_bad, is_in_file=False)


def _row(text: str, is_bad: bool, *, is_in_file: bool) -> _Row:
    low = folded(text).low
    language, sentences = language_of(low, BUILT_IN), sentences_of(low)
    found = frozenset(name for sentence in sentences for name in features(sentence, language, BUILT_IN))
    is_unweighed = all(is_left(sentence, language, BUILT_IN) for sentence in sentences)
    return _Row(found, is_bad, "en" if language == "en" else "other", is_in_file, is_unweighed)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:] or ["other"])
