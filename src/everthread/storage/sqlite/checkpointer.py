"""The checkpointer: LangGraph's `SqliteSaver` with whole transactions, async methods and pruning.

The only file with SQL on the tables `checkpoints` and `writes`, whose layout is LangGraph's.
"""

import json
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    get_checkpoint_id,
)
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver

from everthread.errors import SettingsError, StorageError, UnreadableError
from everthread.state import PromptPlan, namespaces
from everthread.state.scrubbing import scrub
from everthread.storage.blocked_types import blocked_types
from everthread.storage.damage import unreadable_checkpoints
from everthread.storage.kept_checkpoints import OURS, OWN_GRAPH, CheckpointNode, needed, of_newest_turns, subgraphs_of
from everthread.storage.sqlite.checkpoint_rows import METADATA, last_writer
from everthread.storage.sqlite.database import Database
from everthread.storage.unreadable import FAULTS, described, leave_out
from everthread.storage.worker import Worker

__all__ = [
    "Pruned",
    "SqliteCheckpointer",
    "Undecoded",
    "check_checkpoint",
    "checkpoint_values",
    "mark_as_ours",
    "newest_inputs",
    "row_counts",
    "serializer",
    "thread_ids",
]

_TABLES = ("checkpoints", "writes")

_ANSWER = "structured_response"
"""Key of `create_agent` whose type no state schema names, and that each turn makes anew."""

_HISTORY = (
    "SELECT checkpoint_id, parent_checkpoint_id, metadata FROM checkpoints"
    " WHERE thread_id = ? AND checkpoint_ns = ? ORDER BY checkpoint_id"
)
_NAMESPACES = "SELECT checkpoint_ns, metadata FROM checkpoints WHERE thread_id = ? GROUP BY checkpoint_ns"
_DELETE = (
    "DELETE FROM {table} WHERE thread_id = ? AND checkpoint_ns = ?"
    " AND checkpoint_id IN (SELECT value FROM json_each(?))"
)
_DELETE_NAMESPACE = "DELETE FROM {table} WHERE thread_id = ? AND checkpoint_ns = ?"
_OF_RUNS = (
    "SELECT thread_id, checkpoint_ns, checkpoint_id FROM checkpoints"
    f" WHERE {METADATA.format('run_id')} IN (SELECT value FROM json_each(?))"
)
# As bytes: a text that is no UTF-8 could not even be fetched.
_TYPED = "CAST(type AS BLOB), CAST({} AS BLOB)"
_SAVED = f"SELECT {_TYPED.format('checkpoint')} FROM checkpoints WHERE thread_id = ?"
_EVERY = "SELECT thread_id, checkpoint_ns, checkpoint_id FROM checkpoints ORDER BY checkpoint_id DESC"
# The columns by name: a database that is older than `task_path` has it last.
_COPY = {
    "checkpoints": "checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata",
    "writes": "checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, value",
}
# A state that was edited by hand says nothing about the run.
_LAST_RUN = (
    "SELECT metadata FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ''"
    f" AND {METADATA.format('source')} <> 'update' ORDER BY checkpoint_id DESC LIMIT 1"
)


@dataclass(frozen=True)
class Pruned:
    """What left the database."""

    checkpoints: int = 0


