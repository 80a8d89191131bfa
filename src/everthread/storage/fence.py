"""The fence: a run that lost its thread's lease writes nothing of that thread any more.

A process that stands still for longer than its lease (a suspended laptop, a debugger, `SIGSTOP`) does
not know that another one has taken the thread over. What it saved then would become the newest
checkpoint and hide the other one's turn, and its notes and events would be of a turn that never was. A
trigger looks at the lease in the transaction of the write itself, where nobody can come between; a
lease that is fresh by the clock needs no look.
"""

import sqlite3
from contextlib import closing
from pathlib import Path

import aiosqlite
import orjson

from everthread.state import namespaces
from everthread.storage.locks import LOST, ThreadLocks

__all__ = ["afence", "afence_store", "fence", "fence_store"]

_HOLDER = "everthread_doubtful_holder"
_DOUBT = "everthread_doubt"
_LOST = "everthread_lost"

_OF_NOTES = namespaces.user_key("x").removesuffix("x")
"""Begins the key under which the notes of a user are changed, before their label."""

# ROLLBACK, because a connection of asyncio would keep the write lock of a transaction that was only aborted.
_OF_CHECKPOINTS = [
    f"CREATE TEMP TRIGGER everthread_fence_{table} BEFORE INSERT ON main.{table}"
    f" WHEN {_HOLDER}(NEW.thread_id) IS NOT NULL BEGIN"
    f" SELECT RAISE(ROLLBACK, '{LOST}') WHERE NOT EXISTS (SELECT 1 FROM thread_locks"
    f" WHERE thread_id = NEW.thread_id AND holder = {_HOLDER}(NEW.thread_id)); END"
    for table in ("checkpoints", "writes")
]
_OF_RECORDS = [
    f"CREATE TEMP TRIGGER everthread_fence_{event} BEFORE {event} ON main.store WHEN {_DOUBT}() BEGIN"
    f" SELECT RAISE(ROLLBACK, '{LOST}') WHERE {_LOST}({row}.prefix, {row}.key, {row}.value); END"
    for event, row in (("INSERT", "NEW"), ("UPDATE", "OLD"), ("DELETE", "OLD"))
]


def fence(connection: sqlite3.Connection, locks: ThreadLocks) -> None:
    """Let a saver's connection refuse what belongs to a lost lease; its tables must be there."""
    connection.create_function(_HOLDER, 1, locks.doubtful_holder)
    for trigger in _OF_CHECKPOINTS:
        connection.execute(trigger)


async def afence(connection: aiosqlite.Connection, locks: ThreadLocks) -> None:
    """Do what `fence` does for a connection of asyncio."""
    await connection.create_function(_HOLDER, 1, locks.doubtful_holder)
    for trigger in _OF_CHECKPOINTS:
        await connection.execute(trigger)


def fence_store(connection: sqlite3.Connection, path: Path, locks: ThreadLocks) -> None:
    """Let a store's connection refuse records of a thread, or of a user, whose lease is lost."""
    connection.create_function(_DOUBT, 0, lambda: bool(locks.doubtful()))
    connection.create_function(_LOST, 3, lambda *record: _is_lost(path, locks, *record))
    for trigger in _OF_RECORDS:
        connection.execute(trigger)


async def afence_store(connection: aiosqlite.Connection, path: Path, locks: ThreadLocks) -> None:
    """Do what `fence_store` does for a connection of asyncio."""
    await connection.create_function(_DOUBT, 0, lambda: bool(locks.doubtful()))
    await connection.create_function(_LOST, 3, lambda *record: _is_lost(path, locks, *record))
    for trigger in _OF_RECORDS:
        await connection.execute(trigger)


def _is_lost(path: Path, locks: ThreadLocks, prefix: str, key: str, value: bytes | str) -> bool:
    """Tell whether a record belongs to a lease of ours that went to somebody else."""
    named = _named(prefix, key, value)
    ours = [(lease, holder) for lease, holder in locks.doubtful().items() if _label(lease) in named]
    if not ours:
        return False
    # A connection of its own: the one of the locks may wait for the very transaction that asks.
    with closing(sqlite3.connect(path, timeout=30)) as database:
        held = "SELECT 1 FROM thread_locks WHERE thread_id = ? AND holder = ?"
        return any(database.execute(held, one).fetchone() is None for one in ours)


def _named(prefix: str, key: str, value: bytes | str) -> set[str]:
    """Return the labels of the leases under which a record may be written: of its thread, of its user's notes."""
    labels = prefix.split(".")
    if (labels[0],) == namespaces.SESSIONS:
        return {namespaces.label(key)}
    if labels[0] == "threads" or len(labels) < 2:
        return set(labels[1:2])
    try:
        thread_id = orjson.loads(value).get("thread_id")
    except (ValueError, AttributeError):
        thread_id = None
    # Bookings and tickets name the thread that they were made in.
    return {_OF_NOTES + labels[1], *([namespaces.label(thread_id)] if isinstance(thread_id, str) else [])}


def _label(lease: str) -> str:
    return lease if lease.startswith(_OF_NOTES) else namespaces.label(lease)
