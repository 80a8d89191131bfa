"""Where output goes: data to stdout, remarks and progress to stderr, and nobody's text steers the terminal."""

import json
import os
import sys
import textwrap
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path
from typing import Any, Protocol, TextIO

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from everthread.errors import SettingsError, StorageError
from everthread.plain import CONTROL, counted, plain

__all__ = [
    "check_writable",
    "confirm",
    "counted",
    "err",
    "error",
    "first_of",
    "hanging",
    "in_options",
    "note",
    "out",
    "plain",
    "print_json",
    "print_table",
    "progress",
    "say",
    "shortened",
    "write_json",
    "write_page",
]

_PLAIN_WIDTH = 120
"""Columns of text that goes to a file or a pipe."""


_LINE_SECONDS = 10.0
"""Between two lines of progress where no terminal shows a bar."""


class Report(Protocol):
    """Shows how far a command is."""

    def __call__(self, step: str, done: int = 0, total: int | None = None) -> None:
        """Take what is being done, how many parts are done, and of how many; None when nobody knows."""


def out() -> Console:
    """Return the console on stdout."""
    return _console(stderr=False)


def err() -> Console:
    """Return the console on stderr."""
    return _console(stderr=True)


def say(text: str = "", style: str = "") -> None:
    """Print a line on stdout; only the terminal wraps it."""
    out().print(Text(plain(text), style=style), soft_wrap=True)


def note(text: str) -> None:
    """Print a remark on stderr."""
    err().print(Text(plain(text), style="dim"), soft_wrap=True)


def error(text: str) -> None:
    """Print a failure on stderr."""
    err().print(Text.assemble(("error: ", "bold red"), plain(text)), soft_wrap=True)


_IN_OPTIONS = {
    "wait for that run or raise `lock_timeout_seconds`": "wait for that run and try again",
    "`window`": "`--window`",
    "`end_idle_seconds`": "`--idle`",
}
"""What the command line has for arguments of Python."""


def in_options(failure: Exception) -> str:
    """Return the sentence of a failure, with advice that a command line can follow."""
    text = str(failure)
    for argument, option in _IN_OPTIONS.items():
        text = text.replace(argument, option)
    return text


def hanging(head: str, text: str, style: str = "") -> None:
    """Print text behind a head, wrapped at words; continuation lines are indented as far as the head is long."""
    width = max(min(out().width, _PLAIN_WIDTH), len(head) + 20)
    wrapper = textwrap.TextWrapper(width, head, " " * len(head), break_long_words=False, break_on_hyphens=False)
    say(wrapper.fill(plain(text)) or head.rstrip(), style)


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], *, words: Collection[str] = (), dim: Collection[int] = ()
) -> None:
    """Print a table on stdout; its lines are never cut, a narrow terminal wraps them.

    Args:
        columns: headings; the first column has names.
        rows: cells, as many as there are columns.
        words: headings of columns that are left-aligned like the names.
        dim: numbers of rows that step back.
    """
    table = Table(box=None, pad_edge=False, header_style="bold")
    for place, column in enumerate(columns):
        table.add_column(column, justify="left" if not place or column in words else "right", no_wrap=True)
    for place, row in enumerate(rows):
        table.add_row(*(Text(plain(cell)) for cell in row), style="dim" if place in dim else None)
    console = out()
    # Wider than a narrow terminal, which then wraps the lines; rich would shorten figures.
    console.width = max(console.width, console.measure(table, options=console.options.update(max_width=10_000)).maximum)
    console.print(table)


