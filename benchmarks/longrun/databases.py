"""LangGraph's own savers and stores for the contenders, opened as their documentation does."""

import sqlite3
from collections.abc import Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiosqlite

if TYPE_CHECKING:
    from longrun.contenders import Setup

__all__ = ["connect", "keep_newest_checkpoint", "open_saver", "open_store"]

_PRAGMAS = ("PRAGMA journal_mode=WAL", "PRAGMA synchronous=NORMAL")
"""Everthread's, so that no difference comes from how often SQLite syncs."""

_BUSY_SECONDS = 30.0
"""How long a connection waits for another one that writes."""


@contextmanager
def open_saver(setup: "Setup") -> Iterator[Any]:
    """Open LangGraph's own saver: `AsyncSqliteSaver` for `ainvoke`."""
    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    if setup.runner:
        with setup.entered(_aopened(setup.path, AsyncSqliteSaver)) as saver:
            yield saver
        return
    with closing(connect(setup.path)) as connection:
        saver = SqliteSaver(connection)
        saver.setup()
        yield saver


@contextmanager
def open_store(setup: "Setup") -> Iterator[Any]:
    """Open LangGraph's own store: `AsyncSqliteStore` for `ainvoke`."""
    from langgraph.store.sqlite import AsyncSqliteStore, SqliteStore

    if setup.runner:
        with setup.entered(_aopened(setup.path, AsyncSqliteStore, isolation_level=None)) as store:
            yield store
        return
    with closing(connect(setup.path, isolation_level=None)) as connection:
        store = SqliteStore(connection)
        store.setup()
        yield store


def connect(path: Path, **options: Any) -> sqlite3.Connection:
    """Open a file with Everthread's settings."""
    connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, check_same_thread=False, **options)
    for pragma in _PRAGMAS:
        connection.execute(pragma)
    return connection


@asynccontextmanager
async def _aopened(path: Path, kind: Any, **options: Any) -> Any:
    async with aiosqlite.connect(path, timeout=_BUSY_SECONDS, **options) as connection:
        for pragma in _PRAGMAS:
            await connection.execute(pragma)
        opened = kind(connection)
        await opened.setup()
        yield opened


def keep_newest_checkpoint(connection: sqlite3.Connection, thread_id: str) -> None:
    """Delete all checkpoints but the newest, which holds the whole state of langchain's agent."""
    newest = "(SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = ?)"
    with connection:
        for table in ("writes", "checkpoints"):
            statement = f"DELETE FROM {table} WHERE thread_id = ? AND checkpoint_id < {newest}"
            connection.execute(statement, (thread_id, thread_id))
