"""Show what was read: notes, dates, and whose a thread is."""

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from everthread.cli.output import note as remark
from everthread.cli.output import say
from everthread.errors import NotFoundError
from everthread.state import Note
from everthread.storage.reader import Reader
from everthread.storage.reading import exists, gone

if TYPE_CHECKING:
    from everthread.storage.open import Storage

COLOURS = {"-": "red", "+": "green", "~": "yellow"}
"""Of what left, came or changed, by its sign."""


def when(stamp: str) -> str:
    """Return an ISO date and time without its fraction, such as `2026-11-21 07:05:21Z`."""
    return stamp[:19].replace("T", " ") + "Z" if len(stamp) > 19 else stamp


def changed_lines(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """Return the lines that differ, each behind `- ` or `+ `."""
    return [line for line in difflib.ndiff(before, after) if line[0] in "+-"]


def check_owner(record: Mapping[str, Any], thread_id: str, user_id: str | None) -> str:
    """Return the user of a thread: the one that was asked for, else its owner, else `local`.

    Raises:
        NotFoundError: the thread belongs to somebody else.
    """
    owner = record.get("user_id")
    if user_id is not None and owner not in (None, user_id):
        raise NotFoundError(f"user {user_id!r} has no thread {thread_id!r}; it belongs to user {owner!r}")
    return str(user_id or owner or "local")


def note_busy(storage: "Storage", threads: Iterable[str]) -> bool:
    """Tell whether somebody else runs one of some threads, and say that a command waits for it."""
    holders = storage.locks.holders(threads)
    for thread_id, holder in holders.items():
        remark(f"{holder} is running thread {thread_id!r}; waiting up to {storage.locks.timeout_seconds:g} s …")
    return bool(holders)


@contextmanager
def explained(reader: Reader, thread_id: str) -> Iterator[None]:
    """Say of a thread that is not there when retention took it.

    Raises:
        NotFoundError: there is no such thread any more.
    """
    try:
        yield
    except NotFoundError as error:
        at = None if exists(reader, thread_id) else gone(reader, thread_id)
        if at is None:
            raise
        raise NotFoundError(
            f"there is no thread {thread_id!r} any more: retention deleted it at {when(at)}; "
            "`everthread retain --receipts` says what went"
        ) from error


def note_text(note: Note) -> str:
    """Return a note on one line: date, text, keywords, and its status when it is not active."""
    keywords = f" [{', '.join(note.keywords)}]" if note.keywords else ""
    status = "" if note.status == "active" else f" ({note.status})"
    return f"{note.date}  {note.text}{keywords}{status}"


def print_notes(heading: str, notes: Sequence[Note]) -> None:
    """Print notes below a heading."""
    say(heading, "bold")
    for note in notes:
        say(f"  {note_text(note)}" + ("  (this session only)" if note.scope == "session" else ""))
    if not notes:
        say("  none", "dim")
