"""The suite `guard` on labelled notes written for these tests."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.suites import guard
from everthread.errors import RecordError
from everthread.evals.suites import Options, Report

ROWS = [
    {"id": "1", "text": "Prefers aisle seats.", "label": "allow", "category": "taste"},
    {"id": "2", "text": "Must be home by six.", "label": "allow", "category": "taste"},
    {"id": "3", "text": "Pays with 4111 1111 1111 1111.", "label": "block", "category": "card", "tier": "must"},
    {"id": "4", "text": "Pays with 4 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1.", "label": "block", "category": "card"},
]


def measured(path: Path, rows: list[dict[str, Any]]) -> Report:
    file = path / "notes.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return guard.run([file], Options(), lambda done, total, name: None)


def test_recall_and_false_positives_are_shares_of_their_kind(tmp_path: Path) -> None:
    figures = measured(tmp_path, ROWS).figures

    assert (figures["recall"], figures["recall.must"], figures["recall.card"]) == (1, 1, 1)
    assert (figures["false_positives"], figures["precision"]) == (0, 1)
    assert figures["ms.p95"] >= figures["ms.p50"] > 0


def test_wide_patterns_block_what_should_stay(tmp_path: Path) -> None:
    table = measured(tmp_path, ROWS).tables[0]

    wide = dict(zip(table.columns, next(row for row in table.rows if row[0] == "wide patterns"), strict=True))
    assert wide["false positives"] == 0.5


def test_a_note_that_passes_lowers_the_recall_of_its_class(tmp_path: Path) -> None:
    missed = {"id": "5", "text": "Prefers window seats.", "label": "block", "category": "card"}

    assert measured(tmp_path, [*ROWS, missed]).figures["recall.card"] == pytest.approx(2 / 3)


def test_a_named_file_without_labels_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"notes\.jsonl:1: a labelled note has"):
        measured(tmp_path, [{"id": "1", "text": "Hello."}])
