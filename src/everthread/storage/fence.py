"""The fence: a run that lost its thread's lease writes no checkpoint any more.

A process that stands still for longer than its lease (a suspended laptop, a debugger, `SIGSTOP`) does
not know that another one has taken the thread over. What it saved then would become the newest
checkpoint and hide the other one's turn. A trigger looks at the lease in the transaction of the write
itself, where nobody can come between; a lease that is fresh by the clock needs no look.
"""

import sqlite3

import aiosqlite

from everthread.storage.locks import LOST, ThreadLocks

__all__ = ["afence", "fence"]

_FUNCTION = "everthread_doubtful_holder"

# ROLLBACK, because a connection of asyncio would keep the write lock of a transaction that was only aborted.
_TRIGGERS = [
    f"CREATE TEMP TRIGGER everthread_fence_{table} BEFORE INSERT ON main.{table}"
    f" WHEN {_FUNCTION}(NEW.thread_id) IS NOT NULL BEGIN"
    f" SELECT RAISE(ROLLBACK, '{LOST}') WHERE NOT EXISTS (SELECT 1 FROM thread_locks"
    f" WHERE thread_id = NEW.thread_id AND holder = {_FUNCTION}(NEW.thread_id)); END"
    for table in ("checkpoints", "writes")
]


def fence(connection: sqlite3.Connection, locks: ThreadLocks) -> None:
    """Let a saver's connection refuse what belongs to a lost lease; its tables must be there."""
    connection.create_function(_FUNCTION, 1, locks.doubtful_holder)
    for trigger in _TRIGGERS:
        connection.execute(trigger)


async def afence(connection: aiosqlite.Connection, locks: ThreadLocks) -> None:
    """Do what `fence` does for a connection of asyncio."""
    await connection.create_function(_FUNCTION, 1, locks.doubtful_holder)
    for trigger in _TRIGGERS:
        await connection.execute(trigger)
