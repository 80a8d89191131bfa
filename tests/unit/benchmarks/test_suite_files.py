"""What the data-set suites take of files and folders, and what their command says."""

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from benchmarks.suites.__main__ import SUITES, main
from everthread.errors import RecordError
from everthread.evals.suites import MOVED, Options, Report

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
    report = import_module(f"benchmarks.suites.{name}").run(paths, Options(**options), lambda done, total, name: None)
    assert isinstance(report, Report)
    return report


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


def test_the_limit_counts_what_can_be_scored(folder: Path) -> None:
    assert run("guard", folder, limit=1).settings["notes"] == 1


def test_nothing_is_said_when_everything_is_used(folder: Path) -> None:
    assert not any(remark.startswith("Left out") for remark in run("guard", folder / "notes.jsonl").remarks)


OF_RECORDS = [name for name in SUITES if name != "precision"]
"""Suites that read records as JSON Lines, and not another benchmark's own files."""


def test_chains_of_conversations_are_scored_when_their_file_is_named(folder: Path) -> None:
    assert run("distillation", folder / "chains.jsonl").settings["records"] == 1


@pytest.mark.parametrize("name", OF_RECORDS)
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


@pytest.mark.parametrize("name", OF_RECORDS)
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


def test_the_command_prints_a_report_and_writes_a_page(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "out.html"

    assert main(["guard", str(folder), "--html", str(page), "--require", "false_positives<=0"]) == 0
    assert "| everthread | 0.000 |" in capsys.readouterr().out
    assert "Evaluation: guard" in page.read_text(encoding="utf-8")


def test_the_command_prints_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["guard", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["settings"] == {"notes": 2}


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--require", "recall=0.5"], 1, "error: recall is 0, and must be at least 0.5"),
        (["--require", "hope=1"], 2, "error: there is no figure 'hope'"),
        (["--require", "recall"], 2, "error: `--require` takes NAME=VALUE"),
        (["none.jsonl"], 1, "error: none.jsonl: cannot be read"),
    ],
)
def test_a_missed_requirement_and_a_wrong_use_are_one_sentence(
    arguments: list[str], code: int, message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["guard", str(folder), *arguments]) == code
    assert message in capsys.readouterr().err


def test_the_command_has_every_suite_that_left_the_package() -> None:
    assert set(MOVED) <= set(SUITES)
