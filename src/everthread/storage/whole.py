"""LangGraph's savers for SQLite with whole writes only: what fails in its middle is taken back.

The sync saver commits a write that failed, so a task would have half of its results; the async one
leaves the transaction open, which keeps every other process from writing.
"""

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

import aiosqlite
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

__all__ = ["WholeAsyncSqliteSaver", "WholeSqliteSaver"]


class WholeSqliteSaver(SqliteSaver):
    """A `SqliteSaver` that rolls a failed write back."""

    @contextmanager
    def cursor(self, transaction: bool = True) -> Iterator[sqlite3.Cursor]:
        """Give a cursor, and commit when its block ends well."""
        with self.lock:
            self.setup()
            cursor = self.conn.cursor()
            try:
                yield cursor
                if transaction:
                    self.conn.commit()
            except BaseException:
                if transaction:
                    self.conn.rollback()
                raise
            finally:
                cursor.close()


class WholeAsyncSqliteSaver(AsyncSqliteSaver):
    """An `AsyncSqliteSaver` that rolls a failed write back, before anybody else uses its connection."""

    def __init__(self, conn: aiosqlite.Connection, *, serde: SerializerProtocol | None = None) -> None:
        super().__init__(conn, serde=serde)
        self.lock = _RollbackLock(conn)


class _RollbackLock(asyncio.Lock):
    """Guards a connection: whoever leaves it by an exception leaves no transaction behind."""

    def __init__(self, connection: aiosqlite.Connection) -> None:
        super().__init__()
        self._connection = connection

    async def __aexit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        try:
            if kind is not None and self._connection.in_transaction:
                await asyncio.shield(self._connection.rollback())
        finally:
            self.release()
