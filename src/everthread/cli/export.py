"""`export`: everything that is held of a user, as one JSON document."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated

import typer

from everthread.cli.options import DEFAULT_DATABASE, DatabaseUrl
from everthread.cli.output import counted, note, print_json
from everthread.errors import SettingsError

__all__ = ["export"]


def export(
    user: Annotated[str, typer.Option("--user", metavar="USER", help="Whose data.")],
    output: Annotated[
        Path | None, typer.Option("--output", metavar="FILE", help="A new file to write.  [default: print it]")
    ] = None,
    database: DatabaseUrl = DEFAULT_DATABASE,
) -> None:
    """Export everything that is held of a user, as JSON.

    Profile, notes, bookings, tickets, and of every thread the record, all messages, notes, summaries and events.
    """
    from everthread.cli.holdings import document
    from everthread.storage.open import open_storage

    if output is not None and output.exists():
        raise SettingsError(f"{str(output)!r} exists already; an export never takes the place of another file")
    with open_storage(database, create=False) as storage:
        told = document(storage, user)
    if output is None:
        print_json(told)
        return
    try:
        # It holds whole conversations, so only its owner may read it.
        opened = os.open(output, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except OSError as error:
        raise SettingsError(f"cannot write {str(output)!r}: {error.strerror}") from error
    with open(opened, "w", encoding="utf-8") as file:
        json.dump(told, file, ensure_ascii=False, indent=2)
        file.write("\n")
    note(f"{counted(len(told['threads']), 'thread')} of user {user!r} went to {output}")
