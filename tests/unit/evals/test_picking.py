"""What the suites take of files and folders, and what they say of the rest."""

import json
from pathlib import Path
from typing import Any

import pytest

from everthread.errors import RecordError
from everthread.evals.picking import playable
from everthread.evals.suites import SUITES, Options, Report, suite

USER = {"id": "m0", "role": "user", "content": "I avoid hostels."}
REPLY = {"id": "m1", "role": "assistant", "content": "Noted."}
PREFERENCE = {"text": "I dislike hostels.", "evidence": ["m0"], "explicit_form": "I dislike hostels."}
TALK = {"id": "talk/1", "messages": [USER, REPLY]}
TOLD = {**TALK, "id": "told/1", "gold": {"preferences": [PREFERENCE]}}
CHAIN = {**TOLD, "id": "chain/1", "kind": "composite_session"}
NOTE = {"id": "n1", "text": "Prefers aisle seats.", "label": "allow"}


def write(path: Path, *values: Any) -> Path:
    path.write_text("".join(json.dumps(value) + "\n" for value in values), encoding="utf-8")
    return path


def run(name: str, *paths: Path, **options: Any) -> Report:
    options = {"a": "policy=summarize", "b": "policy=salience", **options} if name == "compare" else options
    return suite(name).run(paths, Options(**options), lambda done, total, name: None)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "chains.jsonl", CHAIN)
    write(tmp_path / "notes.jsonl", NOTE, NOTE)
    write(tmp_path / "talks.jsonl", TALK, {**TALK, "id": "talk/2", "messages": [USER]}, TOLD)
    (tmp_path / "zero.jsonl").write_text("\n")
    return tmp_path


def test_a_suite_says_in_one_line_what_of_a_folder_it_left_out(folder: Path) -> None:
    report = run("distillation", folder)

    assert report.settings["records"] == 1
    assert report.remarks[0] == (
        "Left out: 1 of chains.jsonl (put together from other conversations); "
        "2 of notes.jsonl, 2 of talks.jsonl (without `gold.preferences` or `gold.slots`); zero.jsonl (empty)."
    )


def test_conversations_without_a_recorded_reply_are_left_out(folder: Path) -> None:
    picked = playable([folder])

    assert [record.id for record in picked.records] == ["chain/1", "talk/1", "told/1"]
    assert picked.remarks == (
        "Left out: 2 of notes.jsonl (without `messages`); 1 of talks.jsonl (without a recorded reply to replay); "
        "zero.jsonl (empty).",
    )


def test_the_limit_counts_what_can_be_scored(folder: Path) -> None:
    assert run("guard", folder, limit=1).settings["notes"] == 1
    assert [record.id for record in playable([folder / "talks.jsonl"], limit=2).records] == ["talk/1", "told/1"]


def test_nothing_is_said_when_everything_is_used(folder: Path) -> None:
    assert not any(remark.startswith("Left out") for remark in run("guard", folder / "notes.jsonl").remarks)


def test_chains_of_conversations_are_scored_when_their_file_is_named(folder: Path) -> None:
    assert run("distillation", folder / "chains.jsonl").settings["records"] == 1


@pytest.mark.parametrize("name", SUITES)
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "r.jsonl: cannot be read: No such file or directory"),
        ("", "r.jsonl: the file is empty; it must hold one JSON object a line"),
        ("[1", "r.jsonl:1: not JSON"),
        ("[1]", "r.jsonl:1: expected a JSON object, got a list"),
        ('{"id": "x"}', "r.jsonl:1: "),
    ],
)
def test_every_suite_refuses_a_file_in_the_same_words(name: str, text: str | None, said: str, tmp_path: Path) -> None:
    file = tmp_path / "r.jsonl"
    if text is not None:
        file.write_text(text, encoding="utf-8")

    with pytest.raises(RecordError) as refusal:
        run(name, file)

    assert said in str(refusal.value)


@pytest.mark.parametrize("name", SUITES)
def test_every_suite_refuses_a_folder_that_has_nothing_for_it(name: str, tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"there is no `\.jsonl` file in this folder"):
        run(name, tmp_path)
    write(tmp_path / "other.jsonl", {"id": "x"})

    with pytest.raises(RecordError, match="no record has"):
        run(name, tmp_path)


@pytest.mark.parametrize(
    ("name", "gold", "said"),
    [
        ("distillation", {"preferences": [{"text": "x"}]}, r"`gold.preferences\[0\].evidence` is missing"),
        ("distillation", {"slots": [{"slot": "area", "values": [], "evidence": []}]}, r"gold.slots\[0\].values"),
        ("consolidation", {"updates": [{"slot": "area"}]}, r"`gold.updates\[0\].old` is missing"),
        ("retention", {"questions": [{"evidence": ["m0"]}]}, r"`gold.questions\[0\].question` is missing"),
    ],
)
def test_an_annotation_of_another_form_is_named_by_file_and_line(
    name: str, gold: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(RecordError, match=rf"r\.jsonl:1: .*{said}"):
        run(name, write(tmp_path / "r.jsonl", {**TALK, "gold": gold}))


def test_system_messages_of_an_annotated_record_are_no_part_of_the_conversation(tmp_path: Path) -> None:
    told = {**TOLD, "messages": [{"role": "system", "content": "Be brief."}, USER, REPLY]}

    assert run("distillation", write(tmp_path / "r.jsonl", told)).figures["preferences.recall"] == 1
