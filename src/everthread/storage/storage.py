"""An open database, whichever it is: a checkpointer, a store, the thread locks, and what reads and erases."""

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from langgraph.graph.state import CompiledStateGraph

from everthread.state.retention import Retention
from everthread.storage.checkpointer import Checkpointer
from everthread.storage.database import Database
from everthread.storage.erasing import Eraser
from everthread.storage.locks import Locks
from everthread.storage.store import SearchStore
from everthread.storage.tables import Tables
from everthread.storage.worker import Worker

if TYPE_CHECKING:
    from everthread.graph.guard import GuardedGraph
    from everthread.storage.postgres.timers import SessionTimers
    from everthread.storage.reading import ThreadView


@dataclass(eq=False, repr=False)
class Storage:
    """One open database, for `invoke` and `ainvoke` alike; use it with `with`, `async with` or `close()`."""

    url: str
    """As it may be shown: without any password."""
    database: Database
    checkpointer: Checkpointer
    store: SearchStore
    locks: Locks
    worker: Worker
    tables: Tables
    eraser: Eraser
    timers: "SessionTimers | None" = None
    """Where a session's end is asked for when it is idle; None: nobody asks."""
    retention: Retention | None = None
    _process: int = field(default_factory=os.getpid, init=False)

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

        return read_thread(self, str(thread_id))

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
