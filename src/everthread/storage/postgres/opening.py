"""Open a Postgres database."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from everthread.errors import SettingsError, installing
from everthread.storage.checkpointer import Checkpointer
from everthread.storage.postgres.checkpointer import PostgresCheckpointRows
from everthread.storage.postgres.database import PostgresDatabase
from everthread.storage.postgres.erasing import PostgresEraser
from everthread.storage.postgres.formats import set_up
from everthread.storage.postgres.location import PostgresLocation, locate_postgres
from everthread.storage.postgres.locks import SessionLocks
from everthread.storage.postgres.store import PostgresSearchStore
from everthread.storage.postgres.tables import PostgresTables
from everthread.storage.storage import Storage
from everthread.storage.worker import Worker

if TYPE_CHECKING:
    from everthread.storage.postgres.timers import SessionTimers


def open_postgres(
    url: str,
    *,
    create: bool,
    lock_timeout_seconds: float,
    allowed_types: Sequence[type],
    options: Mapping[str, Any],
    end_idle_seconds: float | None,
) -> Storage:
    """Open a database; see `open_storage`.

    Args:
        options: see `locate_postgres`.
        end_idle_seconds: when the timers of sessions go off; None sets none.
    """
    location = locate_postgres(url, **options)
    set_up(location, create=create)
    timers = None if end_idle_seconds is None else _timers(location, end_idle_seconds)
    locks = SessionLocks(location, timeout_seconds=lock_timeout_seconds)
    database = PostgresDatabase(location, locks.check)
    # As many as there are connections: one more would only wait for one.
    worker = Worker(location.pool_size)
    try:
        rows = PostgresCheckpointRows(database)
        store = PostgresSearchStore(database, worker, locks)
        store.catch_up()
        checkpointer = Checkpointer(database, rows, worker, store, allowed_types)
    except BaseException:
        locks.close()
        worker.close()
        database.close()
        raise
    tables = PostgresTables(lambda sql, values: database.read(database.rows, sql, values))
    eraser = PostgresEraser(database, store)
    return Storage(location.url, database, checkpointer, store, locks, worker, tables, eraser, timers)


def _timers(location: PostgresLocation, idle_seconds: float) -> "SessionTimers":
    try:
        # Taken when called: an extra of its own.
        from everthread.storage.postgres.timers import SessionTimers
    except ImportError as error:
        raise SettingsError(
            f"timers of sessions need a package that is not installed ({error.name}): {installing('jobs')}"
        ) from error
    return SessionTimers(location, idle_seconds)
