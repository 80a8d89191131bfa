"""The suite that measures consolidation, on a conversation of our own."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.suites.consolidation import run
from everthread.errors import RecordError
from everthread.evals.suites import Options, Report


def said(*texts: str) -> list[dict[str, Any]]:
    return [{"id": f"m{number}", "role": "user", "content": text} for number, text in enumerate(texts)]


def slot(name: str, *values: str) -> dict[str, Any]:
    return {"service": "Inns_1", "slot": name, "values": list(values), "evidence": ["m0"]}


DIALOGUE = {
    "id": "sgd/own/1",
    "kind": "preference_dialogue",
    "messages": said("A room in the north for two, please.", "Make that the south."),
    "gold": {
        "updates": [
            {
                "service": "Inns_1",
                "slot": "area",
                "old": "north",
                "new": "south",
                "old_evidence": ["m0"],
                "evidence": ["m1"],
            }
        ],
        "slots": [slot("area", "south"), slot("guests", "two", "2"), slot("check_in_day", "Friday")],
    },
}
CHAT = {
    "id": "chat/9/knowledge_update-0",
    "kind": "memory_update",
    "meta": {"type": "knowledge_update"},
    "messages": [
        {"id": "B2", "role": "user", "content": "My monthly garden budget for seeds is $40."},
        {"id": "B8", "role": "user", "content": "My monthly garden budget for seeds was raised to $55."},
    ],
    "gold": {"stale": ["B2"], "current": ["B8"]},
}


def measured(tmp_path: Path, *records: dict[str, Any]) -> Report:
    path = tmp_path / "records.jsonl"
    path.write_text("\n".join(json.dumps(record) for record in records))
    return run([path], Options(), lambda *done: None)


def test_a_change_is_resolved_in_every_form_and_nothing_else_is_touched(tmp_path: Path) -> None:
    figures = measured(tmp_path, DIALOGUE).figures

    assert figures["sgd.resolved"] == 1
    assert (figures["sgd.unrelated_retired"], figures["sgd.duplicates"], figures["sgd.inventions"]) == (0, 0, 0)
    assert figures["sgd.changes"] == 10  # five forms, in one session and in two


def test_the_baselines_stand_beside_the_rules(tmp_path: Path) -> None:
    table = next(table for table in measured(tmp_path, DIALOGUE).tables if table.title == "Changes, all")

    rows = {row[0]: row for row in table.rows}
    assert rows["keep all"][3] == 0
    assert rows["keep all"][4] > 0
    assert rows["newest"][5] > 0


def test_a_fact_of_a_chat_is_updated(tmp_path: Path) -> None:
    assert measured(tmp_path, CHAT).figures["memory_updates.messages.resolved"] == 1


def test_the_limit_counts_records_that_tell_of_a_change(tmp_path: Path) -> None:
    other = {**CHAT, "id": "chat/9/temporal_reasoning-0", "meta": {"type": "temporal_reasoning"}, "gold": {}}
    path = tmp_path / "records.jsonl"
    path.write_text("\n".join(json.dumps(record) for record in (other, DIALOGUE, CHAT)))

    figures = run([path], Options(limit=1), lambda *done: None).figures

    assert figures["sgd.changes"] == 10
    assert "memory_updates.messages.changes" not in figures


def test_a_file_without_changes_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="no record has"):
        measured(tmp_path, {"id": "x", "messages": [], "gold": {}})


def test_a_broken_line_is_named(tmp_path: Path) -> None:
    file = tmp_path / "records.jsonl"
    file.write_text("{}\n")

    with pytest.raises(RecordError, match=r"records\.jsonl:1: a record has at least `id` and `messages`"):
        run([file], Options(), lambda *done: None)