def print_json(value: Any) -> None:
    """Print one JSON document on stdout: indented for a person, on one line for a program."""
    unicode = "utf" in (sys.stdout.encoding or "").lower()
    text = _escaped(json.dumps(value, ensure_ascii=not unicode, indent=2 if sys.stdout.isatty() else None))
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def write_json(file: Path, value: Any) -> None:
    """Write one JSON document to a new file that only its owner may read.

    Raises:
        StorageError: the file exists or cannot be written; no half-written file is left.
    """
    try:
        with open(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w", encoding="utf-8") as opened:
            _save(opened, _escaped(json.dumps(value, ensure_ascii=False, indent=2)) + "\n")
    except FileExistsError as failure:
        raise StorageError(f"{str(file)!r} exists already; it was left as it is") from failure
    except OSError as failure:
        with suppress(OSError):
            file.unlink()
        raise StorageError(f"cannot write {str(file)!r}: {failure.strerror}") from failure


def _save(file: TextIO, text: str) -> None:
    file.write(text)


def check_writable(file: Path | None, *, new: bool = False) -> None:
    """Refuse a file that cannot be written before any work is done for it.

    Raises:
        SettingsError: it exists although it must be new, is a folder or out of reach, or its folder is missing or
            read-only.
    """
    if file is None:
        return
    folder = file.absolute().parent
    try:
        is_folder = file.is_dir()
    except OSError as failure:
        raise SettingsError(f"cannot write {str(file)!r}: {failure.strerror}") from failure
    if is_folder:
        raise SettingsError(f"cannot write {str(file)!r}: it is a folder")
    if new and file.exists():
        raise SettingsError(f"{str(file)!r} exists already; choose a new file")
    if not folder.is_dir():
        raise SettingsError(f"cannot write {str(file)!r}: its folder does not exist")
    if not os.access(folder, os.W_OK):
        raise SettingsError(f"cannot write {str(file)!r}: its folder is read-only")


def write_page(file: Path, page: str) -> None:
    """Write a report to open in a browser, which only its owner may read; control characters are replaced.

    Raises:
        SettingsError: the file cannot be written.
    """
    try:
        with open(os.open(file, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "w", encoding="utf-8") as opened:
            os.fchmod(opened.fileno(), 0o600)
            opened.write(plain(page))
    except OSError as failure:
        raise SettingsError(f"cannot write {str(file)!r}: {failure.strerror}") from failure
    note(f"the report is in {file}")


def confirm(question: str) -> None:
    """Ask before something that cannot be undone; go on only with a yes.

    Raises:
        typer.Abort: it is a no, or the input ended.
        KeyboardInterrupt: Ctrl-C.
    """
    try:
        # `err` alone leaves a space on stdout, which is for data.
        with redirect_stdout(sys.stderr):
            typer.confirm(question, abort=True, err=True)
    except typer.Abort as stop:
        # The prompt makes one of the other.
        if isinstance(stop.__context__, KeyboardInterrupt):
            note("")
            raise KeyboardInterrupt from None
        raise


@contextmanager
def progress(task: str = "", *, hidden: bool = False) -> Iterator[Report]:
    """Show how far a long command is: a bar on a terminal, elsewhere a line at its start, its end and every 10 s.

    A command that fails before its first report stays silent.

    Args:
        task: what is done, such as `erasing thread 't-1'`; without it nothing is written but the bar.
        hidden: show no bar either.
    """
    console = err()
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    label = TextColumn("{task.description}", markup=False)
    bar = Progress(*columns, label, console=console, transient=True, disable=hidden or not console.is_terminal)
    row = bar.add_task(task, total=None)
    began: float | None = None
    told = 0.0

    def report(step: str, done: int = 0, total: int | None = None) -> None:
        nonlocal began, told
        if began is None:
            began = told = time.monotonic()
            bar.start()
            if task and not console.is_terminal:
                note(f"{task} …")
        bar.update(row, description=shortened(step, 50), completed=done, total=total)
        if task and not console.is_terminal and time.monotonic() - told >= _LINE_SECONDS:
            told = time.monotonic()
            note(f"{shortened(step, 50)}: {done:,}" + (f" of {total:,}" if total else ""))

    try:
        yield report
    finally:
        bar.stop()
    if task and began is not None and not console.is_terminal:
        note(f"{task}: done after {time.monotonic() - began:.1f} s")


def _escaped(document: str) -> str:
    """Write control characters inside the strings of a JSON document as `\\u009b`; it means the same."""
    return CONTROL.sub(lambda match: json.dumps(match.group())[1:-1], document)


def first_of(names: Sequence[str], most: int) -> str:
    """Name the first of some things, and say how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")


def shortened(text: str, limit: int = 160) -> str:
    """Return a text on one line, cut at `limit` characters."""
    line = " ".join(plain(text).split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def _console(*, stderr: bool) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    # Without a colour system rich writes no escape code at all; NO_COLOR alone would leave bold and dim.
    colourless = bool(os.environ.get("NO_COLOR")) or not stream.isatty()
    return Console(
        file=stream,
        color_system=None if colourless else "auto",
        width=None if stream.isatty() else _PLAIN_WIDTH,
        markup=False,
        highlight=False,
        emoji=False,
    )
