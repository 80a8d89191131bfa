"""Database work as plans: generators that yield statements and are sent rows.

A plan holds the logic once; `run` and `arun` execute it on a plain and on an asynchronous cursor.
"""

import sqlite3
from collections.abc import Generator, Sequence
from typing import Any, NamedTuple, TypeVar

import aiosqlite

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


async def arun(cursor: aiosqlite.Cursor, plan: Plan[T]) -> T:
    """Execute a plan on an asynchronous cursor; see `run`."""
    try:
        statement = next(plan)
        while True:
            if statement.is_many:
                await cursor.executemany(statement.sql, statement.parameters)
                statement = plan.send([])
            else:
                await cursor.execute(statement.sql, statement.parameters)
                statement = plan.send([tuple(row) for row in await cursor.fetchall()])
    except StopIteration as stop:
        result: T = stop.value
        return result


def immediate(plan: Plan[T]) -> Plan[T]:
    """Wrap a plan in a transaction that takes the write lock first.

    A deferred transaction that reads and then writes fails at once, without waiting, when another
    process wrote in between.
    """
    yield Statement("BEGIN IMMEDIATE")
    result = yield from plan
    yield Statement("COMMIT")
    return result
