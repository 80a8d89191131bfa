"""`everthread guard`."""

import io
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from everthread.cli import main

_LINES = '{"id": "a", "text": "Likes tea."}\n\n{"id": "b", "text": "Card 4111 1111 1111 1111"}\n'


def _file(folder: Path, text: str) -> str:
    path = folder / "notes.jsonl"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_json_gives_a_line_for_each_text_and_nothing_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["guard", _file(tmp_path, _LINES), "--json"]) == 0

    shown = capsys.readouterr().out
    rows = [json.loads(line) for line in shown.splitlines()]
    assert [(row["id"], row["decision"], row["category"]) for row in rows] == [
        ("a", "allow", ""),
        ("b", "block", "card"),
    ]
    assert all(row["ms"] >= 0 for row in rows)
    assert "4111" not in shown


def test_without_json_there_is_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["guard", _file(tmp_path, _LINES)]) == 0

    shown = capsys.readouterr()
    assert "block" in shown.out
    assert "1 of 2 blocked" in shown.err


def test_a_dash_reads_stdin(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(_LINES.encode())))

    assert main(["guard", "-", "--json"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ('{"id": "a"}', 1, "line 1: wants a JSON object with `id` and `text`"),
        ("\n[1]", 1, "line 2: wants a JSON object"),
        ('{"id": 1, "text": "x"}', 1, "`id` and `text` must be strings"),
        ("{", 1, "line 1: wants"),
    ],
)
def test_a_bad_line_is_one_clear_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, code: int, said: str
) -> None:
    assert main(["guard", _file(tmp_path, text), "--json"]) == code

    shown = capsys.readouterr()
    assert said in shown.err
    assert not shown.out


def test_a_missing_file_fails_as_in_the_other_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["guard", "no-such-file.jsonl"]) == 1
    assert "no-such-file.jsonl" in capsys.readouterr().err
