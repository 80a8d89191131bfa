"""LangGraph's savers for SQLite with whole writes only: what fails in its middle is taken back.

The sync saver commits a write that failed, so a task would have half of its results; the async one
leaves the transaction open, which keeps every other process from writing.

LangGraph saves the exception of a task that failed. Its text may repeat a key, a token or the password
of a URL, so that is taken out first.
"""

import asyncio
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import aiosqlite
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from everthread.state.scrubbing import scrub

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

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Save what a task wrote; see LangGraph's saver."""
        super().put_writes(config, _scrubbed(writes), task_id, task_path)


class WholeAsyncSqliteSaver(AsyncSqliteSaver):
    """An `AsyncSqliteSaver` that rolls a failed write back, before anybody else uses its connection."""

    def __init__(self, conn: aiosqlite.Connection, *, serde: SerializerProtocol | None = None) -> None:
        super().__init__(conn, serde=serde)
        self.lock = _RollbackLock(conn)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Save what a task wrote; see LangGraph's saver."""
        await super().aput_writes(config, _scrubbed(writes), task_id, task_path)


def _scrubbed(writes: Sequence[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Replace exceptions by their text, which is what is saved of them, without secrets."""
    return [(channel, scrub(repr(value)) if isinstance(value, BaseException) else value) for channel, value in writes]


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