class SqliteCheckpointer(SqliteSaver):
    """A `SqliteSaver` for `invoke` and `ainvoke`: each call is one transaction, or none; async calls hop once.

    The exception of a task that failed is saved as text without keys, tokens and passwords.
    """

    def __init__(self, database: Database, worker: Worker, allowed_types: Sequence[type] = ()) -> None:
        super().__init__(database.connection, serde=serializer().with_msgpack_allowlist(allowed_types))
        self._database = database
        self._worker = worker
        self.setup()

    @contextmanager
    def cursor(self, transaction: bool = True) -> Iterator[sqlite3.Cursor]:
        """Give a cursor; `put` and the others say themselves where a transaction begins, and hold the connection."""
        with closing(self.conn.cursor()) as cursor:
            yield cursor

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return a checkpoint; see LangGraph's saver.

        Raises:
            UnreadableError: it cannot be read.
            StorageError: it is another graph's, which would save a value again as plain data; see `allowed_types`.
        """
        with self._naming(config), blocked_types() as blocked:
            found = self._database.read(super().get_tuple, config)
            if found is not None:
                check_checkpoint(found)
        if blocked and found is not None and found.metadata.get(OURS) != OWN_GRAPH:
            _refuse_plain_data(found, blocked)
        return found

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """List checkpoints, newest first; they are read at once, since a caller may take its time.

        Those that cannot be read are left out with a warning.
        """
        listed = partial(super().list, config, filter=filter, before=before, limit=limit)
        try:
            found = self._database.read(lambda: [*listed()])
            for one in found:
                check_checkpoint(one)
        except (StorageError, *FAULTS):
            found = self._database.read(lambda: [*self._one_by_one(config, filter, before)])[:limit]
        yield from found

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Save a checkpoint; see LangGraph's saver."""
        return self._database.write(super().put, config, checkpoint, metadata, new_versions)

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Save what a task wrote; see LangGraph's saver."""
        # LangGraph keeps untracked values out of every save but that of a cut-off run with durability `exit`.
        clean = [
            (channel, scrub(repr(value)) if isinstance(value, BaseException) else value)
            for channel, value in writes
            if not isinstance(value, PromptPlan)
        ]
        self._database.write(super().put_writes, config, clean, task_id, task_path)

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Return what channels are made of again; see LangGraph's saver.

        Raises:
            UnreadableError: a checkpoint or a write on the way cannot be read.
        """
        with self._naming(config):
            return self._database.read(super().get_delta_channel_history, config=config, channels=channels)

    def delete_thread(self, thread_id: str) -> None:
        """Delete the checkpoints of a thread; its records in the store stay, see `erasure` for those."""
        self._database.write(super().delete_thread, thread_id)

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints of runs, by the `run_id` in their metadata.

        Raises:
            StorageError: later checkpoints are read from them; nothing was deleted.
        """
        self._database.write(self._delete_for_runs, run_ids)

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy all checkpoints of a thread, pending approvals included; its records in the store are not copied.

        Raises:
            SettingsError: the target has checkpoints already.
        """
        self._database.write(self._copy_thread, source_thread_id, target_thread_id)

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Prune threads; see LangGraph's `BaseCheckpointSaver`.

        Args:
            thread_ids: the threads.
            strategy: `keep_latest` keeps the newest checkpoint of each namespace, with what it is read from;
                `delete` keeps none.

        Raises:
            SettingsError: there is no such strategy.
        """
        if strategy not in ("keep_latest", "delete"):
            raise SettingsError(f"`strategy` is {strategy!r}; use `keep_latest` or `delete`")
        for thread_id in thread_ids:
            if strategy == "delete":
                self.delete_thread(thread_id)
            else:
                self._database.write(self._keep_latest, thread_id)

    def prune_turns(self, thread_id: str, keep_turns: int, *, adopted: bool = False) -> Pruned:
        """Delete what the newest turns of a thread do not need; see `kept_checkpoints.of_newest_turns`.

        Reads a few hundred rows of metadata, so it is for every some turns and not for each.

        Args:
            thread_id: the thread, whose lock the caller holds.
            keep_turns: turns of the newest branch that stay travelable, at least 1.
            adopted: checkpoints that another app wrote go too.
        """
        return self._database.write(self._prune_turns, thread_id, keep_turns, adopted=adopted)

    def last_run(self, thread_id: str) -> Mapping[str, Any]:
        """Return the metadata that the newest run of a thread left; empty for a thread without runs."""
        row = self._database.read(self._rows, _LAST_RUN, (thread_id,))
        return _metadata(row[0][0]) if row else {}

    def last_writer(self, thread_id: str) -> int | None:
        """Return which graph wrote the newest checkpoint of a thread; see the function."""
        return self._database.read(last_writer, self.conn, thread_id)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Do what `get_tuple` does without blocking the event loop."""
        return await self._worker.call(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Do what `list` does without blocking the event loop."""
        for one in await self._worker.call(lambda: [*self.list(config, filter=filter, before=before, limit=limit)]):
            yield one

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Do what `put` does without blocking the event loop."""
        return await self._worker.call(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Do what `put_writes` does without blocking the event loop."""
        await self._worker.call(self.put_writes, config, writes, task_id, task_path)

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Do what `get_delta_channel_history` does without blocking the event loop."""
        return await self._worker.call(self.get_delta_channel_history, config=config, channels=channels)

    async def adelete_thread(self, thread_id: str) -> None:
        """Do what `delete_thread` does without blocking the event loop."""
        await self._worker.call(self.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Do what `delete_for_runs` does without blocking the event loop."""
        await self._worker.call(self.delete_for_runs, run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Do what `copy_thread` does without blocking the event loop."""
        await self._worker.call(self.copy_thread, source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Do what `prune` does without blocking the event loop."""
        await self._worker.call(self.prune, thread_ids, strategy=strategy)

    async def aprune_turns(self, thread_id: str, keep_turns: int) -> Pruned:
        """Do what `prune_turns` does without blocking the event loop."""
        return await self._worker.call(self.prune_turns, thread_id, keep_turns)

    @contextmanager
    def _naming(self, config: RunnableConfig) -> Iterator[None]:
        """Name the rows of a thread that cannot be read, once something could not."""
        try:
            yield
        except (StorageError, *FAULTS) as error:
            # SQLite's own words for a text that is no UTF-8.
            if isinstance(error, StorageError) and "decode to UTF-8" not in str(error):
                raise
            thread_id = str(config["configurable"]["thread_id"])
            rows = list(unreadable_checkpoints(self._database.connection, thread_id))
            more = f" and {len(rows) - 1} more" if rows[1:] else ""
            raise described(f"{rows[0]}{more}" if rows else f"thread {thread_id!r}", error) from error

    def _one_by_one(
        self, config: RunnableConfig | None, filter: dict[str, Any] | None, before: RunnableConfig | None
    ) -> Iterator[CheckpointTuple]:
        """Yield the checkpoints that can be read."""
        wanted = {} if config is None else config["configurable"]
        last = None if before is None else get_checkpoint_id(before)
        for thread_id, namespace, checkpoint_id in self._rows(_EVERY):
            place = {"thread_id": thread_id, "checkpoint_ns": namespace, "checkpoint_id": checkpoint_id}
            if any(str(wanted[name]) != value for name, value in place.items() if wanted.get(name) is not None):
                continue
            if last is not None and checkpoint_id >= last:
                continue
            try:
                found = self.get_tuple({"configurable": place})
            except UnreadableError as error:
                leave_out("", error)
                continue
            if found is not None and all(found.metadata.get(name) == value for name, value in (filter or {}).items()):
                yield found

    def _delete_for_runs(self, run_ids: Sequence[str]) -> None:
        doomed: dict[tuple[str, str], set[str]] = {}
        for thread_id, namespace, checkpoint_id in self._rows(_OF_RUNS, (json.dumps([*map(str, run_ids)]),)):
            doomed.setdefault((thread_id, namespace), set()).add(checkpoint_id)
        for (thread_id, namespace), gone in doomed.items():
            history = self._history(thread_id, namespace)
            if needed(history, history.keys() - gone) & gone:
                raise StorageError(
                    f"runs of thread {thread_id!r} cannot be deleted, because later checkpoints are read from what "
                    "they wrote; nothing was deleted, prune or delete the whole thread instead"
                )
            self._delete(thread_id, namespace, gone)

    def _copy_thread(self, source: str, target: str) -> None:
        if self._history(target, "") or self._rows(_NAMESPACES, (target,)):
            raise SettingsError(f"thread {target!r} has checkpoints already; copy to a thread that is new")
        for table, columns in _COPY.items():
            sql = f"INSERT INTO {table} (thread_id, {columns}) SELECT ?, {columns} FROM {table} WHERE thread_id = ?"
            self.conn.execute(sql, (target, source))

    def _keep_latest(self, thread_id: str) -> None:
        for namespace, _ in self._rows(_NAMESPACES, (thread_id,)):
            history = self._history(thread_id, namespace)
            self._delete(thread_id, namespace, history.keys() - needed(history, [next(reversed(history))]))

    def _prune_turns(self, thread_id: str, keep_turns: int, *, adopted: bool) -> Pruned:
        history = self._history(thread_id, "")
        gone = history.keys() - of_newest_turns(history, keep_turns, adopted=adopted)
        if not gone:
            return Pruned()
        self._delete(thread_id, "", gone)
        namespaces = [(name, _metadata(blob)) for name, blob in self._rows(_NAMESPACES, (thread_id,))]
        for namespace in subgraphs_of(gone, namespaces):
            for table in _TABLES:
                self.conn.execute(_DELETE_NAMESPACE.format(table=table), (thread_id, namespace))
        return Pruned(len(gone))

    def _delete(self, thread_id: str, namespace: str, gone: set[str]) -> None:
        for table in _TABLES:
            self.conn.execute(_DELETE.format(table=table), (thread_id, namespace, json.dumps(sorted(gone))))

    def _history(self, thread_id: str, namespace: str) -> dict[str, CheckpointNode]:
        return {
            checkpoint_id: CheckpointNode(parent, _metadata(blob))
            for checkpoint_id, parent, blob in self._rows(_HISTORY, (thread_id, namespace))
        }

    def _rows(self, sql: str, values: Sequence[Any] = ()) -> Any:
        return self.conn.execute(sql, values).fetchall()


def serializer() -> JsonPlusSerializer:
    """Return what decodes checkpoints: with LangGraph's strict list of types, since a crafted row must not run code."""
    return JsonPlusSerializer(allowed_msgpack_modules=None)


class Undecoded(bytes):
    """A value that cannot be decoded, as it is stored."""


def checkpoint_values(
    database: sqlite3.Connection, serde: SerializerProtocol, thread_id: str
) -> Iterator[tuple[str, Any]]:
    """Return what the checkpoints of a thread hold: channel and value, oldest first; see `Undecoded`."""
    for kind, blob in database.execute(f"{_SAVED} ORDER BY checkpoint_id", (thread_id,)):
        saved = _decoded(serde, kind, blob)
        values = saved.get("channel_values") if isinstance(saved, Mapping) else saved
        yield from values.items() if isinstance(values, Mapping) else [("", values)]
    written = f"SELECT channel, {_TYPED.format('value')} FROM writes WHERE thread_id = ?"
    for channel, kind, blob in database.execute(f"{written} ORDER BY checkpoint_id, task_id, idx", (thread_id,)):
        yield channel, _decoded(serde, kind, blob)


def newest_inputs(database: sqlite3.Connection, serde: SerializerProtocol, thread_id: str, most: int) -> Iterator[Any]:
    """Return what was last said in a thread: the newest writes of messages, and the newest checkpoint's."""
    written = (
        f"SELECT {_TYPED.format('value')} FROM writes WHERE thread_id = ? AND channel IN ('messages', '__start__')"
        " ORDER BY checkpoint_id DESC LIMIT ?"
    )
    for kind, blob in database.execute(written, (thread_id, most)):
        yield _decoded(serde, kind, blob)
    for kind, blob in database.execute(f"{_SAVED} ORDER BY checkpoint_id DESC LIMIT 1", (thread_id,)):
        saved = _decoded(serde, kind, blob)
        values = saved.get("channel_values") if isinstance(saved, Mapping) else None
        yield [values.get(name) for name in ("messages", "__start__")] if isinstance(values, Mapping) else saved


def check_checkpoint(found: CheckpointTuple) -> None:
    """Raise a `TypeError` for what was decoded and is no checkpoint."""
    checkpoint, parts = found.checkpoint, ("channel_values", "channel_versions", "versions_seen")
    if not isinstance(checkpoint, dict) or not all(isinstance(checkpoint.get(part), dict) for part in parts):
        raise TypeError("it holds something else than a checkpoint")
    if not isinstance(found.metadata, dict):
        raise TypeError("its metadata is no JSON object")


def _decoded(serde: SerializerProtocol, kind: bytes | None, blob: bytes | None) -> Any:
    try:
        return serde.loads_typed((_text(kind), blob or b""))
    except FAULTS:
        return Undecoded(blob or b"")


def _text(kind: bytes | None) -> str:
    """Return a type as text; what is no UTF-8 is no type."""
    return (kind or b"").decode("utf-8", "replace")


def row_counts(database: sqlite3.Connection, threads: Iterable[str]) -> Counter[str]:
    """Count the rows of threads by table."""
    counts = Counter[str]()
    for thread_id in threads:
        for table in _TABLES:
            query = f"SELECT count(*) FROM {table} WHERE thread_id = ?"
            counts[table] += database.execute(query, (thread_id,)).fetchone()[0]
    return counts


def thread_ids(database: sqlite3.Connection) -> Sequence[str]:
    """Return the threads that have checkpoints."""
    return [str(row[0]) for row in database.execute("SELECT DISTINCT thread_id FROM checkpoints").fetchall()]


def mark_as_ours(connection: sqlite3.Connection) -> None:
    """Mark the checkpoints of the threads that have a session of ours, as runs do since the mark is there."""
    connection.execute(
        "UPDATE checkpoints SET metadata = CAST(json_set(CAST(metadata AS TEXT), ?, 1) AS BLOB)"
        " WHERE thread_id IN (SELECT key FROM store WHERE prefix = ?) AND json_valid(CAST(metadata AS TEXT))",
        (f"$.{OURS}", ".".join(namespaces.SESSIONS)),
    )


def _refuse_plain_data(saved: CheckpointTuple, blocked: Sequence[str]) -> None:
    """Refuse a state of another graph of which values have lost their types, other than that of its last answer."""
    written = [channel for _, channel, _ in saved.pending_writes or ()]
    answers = [name for name in (*saved.checkpoint["channel_values"], *written) if name == _ANSWER]
    if len(blocked) > len(answers):
        names = ", ".join(dict.fromkeys(blocked))
        raise StorageError(
            f"the state of thread {saved.config['configurable']['thread_id']!r} has values of the type {names}, which "
            "would be saved again as plain data: guard a graph whose state schema declares it, or pass "
            f"`open_storage(url, allowed_types=[{blocked[0].rpartition('.')[2]}])`"
        )


def _metadata(blob: bytes | None) -> dict[str, Any]:
    """Read metadata; what cannot be read says nothing, so the checkpoint is not ours to prune."""
    try:
        read = json.loads(blob or b"{}")
    except (ValueError, TypeError, RecursionError):
        return {}
    return read if isinstance(read, dict) else {}
