"""The suite that asks whether the evidence of a question is in the prompt, on a small conversation of our own."""

import json
from pathlib import Path
from typing import Any

import psycopg
import pytest

from benchmarks.suites import retention, threads
from benchmarks.suites.__main__ import main
from benchmarks.suites.annotations import iso_date
from benchmarks.suites.conversations import read_conversations
from everthread.errors import RecordError
from everthread.evals.suites import Options, Report


def record(**questions: Any) -> dict[str, Any]:
    """Return a conversation of two days: forty turns of small talk around three facts."""
    said = {3: "Our boiler is a Vaillant.", 30: "The plumber comes at nine.", 61: "My cat is called Mina."}
    messages = [
        {
            "id": f"m{place}",
            "role": "assistant" if place % 2 else "user",
            "content": said.get(place, f"Small talk number {place} about the garden and the weather."),
        }
        for place in range(80)
    ]
    sessions = [
        {"id": "S1", "date": "March-04-2025", "start": 0, "end": 40},
        {"id": "S2", "date": "2025-03-09T10:00", "start": 40, "end": 80},
    ]
    asked = [
        {"qid": "q1", "question": "Which boiler do we have?", "category": "fact", "evidence": ["m3"]},
        {
            "qid": "q2",
            "question": "When does the plumber come?",
            "category": "fact",
            "evidence": ["m30"],
            "audit": {"error": "X"},
        },
        {"qid": "q3", "question": "What is my cat called?", "category": "pet", "evidence": ["m61"]},
        {"qid": "q4", "question": "Do I own a boat?", "category": "abstention", "evidence": []},
        {"qid": "q5", "question": "Where is the key?", "category": "fact", "evidence": ["m9"], "suspect": True},
    ]
    gold = {"questions": [{**each, **questions.get(each["qid"], {})} for each in asked]}
    return {"id": "own/1", "kind": "long_conversation", "messages": messages, "sessions": sessions, "gold": gold}


def folder(path: Path, *records: dict[str, Any]) -> Path:
    (path / "long.jsonl").write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    return path


def report(path: Path, budget: int = 200, suite: Any = retention) -> Report:
    return suite.run([folder(path, record())], Options(budget=budget), lambda done, total, name: None)


def cell(found: Report, title: str, row: str) -> Any:
    table = next(table for table in found.tables if table.title == title)
    return next(cells for cells in table.rows if cells[0] == row)


def test_evidence_that_is_recalled_counts(tmp_path: Path) -> None:
    found = report(tmp_path)

    assert found.figures["own.fraction"] == found.figures["own.all"] == found.figures["own.any"] == 1.0


def test_evidence_in_another_thread_is_recalled_too(tmp_path: Path) -> None:
    found = report(tmp_path, suite=threads)

    assert found.figures["own.all"] == 1.0
    assert cell(found, "200 tokens", "own, bm25")[2] == 1.0
    assert cell(found, "200 tokens", "own, recency")[1:] == (0.0, 0.0, 0.0, 3)


def test_the_newest_messages_alone_do_not_hold_old_evidence(tmp_path: Path) -> None:
    assert cell(report(tmp_path), "200 tokens", "own, recency")[1:] == (0.0, 0.0, 0.0, 3)


def test_everything_fits_a_large_budget_whatever_the_method(tmp_path: Path) -> None:
    assert cell(report(tmp_path), "8,000 tokens", "own, recency")[1] == 1.0


def test_the_budget_holds_what_comes_from_the_conversation(tmp_path: Path) -> None:
    assert 100 < report(tmp_path).figures["most_tokens"] <= 200


def test_questions_without_sound_evidence_are_left_out_and_counted(tmp_path: Path) -> None:
    found = report(tmp_path)

    assert found.figures["questions"] == 3
    assert found.remarks[0].endswith("lacks the answer: 2.")


def test_figures_are_told_apart_by_category_and_by_audit(tmp_path: Path) -> None:
    rows = {row[0]: row[-1] for row in report(tmp_path).tables[-1].rows}

    assert rows == {"own/fact": 2, "own/pet": 1, "own/agreed": 2}


def test_two_runs_give_the_same_report(tmp_path: Path) -> None:
    assert report(tmp_path).document() == report(tmp_path).document()


def test_evidence_that_was_cut_does_not_count(tmp_path: Path) -> None:
    long = record()
    long["messages"][3]["content"] += " The cellar is damp." * 60
    found = retention.run([folder(tmp_path, long)], Options(budget=200), lambda done, total, name: None)

    assert found.figures["own.all"] == pytest.approx(2 / 3)


def test_messages_carry_the_date_of_their_session(tmp_path: Path) -> None:
    (conversation,) = read_conversations([folder(tmp_path, record())]).records

    dates = [message.additional_kwargs["everthread"]["at"] for message in conversation.messages]
    assert (dates[39], dates[40]) == ("2025-03-04T00:00:00", "2025-03-09T10:00:00")


def test_evidence_that_is_no_message_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="question 'q1' cites 'm999', which is no message"):
        read_conversations([folder(tmp_path, record(q1={"evidence": ["m999"]}))])


def test_a_folder_without_questions_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="no record has questions with evidence"):
        read_conversations([folder(tmp_path, {**record(), "kind": "tool_transcript"})])


def test_a_malformed_line_is_named(tmp_path: Path) -> None:
    (tmp_path / "long.jsonl").write_text('{"id": ', encoding="utf-8")

    with pytest.raises(RecordError, match=r"long\.jsonl:1: "):
        read_conversations([tmp_path])


@pytest.mark.parametrize(
    ("text", "iso"),
    [("July-18-2024", "2024-07-18T00:00:00"), ("2025-03-04T05:06", "2025-03-04T05:06:00"), (None, None)],
)
def test_recorded_dates_are_read(text: str | None, iso: str | None) -> None:
    assert iso_date(text) == iso


@pytest.mark.postgres
def test_postgres_shows_what_sqlite_shows_and_keeps_no_schema(tmp_path: Path, postgres: str) -> None:
    paths = [folder(tmp_path, record())]

    found = retention.run(paths, Options(budget=200, database=postgres), lambda done, total, name: None)

    assert found.figures == retention.run(paths, Options(budget=200), lambda done, total, name: None).figures
    with psycopg.connect(postgres) as connection:
        left = connection.execute("SELECT 1 FROM pg_namespace WHERE nspname LIKE 'suite\\_%'").fetchall()
    assert left == []


def test_only_suites_that_keep_conversations_take_a_database(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["guard", str(folder(tmp_path, record())), "--database", "postgresql://nowhere"]) == 2
    assert "--database is for retention and threads" in capsys.readouterr().err
