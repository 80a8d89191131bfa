"""Open one database as a checkpointer, a store and the thread locks."""

import os
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from langgraph.graph.state import CompiledStateGraph

from everthread.errors import StorageError
from everthread.storage.checkpointer import Checkpointer
from everthread.storage.locations import Location, Synchronous, level, locate, prepare
from everthread.storage.locks import ThreadLocks
from everthread.storage.sqlite.checkpointer import SqliteCheckpointRows
from everthread.storage.sqlite.database import SqliteDatabase
from everthread.storage.sqlite.formats import refuse_newer, upgrade
from everthread.storage.sqlite.store import SqliteSearchStore
from everthread.storage.worker import Worker

if TYPE_CHECKING:
    from everthread.graph.guard import GuardedGraph

__all__ = ["Storage", "open_storage"]


class Storage:
    """One open database, for `invoke` and `ainvoke` alike; use it with `with`, `async with` or `close()`."""

    def __init__(self, location: Location, *, lock_timeout_seconds: float, allowed_types: Sequence[type] = ()) -> None:
        self.url = location.url
        self._process = os.getpid()
        self.locks = ThreadLocks(location.path, timeout_seconds=lock_timeout_seconds)
        self.worker = Worker()
        self.database = SqliteDatabase(location)
        try:
            refuse_newer(self.database.connection, location.path)
            self.checkpointer = Checkpointer(
                self.database, SqliteCheckpointRows(self.database), self.worker, allowed_types
            )
            self.store = SqliteSearchStore(self.database, self.worker, self.locks)
            self.database.write(upgrade, self.database.connection)
        except BaseException:
            self.close()
            raise

    def guard(self, graph: CompiledStateGraph[Any, Any, Any, Any]) -> "GuardedGraph":
        """Return a compiled graph whose runs hold the lock of their thread; it may be anybody's graph."""
        # Taken when called: the guard is built on the storage, and not the other way round.
        from everthread.graph.guard import GuardedGraph

        return GuardedGraph(graph, self)

    def close(self) -> None:
        """Finish what async calls have asked for, and close the database; a forked child leaves it alone."""
        if self._process != os.getpid():
            return
        self.worker.close()
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
) -> Storage:
    """Open a database.

    Args:
        url: `sqlite:///path`, `sqlite:////absolute/path` or `sqlite://` for one in memory.
        create: make the file when it does not exist, readable by its owner only.
        lock_timeout_seconds: how long a run waits for another one on the same thread before it raises
            `ThreadBusyError`; 0 raises it at once.
        synchronous: `full` waits for the disk at every commit, so that a loss of power takes nothing that was
            acknowledged; `normal` survives the death of the process. None: what the URL says, as in
            `sqlite:///a.db?synchronous=full`, else `normal`.
        allowed_types: classes of an app's own whose values come back from its checkpoints as such. A guarded graph
            needs none for those that its state schema declares.

    Raises:
        SettingsError: the URL is not understood.
        StorageError: the file cannot be opened, is not SQLite, or belongs to another program.
    """
    location = locate(url)
    if synchronous is not None:
        location = replace(location, synchronous=level(synchronous))
    prepare(location, create=create)
    try:
        return Storage(location, lock_timeout_seconds=lock_timeout_seconds, allowed_types=allowed_types)
    except sqlite3.Error as error:
        raise StorageError(f"cannot open the database {location.url!r}: {error}; it was left as it is") from error
