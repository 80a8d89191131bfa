"""`end` and `sweep`: end sessions, so that what lasts becomes long-term."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from everthread.cli.options import DEFAULT_DATABASE, AsJson, DatabaseUrl, duration_seconds
from everthread.cli.output import counted, note, print_json, say
from everthread.cli.progress import Progress
from everthread.errors import NotFoundError, StorageError, ThreadBusyError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from everthread.cli.endings import Ending
    from everthread.storage.open import Storage

__all__ = ["end", "sweep"]

_WAIT_SECONDS = 20.0
"""How long `end` waits for a run on the thread; longer than the lease of a process that was killed."""


def end(
    thread: Annotated[str, typer.Argument(metavar="THREAD", help="Id of the thread.")],
    user: Annotated[
        str | None, typer.Option("--user", metavar="USER", help="Whose notes change.  [default: the thread's user]")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would change and change nothing.")] = False,
    database: DatabaseUrl = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """End a thread's session: what lasts becomes long-term.

    Shows which notes became long-term and which were dropped, with the reason. A turn that waits for an approval or an
    answer stays as it is.
    """
    from everthread.cli.endings import agent_of, end_thread, planned, print_ending
    from everthread.cli.reading import exists, record_of, unknown
    from everthread.graph.agent import build_graph
    from everthread.storage.open import open_storage

    with open_storage(database, create=False, lock_timeout_seconds=_WAIT_SECONDS) as storage:
        if not exists(storage, thread):
            raise unknown(thread)
        known = record_of(storage.store, thread) or {}
        owner = known.get("user_id")
        if user is not None and owner not in (None, user):
            raise NotFoundError(f"user {user!r} has no thread {thread!r}; it belongs to user {owner!r}")
        whose = str(user or owner or "local")
        if dry_run:
            ending = planned(storage, thread, whose)
        else:
            graph = build_graph(agent_of(known), model="offline", storage=storage)
            ending = end_thread(graph, storage, thread, whose)
    if as_json:
        print_json(ending.as_json())
    else:
        done = "would end like this; nothing was written" if dry_run else "has ended"
        say(f"The session of thread {thread!r}, user {ending.user_id!r}, {done}.", "bold")
        print_ending(ending)
    if ending.failure:
        raise StorageError(f"thread {thread!r} could not be consolidated ({ending.failure})")


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
    from everthread.cli.endings import print_ending
    from everthread.cli.reading import records
    from everthread.storage.open import open_storage

    # A session whose thread is locked is not idle, so nothing is waited for.
    with open_storage(database, create=False, lock_timeout_seconds=0) as storage:
        found = records(storage.store)
        outcomes = [_swept(storage, record["thread_id"], idle) for record in _each(found)]
    endings = [outcome for outcome in outcomes if not isinstance(outcome, str)]
    failed = [ending.thread_id for ending in endings if ending.failure]
    skipped = {why: outcomes.count(why) for why in ("active", "ended", "busy")}
    if as_json:
        print_json({"idle_seconds": idle, "ended": [made.as_json() for made in endings], "skipped": skipped})
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


def _swept(storage: Storage, thread_id: str, idle_seconds: float) -> Ending | str:
    """End one session if it is due, else say why not."""
    from everthread.cli.endings import consolidated
    from everthread.cli.reading import record_of

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
    from everthread.cli.reading import session_notes

    consolidated = int(record.get("consolidated_turns", 0)) >= int(record.get("turns", 0))
    # Notes that are still there tell of a consolidation that failed.
    if consolidated and not session_notes(storage.store, thread_id):
        return "ended"
    since = datetime.now(UTC) - datetime.fromisoformat(str(record["last_activity"]))
    return "active" if since.total_seconds() < idle_seconds else ""


def _each(found: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    with Progress(f"sweeping {counted(len(found), 'session')}") as shown:
        for place, record in enumerate(found):
            shown.at("sweeping", place, len(found))
            yield record
