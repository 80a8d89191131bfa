"""The suites `distillation` and `injection` on conversations of a few lines."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.suites import distillation, injection
from everthread.errors import RecordError
from everthread.evals.suites import Options, Report


def said(place: int, role: str, text: str) -> dict[str, str]:
    return {"id": f"m{place}", "role": role, "content": text}


def record(*texts: str, **gold: Any) -> dict[str, Any]:
    messages = [said(place, "assistant" if place % 2 else "user", text) for place, text in enumerate(texts)]
    sessions = [{"id": "S1", "date": "2026-01-01", "start": 0, "end": len(messages)}]
    return {"id": f"r/{texts[0]}", "messages": messages, "sessions": sessions, "gold": gold}


def measured(suite: Any, tmp_path: Path, *records: dict[str, Any], budget: int | None = None) -> Report:
    file = tmp_path / "records.jsonl"
    file.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    report = suite.run([file], Options(budget=budget), lambda done, total, name: None)
    assert isinstance(report, Report)
    return report


PREFERENCE = {"text": "I dislike hostels.", "evidence": ["m0"], "explicit_form": "I dislike hostels."}


def test_a_preference_that_was_said_is_found(tmp_path: Path) -> None:
    figures = measured(distillation, tmp_path, record("I tend to avoid hostels.", preferences=[PREFERENCE])).figures

    assert (figures["preferences.recall"], figures["preferences.precision"]) == (1, 1)
    assert (figures["explicit.recall"], figures["explicit.false_alarms"]) == (1, 0)


def test_a_note_outside_the_annotation_counts_as_wrong(tmp_path: Path) -> None:
    told = record("I avoid hostels. I prefer tea.", preferences=[PREFERENCE])

    assert measured(distillation, tmp_path, told).figures["preferences.precision"] == 0.5


def test_a_request_meets_its_slot(tmp_path: Path) -> None:
    slot = {"slot": "stars", "values": ["4"], "evidence": ["m0"], "stated_by": "user", "durable": True}
    figures = measured(distillation, tmp_path, record("Find me a 4 star hotel.", slots=[slot])).figures

    assert (figures["slots.r.recall_durable"], figures["slots.r.claimed_lasting"]) == (1, 0)


PROBE = {
    "category": "preference_following",
    "question": "Where can I stay in Oslo?",
    "evidence": ["m0"],
    "preference": "I dislike hostels.",
}


def test_a_preference_is_injected_though_the_question_does_not_name_it(tmp_path: Path) -> None:
    told = record("I avoid hostels.", "Noted.", "Find me a hotel in Oslo.", questions=[PROBE])

    assert measured(injection, tmp_path, told).figures["preference_in_prompt"] == 1


def test_a_block_without_room_has_no_preference(tmp_path: Path) -> None:
    figures = measured(injection, tmp_path, record("I avoid hostels.", questions=[PROBE]), budget=4).figures

    assert (figures["preference_in_prompt"], figures["blocks_over_budget"]) == (0, 0)


@pytest.mark.parametrize("suite", [distillation, injection])
def test_records_without_gold_are_refused(suite: Any, tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"no record has"):
        measured(suite, tmp_path, record("Hello."))
