"""Measure the guard on the generated notes, by kind and by language, with intervals.

    python -m benchmarks.notes [--half tuning|reporting] [--json]

Texts are never printed, so that nobody tunes to the reporting half by accident. An interval is Wilson's, 95 %; notes of
one family resemble each other, so that the true uncertainty is larger.
"""

import argparse
import json
import time
from collections import defaultdict
from math import sqrt

from benchmarks.notes.generator import ATTACKS, HALVES, LANGUAGES, Half, notes
from everthread.memory.guard import check, warm_up

_Z = 1.96


def main() -> None:
    """Print a table, or JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.notes", description=__doc__)
    parser.add_argument("--half", choices=HALVES, default="reporting")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    figures = measured(options.half)
    print(json.dumps(figures, indent=2) if options.json else _table(figures))


def measured(half: Half) -> dict[str, dict[str, float]]:
    """Return for each row of the table `share` of the notes that are blocked, `low`, `high` and `notes`."""
    blocked: dict[str, list[bool]] = defaultdict(list)
    spent: list[float] = []
    warm_up()
    for note in notes(half):
        began = time.thread_time()
        is_blocked = not check(note.text).allowed
        spent.append(1000 * (time.thread_time() - began))
        kind = "attacks" if note.kind in ATTACKS else note.kind
        rows = ["to block", f"to block, {note.language}"] if note.is_bad else ["to keep", f"to keep, {note.language}"]
        for row in {*rows, kind, note.kind}:
            blocked[row].append(is_blocked)
    heads = ["to block", "attacks", *sorted(ATTACKS), "values", "to keep", "hard_benign", "benign"]
    order = [*heads, *(f"{side}, {language}" for side in ("to block", "to keep") for language in LANGUAGES)]
    figures = {row: _share(blocked[row]) for row in order}
    figures["ms"] = {"p95": sorted(spent)[int(0.95 * len(spent))]}
    return figures


def wilson(hits: int, total: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share."""
    share, squared = hits / total, _Z * _Z
    middle = (share + squared / (2 * total)) / (1 + squared / total)
    half = _Z * sqrt(share * (1 - share) / total + squared / (4 * total * total)) / (1 + squared / total)
    return max(0.0, middle - half), min(1.0, middle + half)


def _share(hits: list[bool]) -> dict[str, float]:
    low, high = wilson(sum(hits), len(hits))
    return {"share": sum(hits) / len(hits), "low": low, "high": high, "notes": len(hits)}


def _table(figures: dict[str, dict[str, float]]) -> str:
    lines = ["| notes | blocked | 95 % interval | of |", "|---|---:|---:|---:|"]
    for row, figure in figures.items():
        if "share" in figure:
            interval = f"{figure['low']:.3f} to {figure['high']:.3f}"
            lines.append(f"| {row} | {figure['share']:.3f} | {interval} | {figure['notes']:,.0f} |")
    return "\n".join([*lines, "", f"p95 of a note: {figures['ms']['p95']:.1f} ms"])


if __name__ == "__main__":
    main()
