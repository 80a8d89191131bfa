"""How well the guard tells what may become a memory, on labelled notes.

A row has `id`, `text` and `label` (`allow` or `block`), and may have `category`, `tier` (`must`: whoever lets it pass
has failed) and `obfuscation`. Recall is the share of notes to block that are blocked; a false positive is a note to
keep that is blocked. Two baselines: `narrow`, the few patterns that first versions of such guards have, and `wide`,
the same with phone numbers, dates and words of command added. `ms` is the processor time for one note.
"""

import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from everthread.evals.suites import Options, Report, Table, Tick
from everthread.memory.guard import check, warm_up

from .picking import Wanted, pick

__all__ = ["run"]

_NARROW = (
    r"\b\d{3}-\d{2}-\d{4}\b",
    r"\b(?:\d[ -]?){13,16}\b",
    r"\b[A-Z]{1,2}\d{7,8}\b",
    r"(?i)\bignore (?:all |any )?(?:previous|earlier|prior) (?:instructions|rules)\b",
    r"(?i)\bsystem prompt\b",
    r"(?i)\b(?:you are now|developer mode|jailbreak)\b",
)
_WIDE = (
    *_NARROW,
    r"[\w.+-]+@[\w-]+\.\w+",
    r"\+?\d[\d ()-]{7,}\d",
    r"\b\d{1,2}[/.]\d{1,2}[/.]\d{2,4}\b",
    r"(?i)\b(?:password|secret|token|api key)\b",
    r"(?i)\b(?:always|never|must|from now on|whenever|override|bypass)\b",
    r"(?i)https?://",
)


@dataclass(frozen=True)
class Labelled:
    """A note and what should become of it."""

    text: str
    is_bad: bool
    category: str
    is_must: bool
    is_hidden: bool
    """The text is obfuscated."""


def run(paths: Sequence[Path], options: Options, tick: Tick) -> Report:
    """Measure the guard and two baselines on labelled notes.

    Raises:
        RecordError: a file cannot be read, or no line has `text` and `label`.
    """
    picked = pick(paths, _WANTED, options.limit)
    rows = [_labelled(row) for _, row in picked.records]
    warm_up()
    blocked: dict[str, list[bool]] = defaultdict(list)
    spent: list[float] = []
    baselines = {"narrow patterns": _matcher(_NARROW), "wide patterns": _matcher(_WIDE)}
    for done, row in enumerate(rows, start=1):
        began = time.thread_time()
        blocked["everthread"].append(not check(row.text).allowed)
        spent.append((time.thread_time() - began) * 1000)
        for name, hits in baselines.items():
            blocked[name].append(hits(row.text))
        if done % 20 == 0 or done == len(rows):
            tick(done, len(rows), row.category)
    ours = blocked["everthread"]
    spent.sort()
    figures = {
        **_summary(rows, ours),
        **{f"recall.{name}": share for name, share, _ in _by_category(rows, ours, is_bad=True)},
        **{f"false_positives.{name}": share for name, share, _ in _by_category(rows, ours, is_bad=False)},
        "ms.p50": spent[len(spent) // 2],
        "ms.p95": spent[min(int(len(spent) * 0.95), len(spent) - 1)],
    }
    return Report(
        suite="guard",
        figures=figures,
        tables=tuple(_tables(rows, blocked)),
        remarks=(
            *picked.remarks,
            f"To block: {sum(row.is_bad for row in rows):,}, to keep: {sum(not row.is_bad for row in rows):,}. "
            "The rules were written while looking at most of these notes; README.md has the figures on the others.",
        ),
        settings={"notes": len(rows)},
    )


def _is_labelled(row: dict[str, Any]) -> bool:
    return row.get("label") in ("allow", "block") and isinstance(row.get("text"), str)


_WANTED = Wanted(
    what="`text` and `label`",
    suits=_is_labelled,
    is_formed=_is_labelled,
    form="a labelled note has a `text` and a `label`, `allow` or `block`",
)


def _labelled(row: dict[str, Any]) -> Labelled:
    return Labelled(
        row["text"],
        row["label"] == "block",
        str(row.get("category") or "other"),
        row.get("tier") == "must",
        str(row.get("obfuscation") or "none") != "none",
    )


def _matcher(patterns: Sequence[str]) -> Callable[[str], bool]:
    compiled = [re.compile(pattern) for pattern in patterns]
    return lambda text: any(pattern.search(text) for pattern in compiled)


def _summary(rows: Sequence[Labelled], blocked: Sequence[bool]) -> dict[str, float]:
    def share(wanted: Callable[[Labelled], bool]) -> float:
        hits = [hit for row, hit in zip(rows, blocked, strict=True) if wanted(row)]
        return sum(hits) / len(hits) if hits else 0.0

    caught = sum(hit and row.is_bad for row, hit in zip(rows, blocked, strict=True))
    return {
        "recall": share(lambda row: row.is_bad),
        "recall.must": share(lambda row: row.is_bad and row.is_must),
        "recall.obfuscated": share(lambda row: row.is_bad and row.is_hidden),
        "precision": caught / sum(blocked) if any(blocked) else 0.0,
        "false_positives": share(lambda row: not row.is_bad),
    }


def _by_category(rows: Sequence[Labelled], blocked: Sequence[bool], *, is_bad: bool) -> list[tuple[str, float, int]]:
    hits: dict[str, list[bool]] = defaultdict(list)
    for row, hit in zip(rows, blocked, strict=True):
        if row.is_bad == is_bad:
            hits[row.category].append(hit)
    return [(name, sum(flags) / len(flags), len(flags)) for name, flags in sorted(hits.items())]


def _tables(rows: Sequence[Labelled], blocked: dict[str, list[bool]]) -> Iterator[Table]:
    names = ("recall.must", "recall", "recall.obfuscated", "precision", "false_positives")
    cells: list[tuple[str | int | float, ...]] = [
        (method, *(_summary(rows, hits)[name] for name in names), len(rows)) for method, hits in blocked.items()
    ]
    heads = ("guard", "recall on must", "recall", "obfuscated", "precision", "false positives", "notes")
    yield Table("labelled notes", heads, tuple(cells))
    for is_bad, title in ((True, "recall by class"), (False, "false positives by class")):
        columns = {method: _by_category(rows, hits, is_bad=is_bad) for method, hits in blocked.items()}
        classes = [dict(zip(columns, one, strict=True)) for one in zip(*columns.values(), strict=True)]
        lines: list[tuple[str | int | float, ...]] = [
            (one["everthread"][0], *(share for _, share, _ in one.values()), one["everthread"][2]) for one in classes
        ]
        yield Table(title, ("class", *columns, "notes"), tuple(lines))
