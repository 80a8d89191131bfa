"""The suites that replay conversations, on conversations made for these tests."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from everthread import build_graph, open_storage
from everthread.agents import travel
from everthread.cli import main
from everthread.errors import RecordError, SettingsError
from everthread.evals import compare, metrics, violations
from everthread.evals.judge import Judge, judge_named
from everthread.evals.picking import playable
from everthread.evals.records import Record, Toolkit
from everthread.evals.suites import MOVED, SUITES, Options, Report, suite
from everthread.models.scripted import ScriptedModel
from everthread.state import Context, Note
from everthread.state.notes import Source
from recordings import long_record, write


def quiet(done: int, total: int, name: str) -> None:
    """Show no progress."""


def measured(name: str, path: Path, **options: Any) -> Report:
    return suite(name).run([path], Options(**options), quiet)


def said(*texts: str) -> Record:
    messages = [
        message
        for place, text in enumerate(texts)
        for message in (HumanMessage(text, id=f"h{place}"), AIMessage("Noted.", id=f"b{place}"))
    ]
    return Record("said", "said.jsonl:1", tuple(messages), toolkit=Toolkit(system="Be brief."))


@pytest.mark.parametrize("name", MOVED)
def test_a_suite_that_moved_says_where_it_is(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", name, "records.jsonl"]) == 2
    assert f"`python -m benchmarks.suites {name} FILE…`" in capsys.readouterr().err


@pytest.mark.parametrize("name", SUITES)
def test_every_suite_has_a_runner(name: str) -> None:
    assert callable(suite(name).run)


def test_an_unknown_suite_is_refused_with_those_there_are() -> None:
    with pytest.raises(SettingsError, match="choose one of compare, metrics, replay"):
        suite("hope")


def test_the_suite_replay_counts_no_violation_of_ours_and_those_of_the_baselines(tmp_path: Path) -> None:
    report = measured("replay", write(tmp_path / "r.jsonl", long_record(7)), budget=2_000)

    assert (report.figures["violations"], report.figures["failed"], report.figures["replayed"]) == (0, 0, 1)
    assert report.figures["full_history.over_the_window"] > 0
    assert report.figures["no_memory.anchor_missing"] > 0


def test_the_suite_replay_finds_prompts_over_the_window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everthread.nodes.sizes.input_limit", lambda *_: 100_000)

    report = measured("replay", write(tmp_path / "r.jsonl", long_record(7)), budget=2_000)

    assert report.figures["violations"] > 0


def test_two_configurations_are_compared_conversation_by_conversation(tmp_path: Path) -> None:
    records = [long_record(turns, f"r{turns}") for turns in (5, 6, 7)]
    path = write(tmp_path / "r.jsonl", *records)

    figures = measured("compare", path, budget=2_500, a="policy=token_budget", b="window=4000").figures

    assert figures["conversations"] == 3
    assert figures["difference.tokens_per_call"] == pytest.approx(
        figures["b.tokens_per_call"] - figures["a.tokens_per_call"]
    )
    assert figures["difference.tokens_per_call.low"] > 0


def test_one_compared_conversation_is_counted_as_one(tmp_path: Path) -> None:
    report = measured("compare", write(tmp_path / "r.jsonl", long_record(2)), a="policy=token_budget")

    assert "1 of 1 conversation ran on both sides." in report.remarks


def test_the_same_dials_on_both_sides_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="both sides have the same dials"):
        measured("compare", write(tmp_path / "r.jsonl", long_record(2)))


def test_dials_are_read_with_their_types() -> None:
    context = compare.dials("policy=salience,recall_tokens=0,pins=[a b, c]", 9_000)

    assert context == Context(policy="salience", recall_tokens=0, pins=("a b", "c"), window=9_000)


@pytest.mark.parametrize(("text", "message"), [("hope=1", "unknown dial 'hope'"), ("policy", "written KEY=VALUE")])
def test_dials_that_do_not_exist_are_refused(text: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        compare.dials(text, 9_000)


def test_a_bootstrap_is_seeded_and_holds_the_mean() -> None:
    differences = [0.1, 0.3, -0.2, 0.4, 0.2]
    first, again = (compare.bootstrap(differences, seed=5) for _ in range(2))

    assert first == again
    assert first.low < first.mean < first.high
    assert first.mean == pytest.approx(0.16)


@pytest.mark.parametrize(
    ("differences", "verdict"),
    [([1.0, 2.0, 3.0], "b more"), ([-1.0, -2.0], "a more"), ([-1.0, 1.0], "no difference shown"), ([], None)],
)
def test_an_interval_says_which_side_has_more(differences: Sequence[float], verdict: str | None) -> None:
    assert compare.bootstrap(differences, seed=1).verdict == (verdict or "no difference shown")


def judged(tmp_path: Path, answers: Sequence[str | Exception], seed: int = 1) -> Judge:
    judge = Judge(ScriptedModel(answers), seed=seed, output=tmp_path / "judge.jsonl")
    for place in range(len(answers)):
        judge.compare(f"case {place}", [HumanMessage("prompt a")], [HumanMessage("prompt b")], "reply")
    return judge


def test_a_judge_sees_the_sides_in_an_order_of_the_seed(tmp_path: Path) -> None:
    judge = judged(tmp_path, ['{"better": "1"}'] * 12)

    orders = [verdict.a_came_first for verdict in judge.verdicts]
    assert {True, False} == set(orders)
    assert [verdict.better for verdict in judge.verdicts] == ["a" if first else "b" for first in orders]
    assert orders == [verdict.a_came_first for verdict in judged(tmp_path, ['{"better": "1"}'] * 12).verdicts]


def test_what_a_judge_answered_is_kept_word_for_word(tmp_path: Path) -> None:
    answers = ['Well: {"better": "tie", "reason": "same"}', "I cannot say.", ValueError("no quota")]
    judge = judged(tmp_path, answers)

    lines = [json.loads(line) for line in (tmp_path / "judge.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line["answer"] for line in lines] == [*answers[:2], "ValueError: no quota"]
    assert judge.shares() == {
        "judge.a": 0,
        "judge.b": 0,
        "judge.tie": 1,
        "judge.unreadable": 2,
        "judge.cases": 3,
    }


def test_a_judge_without_a_key_is_skipped_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "r.jsonl", long_record(3))

    arguments = ["--b", "window=3000", "--judge", "openai:gpt-5-mini", "--jobs", "1"]
    assert main(["eval", "compare", str(path), *arguments]) == 0
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "judge" in line]
    assert line.startswith("judge skipped: model 'openai:gpt-5-mini' needs a key")


def test_the_offline_model_is_no_judge() -> None:
    assert judge_named("offline") == (
        None,
        "judge skipped: `offline` matches patterns and cannot judge; use `--judge provider:name`",
    )


def test_a_judge_adds_its_shares(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "judge_named", lambda name: (ScriptedModel(['{"better": "tie"}']), ""))
    path, answers = write(tmp_path / "r.jsonl", long_record(3)), tmp_path / "answers.jsonl"

    report = measured("compare", path, b="window=3000", judge="x:y", judge_output=answers)

    assert (report.figures["judge.tie"], report.figures["judge.cases"]) == (1, 1)
    assert answers.read_text(encoding="utf-8").count("\n") == 1


def note(name: str, text: str, quote: str, **values: Any) -> Note:
    source = Source(thread_id="t", message_ids=("m",), quote=quote)
    return Note(id=name, text=text, date=values.pop("date", "2026-01-01"), sources=(source,), **values)


def test_notes_are_counted_from_the_ledger(tmp_path: Path) -> None:
    path = write(
        tmp_path / "r.jsonl", said("I prefer aisle seats.", "Hello.", "My code is 4111 1111 1111 1111.", "Bye.")
    )

    figures = measured("metrics", path).figures

    assert figures["memory_write_rate"] == 25  # one note in four turns
    assert figures["time_to_personalization"] == 2  # it is in the prompt of the turn after
    assert (figures["deduplication"], figures["non_invention"]) == (1, 1)


def test_a_note_with_a_word_of_its_own_is_an_invention() -> None:
    told = [note("n1", "Prefers aisle seats.", "I like aisle seats"), note("n2", "Hates Mondays.", "Hello")]

    counts = metrics.measure([], told, turns=1).counts

    assert (counts["quoted"], counts["grounded"]) == (2, 1)


def test_two_notes_that_say_the_same_are_one_too_many() -> None:
    told = [note("n1", "Prefers aisle seats.", "x"), note("n2", "Prefers aisle seats", "x")]

    assert metrics.measure([], told, turns=1).counts["unique"] == 1


def test_the_older_note_winning_is_not_recency() -> None:
    old = note("n1", "Prefers aisle seats.", "x", date="2026-02-01", status="superseded", superseded_by="n2")
    counts = metrics.measure([], [old, note("n2", "Prefers window seats.", "x")], turns=1).counts

    assert (counts["replaced"], counts["newer_won"]) == (1, 0)


def test_a_replaced_note_in_a_later_prompt_is_over_influence() -> None:
    shown = {"event": "injected", "note_ids": ["n1"], "session_note_ids": [], "turn": 2}
    told = [shown, {"event": "note_superseded", "note_id": "n1", "by": "n2"}, {**shown, "turn": 3}]

    found = metrics.measure(told, [], turns=3)

    assert (found.counts["stale_runs"], found.counts["injected"], found.first_personal_turn) == (1, 2, 2)


def test_the_threads_of_a_database_are_measured(tmp_path: Path) -> None:
    path = tmp_path / "own.db"
    with open_storage(f"sqlite:///{path}") as storage:
        graph = build_graph(travel, model=ScriptedModel(["Noted.", "Hello."]), storage=storage)
        for text in ("I prefer aisle seats.", "Hello."):
            given: Any = {"messages": text}
            graph.invoke(given, {"configurable": {"thread_id": "t"}}, context=Context(distillation=("turn",)))

    figures = measured("metrics", path).figures

    assert (figures["memory_write_rate"], figures["personalized"]) == (50, 1)


def test_a_database_is_known_by_how_it_begins_whatever_its_name(tmp_path: Path) -> None:
    path = tmp_path / "talks"
    with open_storage(f"sqlite:///{path}"):
        pass

    with pytest.raises(RecordError, match="no thread to measure"):
        measured("metrics", path)


def test_the_url_of_a_database_is_refused_with_what_to_give() -> None:
    with pytest.raises(SettingsError, match="takes the file of a database"):
        measured("metrics", Path("sqlite:///own.db"))


def test_conversations_that_cannot_be_played_are_counted_with_the_reason(tmp_path: Path) -> None:
    large = replace(long_record(2, "large"), toolkit=Toolkit(system="Be kind. " * 900))

    report = measured("metrics", write(tmp_path / "r.jsonl", long_record(2), large), budget=2_000)

    assert report.settings["threads"] == 1
    assert report.remarks[0].startswith("No figure has 1 conversation that could not be played; the first: large:")


def test_a_folder_gives_its_conversations_and_passes_over_other_files(tmp_path: Path) -> None:
    write(tmp_path / "r.jsonl", long_record(2))
    (tmp_path / "notes.jsonl").write_text('{"id": "n", "text": "a"}\n', encoding="utf-8")

    assert [record.id for record in playable([tmp_path]).records] == ["long"]
    with pytest.raises(RecordError, match="`messages` is missing"):
        playable([tmp_path / "notes.jsonl"])


def test_a_missed_requirement_is_exit_code_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "r.jsonl", long_record(2))
    arguments = ["eval", "replay", str(path), "--jobs", "1", "--json"]

    assert main([*arguments, "--require", "violations<=0", "--require", "replayed=1"]) == 0
    assert main([*arguments, "--require", "replayed=2"]) == 1
    assert "error: replayed is 1, and must be at least 2" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--require", "hope=1"], "error: there is no figure 'hope'"),
        (["--require", "violation=1"], "error: there is no figure 'violation', but violations"),
        (["--require", "violations"], "error: `--require` takes NAME=VALUE"),
        (["--a", "policy=salience"], "error: `--a`, `--b` and `--judge` belong to the suite `compare`"),
    ],
)
def test_a_wrong_use_of_a_suite_is_one_sentence(
    tmp_path: Path, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "r.jsonl", long_record(2))

    assert main(["eval", "replay", str(path), "--jobs", "1", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_a_report_is_written_as_a_page(tmp_path: Path) -> None:
    path, page = write(tmp_path / "r.jsonl", long_record(2)), tmp_path / "out.html"

    assert main(["eval", "replay", str(path), "--jobs", "1", "--html", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    assert "Evaluation: replay" in text
    assert "sliding_window" in text


def test_sessions_of_a_record_are_ended_one_by_one(tmp_path: Path) -> None:
    record = replace(said("I prefer aisle seats.", "Hello.", "Bye."), session_ends=(2, 4, 6))

    found = metrics.played(record, 8_000)

    assert not isinstance(found, str)
    assert found.counts["consolidated"] >= 1
    assert found.counts["active"] == 1


def test_violations_are_counted_by_kind() -> None:
    counts, _ = violations.played(long_record(6), 2_000)["no memory"]

    assert (counts["anchor missing"], counts["torn"], counts["calls"]) == (10, 0, 12)
