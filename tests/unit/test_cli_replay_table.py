"""Tables of figures on terminals of any width and in pipes."""

import io

import pytest
from rich.console import Console

from everthread.cli import replay_table
from everthread.cli.replay_table import print_table

COLUMNS = ("policy", "tokens", "outcome")
ROWS = [("summarize", "1,234,567", "replayed"), ("salience", "12", "refused")]


def terminal(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    console = Console(file=io.StringIO(), width=width, force_terminal=True)
    monkeypatch.setattr(replay_table, "out", lambda: console)


def test_names_and_words_stand_on_the_left_and_figures_on_the_right(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(COLUMNS, ROWS, words=("outcome",))

    assert capsys.readouterr().out.splitlines() == [
        "policy        tokens  outcome",
        "summarize  1,234,567  replayed",
        "salience          12  refused",
    ]


def test_a_pipe_gets_every_figure_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("name", *(f"figure {number}" for number in range(60))), [["x", *["1,234,567"] * 60]])

    assert len(capsys.readouterr().out.splitlines()) == 2


def test_a_narrow_terminal_gets_parts_that_repeat_the_names(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal(monkeypatch, 20)

    print_table(COLUMNS, ROWS)

    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines] == [
        ["policy", "tokens"],
        ["summarize", "1,234,567"],
        ["salience", "12"],
        [],
        ["policy", "outcome"],
        ["summarize", "replayed"],
        ["salience", "refused"],
    ]


def test_a_figure_is_whole_also_where_nothing_fits(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal(monkeypatch, 8)

    print_table(COLUMNS, ROWS)

    assert "summarize  1,234,567" in capsys.readouterr().out
