"""What an open database is made of, whichever it is."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from everthread.storage.checkpointer import Checkpointer
from everthread.storage.erasing import Eraser
from everthread.storage.locks import Locks
from everthread.storage.store import SearchStore
from everthread.storage.tables import Tables
from everthread.storage.worker import Worker

if TYPE_CHECKING:
    from everthread.storage.postgres.timers import SessionTimers

__all__ = ["Parts"]


@dataclass(frozen=True)
class Parts:
    """The parts of a `Storage`."""

    url: str
    """As it may be shown: without any password."""
    database: Any
    """A `Database`, and what erasing and reading need of this one."""
    checkpointer: Checkpointer
    store: SearchStore
    locks: Locks
    worker: Worker
    tables: Tables
    eraser: Eraser
    timers: "SessionTimers | None" = None
    """Where a session's end is asked for when it is idle; None: nobody asks."""
