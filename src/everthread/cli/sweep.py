"""`sweep`: end the sessions that nobody has gone on with."""

from typing import Annotated

import typer

from everthread.cli.end import print_ending
from everthread.cli.options import DEFAULT_DATABASE, AsJson, DatabaseUrl, duration_seconds
from everthread.cli.output import counted, note, print_json, progress, say
from everthread.errors import StorageError
from everthread.graph.ending import Ending, end_if_idle
from everthread.storage.open import open_storage
from everthread.storage.reading import records

__all__ = ["sweep"]


def sweep(
    idle: Annotated[
        float,
        typer.Option("--idle", parser=duration_seconds, metavar="TIME", help="Such as 30s, 30m, 2h or 1d."),
    ],
    database: DatabaseUrl = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """End every session without activity for some time.

    Sessions that have already ended, or whose thread is in use, are skipped.
    """
    endings: list[Ending] = []
    skipped = {"active": 0, "ended": 0, "busy": 0}
    # A session whose thread is locked is not idle, so nothing is waited for.
    with open_storage(database, create=False, lock_timeout_seconds=0) as storage:
        sessions = records(storage.store)
        with progress(f"sweeping {counted(len(sessions), 'session')}") as report:
            for place, record in enumerate(sessions):
                report("sweeping", place, len(sessions))
                outcome = end_if_idle(storage, record["thread_id"], idle)
                if isinstance(outcome, Ending):
                    endings.append(outcome)
                else:
                    skipped[outcome] += 1
    failed = [ending.thread_id for ending in endings if ending.failure]
    if as_json:
        print_json({"idle_seconds": idle, "ended": [ending.as_json() for ending in endings], "skipped": skipped})
    else:
        for ending in endings:
            say(f"thread {ending.thread_id} · user {ending.user_id}", "bold")
            print_ending(ending)
        note(
            f"{counted(len(endings) - len(failed), 'session')} ended; skipped: {skipped['active']} active, "
            f"{skipped['ended']} already ended, {skipped['busy']} busy"
        )
    if failed:
        raise StorageError(
            f"{counted(len(failed), 'session')} could not be consolidated, the first on thread {failed[0]!r}"
        )
