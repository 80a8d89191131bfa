"""Read what the user types or pipes in."""

import sys
from contextlib import suppress

__all__ = ["FENCE", "InputEnded", "is_interactive", "read_answer", "read_message"]

FENCE = '"""'
"""Opens and closes a message of several lines."""

_PROMPT = "you> "


class InputEnded(Exception):
    """The input ended where an answer was wanted; an answer that nobody gave is neither a yes nor a no."""


def is_interactive() -> bool:
    """Tell whether a person is typing."""
    return sys.stdin.isatty()


def read_message() -> str | None:
    """Read the next message, without blank space around it; None at the end of the input.

    A pasted text of several lines is one message where readline knows bracketed paste, and anywhere
    between two fences.
    """
    line = _read_line(_PROMPT)
    if line is None or line.strip() != FENCE:
        return None if line is None else line.strip()
    block: list[str] = []
    while (line := _read_line("...  ")) is not None and line.strip() != FENCE:
        block.append(line)
    return "\n".join(block).strip()


def read_answer(question: str) -> str:
    """Ask for one line.

    Raises:
        InputEnded: there is none.
    """
    if not is_interactive():
        print(question, flush=True)
    line = _read_line(f"{question} ")
    if line is None:
        raise InputEnded
    return line.strip().lower()


def _read_line(prompt: str) -> str | None:
    """Read one line without its line end; None at the end of the input."""
    if not is_interactive():
        line = sys.stdin.readline()
        return line.rstrip("\r\n") if line else None
    with suppress(ImportError):
        import readline  # noqa: F401 - gives `input` editing, a history and bracketed paste
    try:
        return input(prompt)
    except EOFError:
        print()
        return None
