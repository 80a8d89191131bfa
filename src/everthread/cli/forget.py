"""`forget`: erase a user or a thread for good, and prove it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from everthread.cli.options import (
    DEFAULT_DATABASE,
    WAIT_SECONDS,
    AsJson,
    DatabaseUrl,
    Yes,
    command_line,
    thread_option,
    user_option,
)
from everthread.cli.output import check_writable, confirm, counted, note, print_json, progress, say, write_json
from everthread.cli.reading import note_busy
from everthread.errors import SettingsError, StorageError
from everthread.plain import enumerated
from everthread.storage.erasure import Receipt, erase, held
from everthread.storage.open import open_storage
from everthread.storage.reading import user_records


def forget(
    user: Annotated[str | None, user_option("Erase everything of this user, all threads included.")] = None,
    thread: Annotated[
        str | None, thread_option("Erase this thread and what came only from it.", metavar="THREAD")
    ] = None,
    receipt: Annotated[
        Path | None, typer.Option("--receipt", metavar="FILE", help="Write what was erased, as JSON, to a new file.")
    ] = None,
    yes: Yes = False,
    database: DatabaseUrl = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """Erase a user or a thread for good, and verify it.

    Rows, full-text index, write-ahead log and free space of the file; then every table and every byte is searched for
    texts of what was erased. Copies elsewhere, such as backups, are not reached.
    """
    if (user is None) == (thread is None):
        raise SettingsError("say what to erase: either `--user USER` or `--thread THREAD`")
    check_writable(receipt, new=True)
    with open_storage(database, create=False, lock_timeout_seconds=WAIT_SECONDS) as storage:
        if not yes:
            _ask(held(storage, user_id=user, thread_id=thread), user, thread)
        threads = [str(thread)] if user is None else [one["thread_id"] for one in user_records(storage.store, user)]
        note_busy(storage, threads)
        with progress(f"erasing {_who(user, thread)}") as report:
            erased = erase(storage, user_id=user, thread_id=thread, progress=report)
    unwritten = _write(receipt, erased)
    if as_json or unwritten:
        print_json(erased.as_json())
    else:
        _print(erased, receipt, database)
    if not erased.is_verified:
        raise StorageError(
            f"erased, but texts of it are still in {_places(erased.left)}; `--receipt FILE` lists every place"
        )
    if unwritten:
        raise StorageError(f"{_who(user, thread)} is erased, but the receipt went to the standard output: {unwritten}")


def _write(file: Path | None, receipt: Receipt) -> str:
    """Write the receipt to a file; return why that failed, because what was erased cannot be counted again."""
    try:
        if file is not None:
            write_json(file, receipt.as_json())
    except StorageError as failure:
        return str(failure)
    return ""


def _who(user: str | None, thread: str | None) -> str:
    return f"thread {thread!r}" if user is None else f"user {user!r}"


def _ask(counts: dict[str, int], user: str | None, thread: str | None) -> None:
    note(f"{_who(user, thread)} has {in_words(counts)}")
    confirm(f"Erase all of {_who(user, thread)}? It cannot be undone (`--yes` skips this question).")


def _print(receipt: Receipt, file: Path | None, database: str) -> None:
    say(f"Erased {_who(receipt.user_id, receipt.thread_id)}: {in_words(receipt.erased)}.", "bold")
    size = counted(sum(receipt.files.values()), "byte")
    if receipt.is_verified:
        searched = f"{counted(receipt.rows, 'record')}, the search index and {size} of files"
        say(f"Verified: none of {counted(receipt.texts, 'text')} of it is in {searched}.")
    if receipt.shared:
        verb = "is" if receipt.shared == 1 else "are"
        note(f"{counted(receipt.shared, 'text')} of it {verb} also in what others said")
    for thread_id in receipt.strangers:
        note(
            f"the session record of thread {thread_id!r} cannot be read, so nobody knows whose it is; "
            f"`{command_line('forget', thread=thread_id, database=database)}` erases it"
        )
    if file is not None:
        note(f"the receipt is in {file}")


_WORDS = {
    "profile": ("profile", "profiles"),
    "notes": ("long-term note", "long-term notes"),
    "session notes": ("session note", "session notes"),
    "bookings": ("booking", "bookings"),
    "tickets": ("ticket", "tickets"),
    "transcript": ("message of the transcript", "messages of the transcript"),
    "summaries": ("summary", "summaries"),
    "checkpoints": ("checkpoint", "checkpoints"),
    "state": ("kept state key", "kept state keys"),
    "receipts": ("receipt of a deletion", "receipts of deletions"),
    "ledger": ("event of the ledger", "events of the ledger"),
    "sources of kept notes": ("source of a note that stays", "sources of notes that stay"),
}
"""What people call the kinds of records, in the order of a sentence."""

_INTERNAL = ("sessions", "writes", "handles", "left", "prompts", "removed", "said", "unanswered", "steering")
"""Kinds that nobody has a word for; a receipt counts each."""


def in_words(counts: Mapping[str, int]) -> str:
    """Put counts into a sentence, such as `1 profile, 12 messages of the transcript and 30 internal records`."""
    kinds = [*(kind for kind in _WORDS if kind in counts), *(kind for kind in counts if kind not in _WORDS)]
    parts = [
        f"{counts[kind]:,} {_WORDS.get(kind, (kind, kind))[counts[kind] != 1]}"
        for kind in kinds
        if kind not in _INTERNAL
    ]
    if internal := sum(counts.get(kind, 0) for kind in _INTERNAL):
        parts.append(counted(internal, "internal record"))
    if not parts:
        return "nothing but traces of an erasure"
    return enumerated(parts)


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
