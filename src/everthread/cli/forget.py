"""`forget`: erase a user or a thread for good, and prove it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from everthread.cli.options import DEFAULT_DATABASE, AsJson, DatabaseUrl
from everthread.cli.output import counted, note, print_json, say, write_json
from everthread.cli.progress import Progress
from everthread.errors import SettingsError, StorageError

if TYPE_CHECKING:
    from everthread.storage.erasure import Receipt

__all__ = ["forget"]

_WAIT_SECONDS = 20.0
"""How long a run on one of the threads is waited for; longer than the lease of a process that was killed."""


def forget(
    user: Annotated[
        str | None, typer.Option("--user", metavar="USER", help="Erase everything of this user, all threads included.")
    ] = None,
    thread: Annotated[
        str | None, typer.Option("--thread", metavar="THREAD", help="Erase this thread and what came only from it.")
    ] = None,
    receipt: Annotated[
        Path | None, typer.Option("--receipt", metavar="FILE", help="Write what was erased, as JSON, to a new file.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    database: DatabaseUrl = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """Erase a user or a thread for good, and verify it.

    Rows, full-text index, write-ahead log and free space of the file; then every table and every byte is searched for
    texts of what was erased. Copies elsewhere, such as backups, are not reached.
    """
    from everthread.storage.erasure import erase, held
    from everthread.storage.open import open_storage

    if (user is None) == (thread is None):
        raise SettingsError("say what to erase: `--user USER` or `--thread THREAD`, one of both")
    _check_receipt(receipt)
    with open_storage(database, create=False, lock_timeout_seconds=_WAIT_SECONDS) as storage:
        if not yes:
            _ask(held(storage, user_id=user, thread_id=thread), user, thread)
        with Progress(f"erasing {_who(user, thread)}") as shown:
            done = erase(storage, user_id=user, thread_id=thread, progress=shown.at)
    unwritten = _write(receipt, done)
    if as_json or unwritten:
        print_json(done.as_json())
    else:
        _print(done, receipt)
    if not done.is_verified:
        raise StorageError(
            f"erased, but texts of it are still in {_places(done.left)}; `--receipt FILE` lists every place"
        )
    if unwritten:
        raise StorageError(f"{_who(user, thread)} is erased, but the receipt went to the standard output: {unwritten}")


def _write(receipt: Path | None, done: Receipt) -> str:
    """Write the receipt, if one is wanted; say why it could not be, since what it tells of is gone."""
    try:
        if receipt is not None:
            write_json(receipt, done.as_json())
    except StorageError as failure:
        return str(failure)
    return ""


def _who(user: str | None, thread: str | None) -> str:
    return f"thread {thread!r}" if user is None else f"user {user!r}"


def _ask(counts: dict[str, int], user: str | None, thread: str | None) -> None:
    note(f"{_who(user, thread)} has {in_words(counts)}")
    typer.confirm(
        f"Erase all of {_who(user, thread)}? It cannot be undone (`--yes` skips this question).", abort=True, err=True
    )


def _print(done: Receipt, receipt: Path | None) -> None:
    say(f"Erased {_who(done.user_id, done.thread_id)}: {in_words(done.erased)}.", "bold")
    searched = (
        f"{counted(done.rows, 'record')}, the search index and {counted(sum(done.files.values()), 'byte')} of files"
    )
    if done.is_verified:
        say(f"Verified: none of {counted(done.texts, 'text')} of it is in {searched}.")
    if done.shared:
        note(f"{counted(done.shared, 'text')} of it {'is' if done.shared == 1 else 'are'} also in what others said")
    if receipt is not None:
        note(f"the receipt is in {receipt}")


_WORDS = {
    "profile": ("profile", "profiles"),
    "notes": ("long-term note", "long-term notes"),
    "session notes": ("session note", "session notes"),
    "bookings": ("booking", "bookings"),
    "tickets": ("ticket", "tickets"),
    "transcript": ("message of the transcript", "messages of the transcript"),
    "summaries": ("summary", "summaries"),
    "checkpoints": ("checkpoint", "checkpoints"),
    "ledger": ("event of the ledger", "events of the ledger"),
    "sources of kept notes": ("source of a note that stays", "sources of notes that stay"),
}
"""What people call the kinds of records, in the order in which they are told."""

_INTERNAL = ("sessions", "writes", "handles", "left", "unanswered")
"""Kinds that nobody has a word for; a receipt counts each."""


def in_words(counts: Mapping[str, int]) -> str:
    """Tell what is or was held: `1 profile, 12 messages of the transcript and 30 internal records`."""
    kinds = [*(kind for kind in _WORDS if kind in counts), *(kind for kind in counts if kind not in _WORDS)]
    told = [
        f"{counts[kind]:,} {_WORDS.get(kind, (kind, kind))[counts[kind] != 1]}"
        for kind in kinds
        if kind not in _INTERNAL
    ]
    if internal := sum(counts.get(kind, 0) for kind in _INTERNAL):
        told.append(counted(internal, "internal record"))
    if not told:
        return "nothing but traces of an erasure"
    return " and ".join([*([", ".join(told[:-1])] if told[1:] else []), told[-1]])


def _places(left: Sequence[str]) -> str:
    """Name where texts are left; the receipt names tables and rows."""
    places = list(dict.fromkeys(map(_place, left)))
    return ", ".join(places[:3]) + (f" and {len(places) - 3} more places" if len(places) > 3 else "")


def _place(left: str) -> str:
    table, _, row = left.partition(" ")
    if table == "the":
        return left.replace("the full-text index", "the search index")
    if table.startswith("lexical_"):
        return "the search index"
    if table in ("checkpoints", "writes"):
        return f"the checkpoints of thread {row!r}"
    return f"the record {row}" if table == "store" else f"the table {table!r}"


def _check_receipt(file: Path | None) -> None:
    """Find out before anything is erased whether the receipt can be written."""
    if file is None:
        return
    if file.exists():
        raise SettingsError(f"{str(file)!r} exists already; a receipt never takes the place of another file")
    if not file.absolute().parent.is_dir():
        raise SettingsError(f"the folder of {str(file)!r} does not exist; create it or choose another place")
    if not os.access(file.absolute().parent, os.W_OK):
        raise SettingsError(f"the folder of {str(file)!r} cannot be written; choose another place")
