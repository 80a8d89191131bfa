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
TALK = {"id": "talk/1", "messages": [USER, REPLY]}
TOLD = {**TALK, "id": "told/1"}
CHAIN = {**TOLD, "id": "chain/1", "kind": "composite_session"}
NOTE = {"id": "n1", "text": "Prefers aisle seats.", "label": "allow"}


def write(path: Path, *values: Any) -> Path:
    path.write_text("".join(json.dumps(value) + "\n" for value in values), encoding="utf-8")
    return path


def run(name: str, *paths: Path) -> Report:
    options = Options(a="policy=summarize", b="policy=salience") if name == "compare" else Options()
    return suite(name).run(paths, options, lambda done, total, name: None)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "chains.jsonl", CHAIN)
    write(tmp_path / "notes.jsonl", NOTE, NOTE)
    write(tmp_path / "talks.jsonl", TALK, {**TALK, "id": "talk/2", "messages": [USER]}, TOLD)
    (tmp_path / "zero.jsonl").write_text("\n")
    return tmp_path


def test_conversations_without_a_recorded_reply_are_left_out(folder: Path) -> None:
    picked = playable([folder])

    assert [record.id for record in picked.records] == ["chain/1", "talk/1", "told/1"]
    assert picked.remarks == (
        "Left out: 2 of notes.jsonl (without `messages`); 1 of talks.jsonl (without a recorded reply to replay); "
        "zero.jsonl (empty).",
    )


def test_the_limit_counts_what_can_be_scored(folder: Path) -> None:
    assert [record.id for record in playable([folder / "talks.jsonl"], limit=2).records] == ["talk/1", "told/1"]


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
