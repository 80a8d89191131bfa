"""Where output goes: data to stdout, all else to stderr, and nobody's text steers the terminal."""

import json
import os
import re
import sys
import textwrap
from contextlib import suppress
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from everthread.errors import StorageError

__all__ = [
    "counted",
    "err",
    "error",
    "in_the_middle",
    "note",
    "out",
    "plain",
    "print_json",
    "say",
    "shortened",
    "wrapped",
    "write_json",
]

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""What could move the cursor, change colours or turn text around, tab and line feed excepted."""

_PLAIN_WIDTH = 120
"""Columns of tables that go to a file or a pipe."""


def out() -> Console:
    """Return the console on stdout."""
    return _console(stderr=False)


def err() -> Console:
    """Return the console on stderr."""
    return _console(stderr=True)


def say(text: str = "", style: str = "") -> None:
    """Print a line of text on stdout as it is; only the terminal breaks it."""
    out().print(Text(plain(text), style=style), soft_wrap=True)


def note(text: str) -> None:
    """Print a remark on stderr."""
    err().print(Text(plain(text), style="dim"), soft_wrap=True)


def error(text: str) -> None:
    """Print a failure on stderr."""
    err().print(Text.assemble(("error: ", "bold red"), plain(text)), soft_wrap=True)


def print_json(value: Any) -> None:
    """Print one JSON document on stdout: indented for a person, on one line for a program."""
    unicode = "utf" in (sys.stdout.encoding or "").lower()
    text = json.dumps(value, ensure_ascii=not unicode, indent=2 if sys.stdout.isatty() else None)
    sys.stdout.write(text + "\n")


def write_json(file: Path, value: Any) -> None:
    """Write one JSON document to a new file, which only its owner may read: it says much of a user.

    Raises:
        StorageError: it cannot be written, and there is no such file then.
    """
    try:
        with open(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w", encoding="utf-8") as opened:
            json.dump(value, opened, ensure_ascii=False, indent=2)
            opened.write("\n")
    except FileExistsError as error:
        raise StorageError(f"{str(file)!r} exists already; it was left as it is") from error
    except OSError as error:
        with suppress(OSError):
            file.unlink()
        raise StorageError(f"cannot write {str(file)!r}: {error.strerror}") from error


def plain(text: str) -> str:
    """Replace control characters, which a message may hold, by one that only shows."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, such as `1 turn` or `2,000 turns`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def shortened(text: str, limit: int = 160) -> str:
    """Return a text on one line, cut at `limit` characters."""
    line = " ".join(plain(text).split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def in_the_middle(text: str, limit: int) -> str:
    """Shorten a long text in its middle, so that both ends of an id stay readable."""
    head = (limit - 1) // 2
    return text if len(text) <= limit else f"{text[:head]}…{text[len(text) - (limit - 1 - head) :]}"


def wrapped(text: str, indent: int) -> list[str]:
    """Cut a line into lines that fit the terminal, and 120 columns, behind an indent."""
    width = max(min(out().width, _PLAIN_WIDTH) - indent, 20)
    return textwrap.wrap(plain(text), width, break_long_words=False, break_on_hyphens=False) or [""]


def _console(*, stderr: bool) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    # Without a colour system rich writes no escape code at all; NO_COLOR alone would leave bold and dim.
    plain_only = bool(os.environ.get("NO_COLOR")) or not stream.isatty()
    width = None if stream.isatty() else _PLAIN_WIDTH
    return Console(
        file=stream,
        color_system=None if plain_only else "auto",
        width=width,
        markup=False,
        highlight=False,
        emoji=False,
    )
