"""What the command line prints and reads: safe text, bars, lengths of time, profiles, approvals."""

import io
import json
from pathlib import Path

import pytest
import typer
from rich.console import Console

from everthread.agents import support, travel
from everthread.cli import main
from everthread.cli.chat import InputEnded, read_answer, read_message
from everthread.cli.options import command_line, duration_seconds
from everthread.cli.output import (
    counted,
    hanging,
    plain,
    print_json,
    print_table,
    progress,
    say,
    shortened,
    write_json,
    write_page,
)
from everthread.cli.profile import read_profile
from everthread.cli.prompt_view import bar, cells, headline, legend
from everthread.cli.replay import _COLUMNS, _narrowed
from everthread.errors import RecordError
from everthread.graph.turn_parts import question

EVENT = {
    "tokens": 600,
    "window": 1000,
    "budget": 400,
    "accuracy": "exact",
    "breakdown": {"system": 300, "tools": 200, "history": 100, "free": 299, "safety": 1, "reply_reserve": 100},
}


def test_text_of_others_cannot_steer_the_terminal() -> None:
    assert plain("a\x1b[31mred\x07\u202eback\r\nnext\ttab") == "a\ufffd[31mred\ufffd\ufffdback\nnext\ttab"


@pytest.mark.parametrize("sign", ["\x9b", "\u200e", "\u061c", "\u2028", "\u202e", "\u2066", "\U000e0041"], ids=ascii)
def test_no_sign_that_steers_or_hides_is_printed(sign: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    print_json({"text": f"a{sign}b"})
    write_json(tmp_path / "a.json", {"text": f"a{sign}b"})
    write_page(tmp_path / "a.html", f"<p>a{sign}b</p>")

    printed = capsys.readouterr().out
    assert sign not in plain(f"a{sign}b") + printed
    assert json.loads(printed) == json.loads((tmp_path / "a.json").read_text()) == {"text": f"a{sign}b"}
    assert sign not in (tmp_path / "a.json").read_text() + (tmp_path / "a.html").read_text()
    assert (tmp_path / "a.html").stat().st_mode & 0o777 == 0o600


def test_a_shortened_text_is_one_line_within_the_limit() -> None:
    assert shortened("one\ntwo  three", 8) == "one two…"


@pytest.mark.parametrize(("number", "told"), [(0, "0 turns"), (1, "1 turn"), (1234, "1,234 turns")])
def test_a_number_agrees_with_its_noun(number: int, told: str) -> None:
    assert counted(number, "turn") == told


def test_a_name_that_no_file_can_have_is_told_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["replay", "n" * 300])

    told = capsys.readouterr().err
    assert code == 1
    assert told.endswith("': File name too long\n")
    assert told.count("\n") == 1


def test_what_goes_to_a_pipe_has_no_escape_codes_and_no_line_breaks_of_ours(capsys: pytest.CaptureFixture[str]) -> None:
    say("word " * 60, "bold red")

    assert capsys.readouterr().out == "word " * 60 + "\n"


def test_no_color_switches_every_escape_code_off(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setenv("TERM", "xterm-256color")
    say("in colour", "bold red")
    coloured = "\x1b[" in terminal.getvalue()
    monkeypatch.setenv("NO_COLOR", "1")
    terminal.truncate(0)

    say("plain", "bold red")

    assert coloured
    assert "\x1b" not in terminal.getvalue()


def test_json_is_one_line_for_a_program(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"text": "Grüße\nan alle"})

    assert capsys.readouterr().out == '{"text": "Grüße\\nan alle"}\n'


def test_a_bar_is_as_wide_as_asked_and_shows_every_category_that_has_tokens() -> None:
    drawn = bar(EVENT, width=20).plain

    assert len(drawn) == 22
    assert set(drawn) == set("[STH·-r]")


@pytest.mark.parametrize("tokens", [{"a": 1, "b": 999_999}, {"a": 1, "b": 1, "c": 1}, {"a": 0, "b": 7}])
def test_cells_add_up_to_the_width(tokens: dict[str, int]) -> None:
    shared = cells(tokens, 10)

    assert sum(shared.values()) == 10
    assert all((shared[name] > 0) == (size > 0) for name, size in tokens.items())


def test_nothing_has_no_cells() -> None:
    assert cells({"a": 0}, 10) == {"a": 0}


def test_the_headline_counts_everything_that_takes_from_the_budget() -> None:
    told = headline({**EVENT, "breakdown": {**EVENT["breakdown"], "summary": 50, "session_notes": 5}})  # type: ignore[dict-item]

    assert told == "prompt 600 of 1,000 tokens · history 155 of 400 (exact count)"


def test_the_legend_also_names_a_category_that_it_does_not_know() -> None:
    assert legend({"breakdown": {"system": 3, "notes": 0, "future": 2}}) == "S system 3  future 2"


def test_the_bar_is_coloured_on_a_terminal() -> None:
    terminal = io.StringIO()

    Console(file=terminal, force_terminal=True, color_system="standard").print(bar(EVENT))

    assert "\x1b[36mS" in terminal.getvalue()


@pytest.mark.parametrize(("text", "seconds"), [("30s", 30), ("30m", 1800), ("2h", 7200), ("1d", 86400), ("0.5H", 1800)])
def test_a_length_of_time_is_read(text: str, seconds: float) -> None:
    assert duration_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "30", "m", "-1s", "nan s", "infd", "1 week"])
def test_what_is_no_length_of_time_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="not a length of time"):
        duration_seconds(text)


def test_a_block_between_fences_is_one_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO('"""\nfirst\n\nsecond\n"""\nnext\n'))

    assert [read_message(), read_message(), read_message()] == [("first\n\nsecond", True), ("next", False), None]


