"""`export`: everything that is held of a user, as one JSON document."""

from pathlib import Path
from typing import Annotated

import typer

from everthread.cli.options import DEFAULT_DATABASE, DatabaseUrl, user_option
from everthread.cli.output import check_writable, counted, note, print_json, progress, write_json
from everthread.storage.export import document
from everthread.storage.to_read import storage_to_read


def export(
    user: Annotated[str, user_option("Whose data.")],
    output: Annotated[
        Path | None, typer.Option("--output", metavar="FILE", help="A new file to write.  [default: print it]")
    ] = None,
    database: DatabaseUrl = DEFAULT_DATABASE,
) -> None:
    """Export everything held about a user, as JSON.

    Profile, notes, bookings, tickets, and each thread's record, messages, notes, summaries and events.
    """
    check_writable(output, new=True)
    with storage_to_read(database) as storage, progress(f"exporting user {user!r}") as report:
        exported = document(storage, user, report)
        if output is not None:
            write_json(output, exported)
    if output is None:
        print_json(exported)
    else:
        note(f"{counted(len(exported['threads']), 'thread')} of user {user!r} went to {output}")
