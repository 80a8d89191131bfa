"""`export`: everything that is held of a user, as one JSON document."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from everthread.cli.options import DEFAULT_DATABASE, DatabaseUrl
from everthread.cli.output import counted, note, print_json, write_json
from everthread.cli.progress import Progress
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
    with open_storage(database, create=False) as storage, Progress(f"exporting user {user!r}") as shown:
        told = document(storage, user, shown.at)
        if output is not None:
            write_json(output, told)
    if output is None:
        print_json(told)
    else:
        note(f"{counted(len(told['threads']), 'thread')} of user {user!r} went to {output}")
