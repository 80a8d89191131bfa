"""`sweep`: end the sessions that nobody has gone on with."""

from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from everthread.cli.end import Ending, consolidated, print_ending
from everthread.cli.options import DEFAULT_DATABASE, AsJson, DatabaseUrl, duration_seconds
from everthread.cli.output import counted, note, print_json, progress, say
from everthread.cli.reading import record_of, records, session_notes
from everthread.errors import StorageError, ThreadBusyError
from everthread.storage.open import Storage, open_storage

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
                outcome = _end_if_idle(storage, record["thread_id"], idle)
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


def _end_if_idle(storage: Storage, thread_id: str, idle_seconds: float) -> Ending | str:
    """End one session, or say why not: `active`, `ended` or `busy`."""
    try:
        with storage.locks.hold(thread_id):
            record = record_of(storage.store, thread_id) or {}
            reason = _not_due(storage, record, thread_id, idle_seconds)
            # The thread is not run: a turn that waits for an approval or a retry stays as it is.
            return reason or consolidated(storage, thread_id, str(record["user_id"]))
    except ThreadBusyError:
        return "busy"


def _not_due(storage: Storage, record: dict[str, Any], thread_id: str, idle_seconds: float) -> str:
    """Say why a session is not due, from its record as it is under the lock; empty when it is."""
    is_consolidated = int(record.get("consolidated_turns", 0)) >= int(record.get("turns", 0))
    # Notes that are still there mean that a consolidation failed.
    if is_consolidated and not session_notes(storage.store, thread_id):
        return "ended"
    since = datetime.now(UTC) - datetime.fromisoformat(str(record["last_activity"]))
    return "active" if since.total_seconds() < idle_seconds else ""
