"""Database work as plans: generators that yield statements and are sent rows.

A plan holds the logic once; `run` executes it on a cursor.
"""

import sqlite3
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

Row = tuple[Any, ...]
T = TypeVar("T")


class Statement(NamedTuple):
    """One SQL statement with its parameters, or with a list of them when `is_many`."""

    sql: str
    parameters: Sequence[Any] = ()
    is_many: bool = False


Plan = Generator[Statement, list[Row], T]


def run(cursor: sqlite3.Cursor, plan: Plan[T]) -> T:
    """Execute a plan and return its result."""
    try:
        statement = next(plan)
        while True:
            if statement.is_many:
                cursor.executemany(statement.sql, statement.parameters)
                statement = plan.send([])
            else:
                statement = plan.send(cursor.execute(statement.sql, statement.parameters).fetchall())
    except StopIteration as stop:
        result: T = stop.value
        return result


_PAUSES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05)
"""Seconds between two looks at a database that somebody else writes to; the last one again and again."""


@contextmanager
def writing(connection: sqlite3.Connection, lock: threading.Lock) -> Iterator[sqlite3.Cursor]:
    """Hold a shared connection for one transaction that takes the write lock first.

    While somebody else writes to the database, it waits as long as the connection's `busy_timeout` says, and the
    connection is free: those who only read need not wait.

    Raises:
        sqlite3.OperationalError: somebody else wrote for longer.
    """
    _begin(connection, lock)
    try:
        cursor = connection.cursor()
        try:
            yield cursor
            connection.commit()
        except BaseException:
            if connection.in_transaction:
                connection.rollback()
            raise
        finally:
            cursor.close()
    finally:
        lock.release()


def is_busy(error: Exception) -> bool:
    """Tell whether a write failed only because somebody else was writing."""
    return isinstance(error, sqlite3.OperationalError) and "locked" in str(error)


def _begin(connection: sqlite3.Connection, lock: threading.Lock) -> None:
    """Begin to write with the lock held."""
    pauses = iter(_PAUSES)
    began, milliseconds = time.monotonic(), 0
    while True:
        lock.acquire()
        try:
            (milliseconds,) = connection.execute("PRAGMA busy_timeout").fetchone()
            connection.execute("PRAGMA busy_timeout=0")
            try:
                connection.execute("BEGIN IMMEDIATE")
                return
            finally:
                connection.execute(f"PRAGMA busy_timeout={milliseconds}")
        except BaseException as error:
            lock.release()
            is_over = time.monotonic() - began > milliseconds / 1e3
            if not isinstance(error, Exception) or not is_busy(error) or is_over:
                raise
        time.sleep(next(pauses, _PAUSES[-1]))


def immediate(plan: Plan[T]) -> Plan[T]:
    """Wrap a plan in a transaction that takes the write lock first.

    A deferred transaction that reads and then writes fails at once, without waiting, when another
    process wrote in between.
    """
    yield Statement("BEGIN IMMEDIATE")
    result = yield from plan
    yield Statement("COMMIT")
    return result
