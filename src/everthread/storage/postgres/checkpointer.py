"""The rows of checkpoints in Postgres: SQL on LangGraph's tables of them.

`checkpoints` holds ids, metadata and small values as JSON; `checkpoint_blobs` the other values by channel and version,
which many checkpoints share; `checkpoint_writes` what tasks wrote.
"""

import copy
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.serde.base import SerializerProtocol

from everthread.storage.kept_checkpoints import CheckpointNode
from everthread.storage.postgres.database import PostgresDatabase
from everthread.storage.postgres.tables import PostgresTables

__all__ = ["PostgresCheckpointRows"]

_TABLES = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")

_HISTORY = (
    "SELECT checkpoint_id, parent_checkpoint_id, metadata FROM checkpoints"
    ' WHERE thread_id = %s AND checkpoint_ns = %s ORDER BY checkpoint_id COLLATE "C"'
)
_NAMESPACES = (
    "SELECT DISTINCT ON (checkpoint_ns) checkpoint_ns, metadata FROM checkpoints WHERE thread_id = %s"
    " ORDER BY checkpoint_ns"
)
_EVERY = 'SELECT thread_id, checkpoint_ns, checkpoint_id FROM checkpoints ORDER BY checkpoint_id COLLATE "C" DESC'
_OF_RUNS = "SELECT thread_id, checkpoint_ns, checkpoint_id FROM checkpoints WHERE metadata ->> 'run_id' = ANY(%s)"
_TASK_PATHS = (
    "SELECT DISTINCT task_id, task_path FROM checkpoint_writes"
    " WHERE thread_id = %s AND checkpoint_ns = %s AND checkpoint_id = %s"
)
_DELETE = "DELETE FROM {table} WHERE thread_id = %s AND checkpoint_ns = %s AND checkpoint_id = ANY(%s)"
# Values that no checkpoint which stays refers to.
_DELETE_BLOBS = (
    "DELETE FROM checkpoint_blobs WHERE thread_id = %s AND checkpoint_ns = %s AND (channel, version) NOT IN ("
    "SELECT v.key, v.value FROM checkpoints c CROSS JOIN LATERAL jsonb_each_text(c.checkpoint -> 'channel_versions') v"
    " WHERE c.thread_id = %s AND c.checkpoint_ns = %s)"
)
_DELETE_NAMESPACE = "DELETE FROM {table} WHERE thread_id = %s AND checkpoint_ns = %s"
_COPY = {
    "checkpoints": "checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata",
    "checkpoint_blobs": "checkpoint_ns, channel, version, type, blob",
    "checkpoint_writes": "checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, blob",
}
# A state that was edited by hand says nothing about the run.
_LAST_RUN = (
    "SELECT metadata FROM checkpoints WHERE thread_id = %s AND checkpoint_ns = ''"
    " AND metadata ->> 'source' <> 'update' ORDER BY checkpoint_id DESC LIMIT 1"
)


class PostgresCheckpointRows:
    """The rows of checkpoints in Postgres; see `CheckpointRows`."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database
        self._tables = database.read(PostgresTables, database.rows)
        # Without a connection: each call gets a copy on the one that it may use.
        self._saver = PostgresSaver(cast(Any, None))

    def saver(self, serde: SerializerProtocol) -> PostgresSaver:
        """Return LangGraph's saver on the connection that is in use; it does one thing at a time, as that does."""
        saver = copy.copy(self._saver)
        saver.serde, saver.lock, saver.conn = serde, threading.Lock(), cast(Any, self._database.connection)
        saver.supports_pipeline = saver.supports_pipeline and not self._database.location.pgbouncer
        return saver

    def next_version(self, current: Any) -> Any:
        """Return the version of a channel after this one."""
        return self._saver.get_next_version(current, None)

    def history(self, thread_id: str, namespace: str) -> dict[str, CheckpointNode]:
        """Return the checkpoints of a namespace by id, oldest first."""
        rows = self._rows(_HISTORY, (thread_id, namespace))
        return {checkpoint_id: CheckpointNode(parent, _object(metadata)) for checkpoint_id, parent, metadata in rows}

    def namespaces(self, thread_id: str) -> list[tuple[str, Mapping[str, Any]]]:
        """Return the namespaces of a thread, each with the metadata of one of its checkpoints."""
        return [(name, _object(metadata)) for name, metadata in self._rows(_NAMESPACES, (thread_id,))]

    def every(self) -> list[tuple[str, str, str]]:
        """Return thread, namespace and id of all checkpoints, the newest first."""
        return self._rows(_EVERY)

    def task_paths(self, thread_id: str, namespace: str, checkpoint_id: str) -> Mapping[str, str]:
        """Return the path of each task that wrote to a checkpoint, by its id."""
        return dict(self._rows(_TASK_PATHS, (thread_id, namespace, checkpoint_id)))

    def of_runs(self, run_ids: Sequence[str]) -> list[tuple[str, str, str]]:
        """Return thread, namespace and id of the checkpoints of runs."""
        return self._rows(_OF_RUNS, ([*run_ids],))

    def delete(self, thread_id: str, namespace: str, checkpoint_ids: Sequence[str]) -> None:
        """Delete checkpoints, their writes, and the values that nothing refers to any more."""
        for table in ("checkpoints", "checkpoint_writes"):
            self._rows(_DELETE.format(table=table), (thread_id, namespace, [*checkpoint_ids]))
        self._rows(_DELETE_BLOBS, (thread_id, namespace) * 2)

    def delete_namespace(self, thread_id: str, namespace: str) -> None:
        """Delete all checkpoints of a namespace."""
        for table in _TABLES:
            self._rows(_DELETE_NAMESPACE.format(table=table), (thread_id, namespace))

    def copy(self, source: str, target: str) -> None:
        """Copy all rows of a thread to one that has none."""
        for table, columns in _COPY.items():
            sql = f"INSERT INTO {table} (thread_id, {columns}) SELECT %s, {columns} FROM {table} WHERE thread_id = %s"
            self._rows(sql, (target, source))

    def last_run(self, thread_id: str) -> Mapping[str, Any]:
        """Return the metadata of the newest checkpoint that is no edit; empty when there is none."""
        rows = self._rows(_LAST_RUN, (thread_id,))
        return _object(rows[0][0]) if rows else {}

    def last_writer(self, thread_id: str) -> int | None:
        """Return which graph wrote the newest checkpoint of a thread."""
        return self._tables.last_writer(thread_id)

    def unreadable(self, thread_id: str) -> Iterator[str]:
        """Yield the names of the checkpoints and writes of a thread that cannot be read."""
        return self._tables.unreadable(thread_id)

    def _rows(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        return self._database.rows(sql, values)


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
