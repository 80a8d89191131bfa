"""LangGraph's savers for SQLite with whole writes only: what fails in its middle is taken back.

The sync saver commits a write that failed, so a task would have half of its results; the async one
leaves the transaction open, which keeps every other process from writing. Under the sync one the writes of a
run go through its journal.

LangGraph saves the exception of a task that failed. Its text may repeat a key, a token or the password
of a URL, so that is taken out first.
"""

import asyncio
import inspect
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, cast

import aiosqlite
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from everthread.state.scrubbing import scrub
from everthread.storage.lexical.journals import Entry, Journal, Journals, write
from everthread.storage.lexical.plans import Statement, writing
from everthread.storage.lexical.texts import TextFields

__all__ = ["WholeAsyncSqliteSaver", "WholeSqliteSaver"]


_NEWEST = (
    "SELECT checkpoint_id FROM checkpoints"
    " WHERE thread_id = ? AND checkpoint_ns = ? ORDER BY checkpoint_id DESC LIMIT 1"
)


class WholeSqliteSaver(SqliteSaver):
    """A `SqliteSaver` that rolls a failed write back, and leaves the writes of a run to its journal.

    Without a journal, as of a run on a graph that is not ours, every write is saved when it comes.
    """

    def __init__(self, conn: sqlite3.Connection, *, serde: SerializerProtocol | None = None) -> None:
        super().__init__(conn, serde=serde)
        self.journals = Journals(self._save)
        self.text_fields: TextFields | None = None
        """Which text of a record counts that a journal has; as the store's."""

        self._here = _Here()
        self._tuples: dict[tuple[str, str], CheckpointTuple] = {}
        self._histories: dict[tuple[str, str], tuple[tuple[str, list[str]], Mapping[str, DeltaChannelHistory]]] = {}
        self._replayed: list[str] = []
        """The channels whose history was asked for last."""

    def cursor(self, transaction: bool = True) -> AbstractContextManager[sqlite3.Cursor]:  # type: ignore[override]
        """Give a cursor, and commit when its block ends well."""
        if transaction and self._here.journal is not None:
            return nullcontext(cast(sqlite3.Cursor, _Notes(self._here.journal)))
        self.journals.settle()
        return self._writing() if transaction else self._reading()

    def read_ahead(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Read the newest checkpoint of a thread, and keep what a run that begins now asks for.

        With a run's preparations in between, SQLite and its pages have left the processor's caches. Each part is given
        away once, and only while it is the newest.

        Args:
            config: of a run that holds the lock of its thread, and names no checkpoint; `forget` ends it.
        """
        found = super().get_tuple(config)
        if found is not None:
            self._tuples[_place(config)] = found
            values, versions = found.checkpoint["channel_values"], found.checkpoint["channel_versions"]
            if replayed := [name for name in self._replayed if name in versions and name not in values]:
                history = super().get_delta_channel_history(config=found.config, channels=replayed)
                self._histories[_place(config)] = (found.checkpoint["id"], replayed), history
        return found

    def forget(self, config: RunnableConfig) -> None:
        """Forget what was read ahead for a run."""
        self._tuples.pop(_place(config), None)
        self._histories.pop(_place(config), None)

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return a checkpoint; see LangGraph's saver."""
        if not config["configurable"].get("checkpoint_id") and (found := self._tuples.pop(_place(config), None)):
            # An edit of the state needs no lock, and may have come from another process.
            with self.cursor(transaction=False) as cursor:
                newest = cursor.execute(_NEWEST, _place(config)).fetchone()
            if newest == (found.checkpoint["id"],):
                return found
        return super().get_tuple(config)

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Return what channels are made of again; see LangGraph's saver."""
        self._replayed = [*channels]
        asked, history = self._histories.pop(_place(config), (None, {}))
        if asked == (config["configurable"].get("checkpoint_id"), self._replayed):
            return history
        return super().get_delta_channel_history(config=config, channels=channels)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """List checkpoints; see LangGraph's saver, which holds its lock for as long as somebody reads them."""
        yield from [*super().list(config, filter=filter, before=before, limit=limit)]

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Save a checkpoint; see LangGraph's saver."""
        journal = self.journals.of(config["configurable"]["thread_id"])
        self._here.journal = journal
        try:
            saved = super().put(config, checkpoint, metadata, new_versions)
        finally:
            self._here.journal = None
        if journal is not None:
            journal.step()
        return saved

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Save what a task wrote; see LangGraph's saver."""
        self._here.journal = self.journals.of(config["configurable"]["thread_id"])
        try:
            super().put_writes(config, _scrubbed(writes), task_id, task_path)
        finally:
            self._here.journal = None

    # LangGraph asks for it at the start of every run, and `inspect` would work it out anew each time.
    put_writes.__signature__ = inspect.signature(put_writes)  # type: ignore[attr-defined]

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Cursor]:
        with self.lock:
            self.setup()
            cursor = self.conn.cursor()
            try:
                yield cursor
            finally:
                cursor.close()

    def _writing(self) -> AbstractContextManager[sqlite3.Cursor]:
        with self.lock:
            self.setup()
        return writing(self.conn, self.lock)

    def _save(self, entries: Sequence[Entry]) -> None:
        with self._writing() as cursor:
            write(cursor, entries, self.text_fields)


def _place(config: RunnableConfig) -> tuple[str, str]:
    return str(config["configurable"]["thread_id"]), str(config["configurable"].get("checkpoint_ns", ""))


class _Here(threading.local):
    """What this thread is at."""

    journal: Journal | None = None
    """Takes what this thread writes."""


class _Notes:
    """Stands in for a cursor that only writes: a journal takes the statements."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> None:
        self._journal.note(Statement(sql, parameters))

    def executemany(self, sql: str, parameters: Sequence[Any]) -> None:
        self._journal.note(Statement(sql, parameters, is_many=True))


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
