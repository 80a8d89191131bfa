"""`forget`: erase a user or a thread for good, and prove it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from everthread.cli.options import DEFAULT_DATABASE, AsJson, DatabaseUrl
from everthread.cli.output import counted, note, print_json, say
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
        done = erase(storage, user_id=user, thread_id=thread)
    if receipt is not None:
        _write(receipt, done)
    if as_json:
        print_json(done.as_json())
    else:
        _print(done, receipt)
    if not done.is_verified:
        raise StorageError(
            f"erased, but texts of it are still in {', '.join(done.left[:3])}"
            + (f" and {len(done.left) - 3} more places" if len(done.left) > 3 else "")
            + "; `--receipt FILE` lists all places"
        )


def _ask(counts: dict[str, int], user: str | None, thread: str | None) -> None:
    what = f"thread {thread!r}" if user is None else f"user {user!r}"
    note(f"{what} has {_told(counts)}")
    typer.confirm(f"Erase all of {what}? It cannot be undone (`--yes` skips this question).", abort=True, err=True)


def _print(done: Receipt, receipt: Path | None) -> None:
    what = f"thread {done.thread_id!r}" if done.user_id is None else f"user {done.user_id!r}"
    say(f"Erased {what}: {_told(done.erased)}.", "bold")
    searched = f"{counted(done.rows, 'row')} and {counted(sum(done.files.values()), 'byte')}"
    if done.is_verified:
        say(f"Verified: none of {counted(done.texts, 'text')} of it is in {searched}.")
    if done.shared:
        note(f"{counted(done.shared, 'text')} of it {'is' if done.shared == 1 else 'are'} also in what others said")
    if receipt is not None:
        note(f"the receipt is in {receipt}")


def _told(counts: dict[str, int]) -> str:
    return ", ".join(f"{number:,} {kind}" for kind, number in counts.items()) or "nothing but traces of an erasure"


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


def _write(file: Path, done: Receipt) -> None:
    # It names the user, so only its owner may read it.
    with open(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w", encoding="utf-8") as opened:
        json.dump(done.as_json(), opened, ensure_ascii=False, indent=2)
        opened.write("\n")