def test_the_end_of_the_input_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("YES \n\n"))

    assert [read_answer("Sure?"), read_answer("Sure?")] == ["YES", ""]
    with pytest.raises(InputEnded):
        read_answer("Sure?")


def test_an_approval_is_shown_in_the_agents_words_or_field_by_field() -> None:
    assert question({"summary": "Book it?", "details": {"price": 3}}) == "Book it?"
    assert question({"what": "delete", "rows": [1, 2]}) == "what: delete\nrows:\n- 1\n- 2"
    assert question("Sure?") == "Sure?"


@pytest.mark.parametrize("name", ["p.json", "p.yaml"])
def test_a_profile_is_read_from_json_and_yaml(tmp_path: Path, name: str) -> None:
    given = {"name": "Ada", "passport_expiry": "2031-05-01", "seat_preference": "Aisle"}
    # JSON with tabs is not YAML, and YAML makes a date of the expiry unless it is told not to.
    text = json.dumps(given, indent="\t") if name == "p.json" else "\n".join(f"{k}: {v}" for k, v in given.items())
    (tmp_path / name).write_text(text)

    assert read_profile(tmp_path / name, travel) == {**given, "seat_preference": "aisle"}


def test_every_field_that_does_not_fit_is_named(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text("name: Ada\nage: old\nsize: 7\n")

    with pytest.raises(RecordError, match=r"`age`: .*\(got 'old'\); `size`: Extra inputs are not permitted$"):
        read_profile(tmp_path / "p.yaml", travel)


def test_a_document_number_is_refused_and_not_repeated(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text("name: Ada\npassport_number: X1234567\n")

    with pytest.raises(RecordError, match="`passport_number` does not belong") as caught:
        read_profile(tmp_path / "p.yaml", travel)

    assert "X1234567" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("p.json", b'{"name": "Ada",\n}', r"p\.json:2 is not JSON"),
        ("p.yaml", b"name: [Ada\n", r"p\.yaml:2 is neither JSON nor YAML"),
        ("p.yaml", b"- Ada", "holds a list"),
        ("p.yaml", b"", "is empty"),
        ("p.yaml", b"\xff\xfe\x00", "not UTF-8"),
        ("p.yaml", None, "No such file"),
        ("p.yaml", b"name: Ada", "`employee_id`: Field required"),
    ],
)
def test_a_file_that_is_no_profile_is_refused(tmp_path: Path, name: str, content: bytes | None, message: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)

    with pytest.raises(RecordError, match=message):
        read_profile(tmp_path / name, support)


def test_a_line_is_wrapped_at_words_behind_its_head(capsys: pytest.CaptureFixture[str]) -> None:
    hanging("agent  ", "word " * 60)

    first, *rest = capsys.readouterr().out.splitlines()
    assert first.startswith("agent  word word")
    assert rest
    assert all(line.startswith("       word") and len(line) <= 120 for line in rest)


COLUMNS, ROWS = (
    ("policy", "tokens", "outcome"),
    [("summarize", "1,234,567", "replayed"), ("salience", "12", "refused")],
)


def test_a_table_has_names_on_the_left_and_figures_on_the_right(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(COLUMNS, ROWS, words=("outcome",))

    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == [
        "policy        tokens  outcome",
        "summarize  1,234,567  replayed",
        "salience          12  refused",
    ]


def test_no_line_of_a_table_is_cut(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("name", *(f"figure {number}" for number in range(60))), [["x", *["1,234,567"] * 60]])
    in_a_pipe = capsys.readouterr().out.splitlines()
    narrow = Console(file=io.StringIO(), width=8, force_terminal=True)
    monkeypatch.setattr("everthread.cli.output.out", lambda: narrow)
    print_table(COLUMNS, ROWS)

    assert len(in_a_pipe) == 2
    assert "summarize  1,234,567" in narrow.file.getvalue()  # type: ignore[attr-defined]


def test_a_model_whose_tokens_are_estimated_is_told(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    lines = tmp_path / "none.jsonl"
    lines.write_text("")

    main(["replay", str(lines), "--count-as", "foo"])
    estimated = capsys.readouterr().err
    main(["replay", str(lines), "--count-as", "gpt-4.1"])

    assert "the tokens of 'foo' are estimated" in estimated
    assert "estimated" not in capsys.readouterr().err


def test_the_table_of_replayed_records_fits_100_columns(capsys: pytest.CaptureFixture[str]) -> None:
    figures = ["123", "1,234", "128,000", "1,234", "1,234", "123", "100%", "123.4", "12 violations"]
    rows = _narrowed([["a-very-long-name/" * 5 + "end", *figures], ["short", *figures]])

    print_table(_COLUMNS, rows, words=("outcome",))

    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 100
    assert lines[1].startswith("a-very")
    assert lines[1].split()[0].endswith("end")
    assert lines[2].startswith("short ")


def test_progress_without_a_terminal_is_a_line_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("everthread.cli.output._LINE_SECONDS", 0.0)

    with progress("erasing") as report:
        report("reading", 1, 3)
        report("reading", 2, 3)

    assert capsys.readouterr().err.splitlines()[:3] == ["erasing …", "reading: 1 of 3", "reading: 2 of 3"]


def test_a_command_to_copy_shows_no_password() -> None:
    url = "postgresql://ann:secret@host/threads"

    assert command_line("show", "t 1", database=url) == "everthread show 't 1' --database postgresql://ann@host/threads"


def test_a_command_to_copy_leaves_out_the_database_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVERTHREAD_DATABASE", "sqlite:///mine.db")

    assert command_line("show", "t", database="sqlite:///mine.db", user=None) == "everthread show t"
    assert command_line("show", "t") == "everthread show t --database sqlite:///everthread.db"
