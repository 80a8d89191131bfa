"""Open one database as a checkpointer, a store and the thread locks."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from langgraph.graph.state import CompiledStateGraph

from everthread.errors import SettingsError
from everthread.state.retention import Retention
from everthread.storage.locations import Synchronous, is_postgres, needing_postgres
from everthread.storage.parts import Parts
from everthread.storage.sqlite.opening import open_sqlite

if TYPE_CHECKING:
    from everthread.graph.guard import GuardedGraph
    from everthread.storage.reading import ThreadView

__all__ = ["Storage", "open_storage"]


class Storage:
    """One open database, for `invoke` and `ainvoke` alike; use it with `with`, `async with` or `close()`."""

    def __init__(self, parts: Parts, retention: Retention | None = None) -> None:
        self.url = parts.url
        self.retention = retention
        self._process = os.getpid()
        self.database = parts.database
        self.checkpointer = parts.checkpointer
        self.store = parts.store
        self.locks = parts.locks
        self.worker = parts.worker
        self.timers = parts.timers
        self.tables = parts.tables
        self.eraser = parts.eraser

    def guard(self, graph: CompiledStateGraph[Any, Any, Any, Any]) -> "GuardedGraph":
        """Return a compiled graph whose runs hold the lock of their thread; it may be anybody's graph."""
        # Taken when called: the guard is built on the storage, and not the other way round.
        from everthread.graph.guard import GuardedGraph

        return GuardedGraph(graph, self)

    def thread(self, thread_id: str) -> "ThreadView":
        """Return a thread as it is in the database, which a notebook shows as a table.

        Raises:
            NotFoundError: there is no such thread.
        """
        # Taken when called, as above: reading knows the storage.
        from everthread.storage.reading import read_thread

        return read_thread(self, thread_id)

    def close(self) -> None:
        """Finish what async calls have asked for, and close the database; a forked child leaves it alone."""
        if self._process != os.getpid():
            return
        self.worker.close()
        if self.timers is not None:
            self.timers.close()
        self.locks.close()
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()


def open_storage(
    url: str,
    *,
    create: bool = True,
    lock_timeout_seconds: float = 600.0,
    synchronous: Synchronous | None = None,
    allowed_types: Sequence[type] = (),
    schema: str | None = None,
    pool_size: int | None = None,
    statement_timeout: float | None = None,
    pgbouncer: bool | None = None,
    direct_url: str | None = None,
    end_idle_seconds: float | None = None,
    retention: Retention | None = None,
) -> Storage:
    """Open a database.

    What is only for Postgres may also be in the URL: `postgresql://…/name?schema=agents&pool_size=4`.

    Args:
        url: `sqlite:///path`, `sqlite:////absolute/path`, `sqlite://` for one in memory, or
            `postgresql://user:password@host:5432/name`.
        create: make the file, readable by its owner only, or the tables when they do not exist.
        lock_timeout_seconds: how long a run waits for another one on the same thread before it raises
            `ThreadBusyError`; 0 raises it at once.
        synchronous: of SQLite. `full` waits for the disk at every commit, so that a loss of power takes nothing that
            was acknowledged; `normal` survives the death of the process. None: what the URL says, as in
            `sqlite:///a.db?synchronous=full`, else `normal`.
        allowed_types: classes of an app's own whose values come back from its checkpoints as such. A guarded graph
            needs none for those that its state schema declares.
        schema: of Postgres; made when it is missing.
        pool_size: connections to Postgres at most, 8 by default, without the one that holds the locks.
        statement_timeout: seconds that one statement in Postgres may take.
        pgbouncer: the URL is that of a pooler: nothing is prepared and no pipeline used.
        direct_url: of Postgres itself when `url` is a pooler's; locks need a session of their own.
        end_idle_seconds: of Postgres: without activity for so long, a session ends by a job of `everthread worker`.
            None: no timer is set.
        retention: what is kept for how long; `retain`, `everthread sweep`, `worker` and `serve` see to it.

    Raises:
        SettingsError: the URL is not understood, or an option is not for this database.
        StorageError: the database cannot be opened, or belongs to another program.
    """
    options = {
        "schema": schema,
        "pool_size": pool_size,
        "statement_timeout": statement_timeout,
        "pgbouncer": pgbouncer,
        "direct_url": direct_url,
    }
    if retention is not None and not isinstance(retention, Retention):
        raise SettingsError(f"`retention` must be a Retention, such as Retention(idle_days=90), got {retention!r}")
    if is_postgres(url):
        if synchronous is not None:
            raise SettingsError("`synchronous` is for SQLite; Postgres has `synchronous_commit`")
        with needing_postgres():
            # Taken when called: its driver is an extra.
            from everthread.storage.postgres.opening import open_postgres
        return Storage(
            open_postgres(
                url,
                create=create,
                lock_timeout_seconds=lock_timeout_seconds,
                allowed_types=allowed_types,
                options=options,
                end_idle_seconds=end_idle_seconds,
            ),
            retention,
        )
    if end_idle_seconds is not None:
        raise SettingsError(
            "`end_idle_seconds` is for Postgres; on SQLite use `everthread sweep`, or `everthread serve`"
        )
    if named := [name for name, value in options.items() if value is not None]:
        raise SettingsError(f"`{named[0]}` is for Postgres, and the URL is not one of it")
    return Storage(
        open_sqlite(
            url,
            create=create,
            lock_timeout_seconds=lock_timeout_seconds,
            synchronous=synchronous,
            allowed_types=allowed_types,
        ),
        retention,
    )
