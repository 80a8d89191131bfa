"""The rows of checkpoints in Postgres: SQL on LangGraph's tables of them.

`checkpoints` holds ids, metadata and small values as JSON; `checkpoint_blobs` the other values by channel and version,
which many checkpoints share; `checkpoint_writes` what tasks wrote.
"""

import copy
import threading
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, cast

from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.serde.base import SerializerProtocol

from everthread.storage.checkpoint_rows import CheckpointRows
from everthread.storage.postgres.database import PostgresDatabase
from everthread.storage.postgres.tables import PostgresTables

_DELETE = "DELETE FROM {table} WHERE thread_id = %s AND checkpoint_ns = %s AND checkpoint_id = ANY(%s)"
# Values that no checkpoint which stays refers to.
_DELETE_BLOBS = (
    "DELETE FROM checkpoint_blobs WHERE thread_id = %s AND checkpoint_ns = %s AND (channel, version) NOT IN ("
    "SELECT v.key, v.value FROM checkpoints c CROSS JOIN LATERAL jsonb_each_text(c.checkpoint -> 'channel_versions') v"
    " WHERE c.thread_id = %s AND c.checkpoint_ns = %s)"
)


class PostgresCheckpointRows(CheckpointRows):
    """The rows of checkpoints in Postgres; see `CheckpointRows`."""

    _COLUMNS: ClassVar = {
        "checkpoints": "checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata",
        "checkpoint_blobs": "checkpoint_ns, channel, version, type, blob",
        "checkpoint_writes": "checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, blob",
    }
    _COPY = "INSERT INTO {table} (thread_id, {columns}) SELECT %s, {columns} FROM {table} WHERE thread_id = %s"
    _HISTORY = (
        "SELECT checkpoint_id, parent_checkpoint_id, metadata FROM checkpoints"
        ' WHERE thread_id = %s AND checkpoint_ns = %s ORDER BY checkpoint_id COLLATE "C"'
    )
    _NAMESPACES = (
        "SELECT DISTINCT ON (checkpoint_ns) checkpoint_ns, metadata FROM checkpoints WHERE thread_id = %s"
        " ORDER BY checkpoint_ns"
    )
    _EVERY = 'SELECT thread_id, checkpoint_ns, checkpoint_id FROM checkpoints ORDER BY checkpoint_id COLLATE "C" DESC'
    _TASK_PATHS = (
        "SELECT DISTINCT task_id, task_path FROM checkpoint_writes"
        " WHERE thread_id = %s AND checkpoint_ns = %s AND checkpoint_id = %s"
    )
    _OF_RUNS = "SELECT thread_id, checkpoint_ns, checkpoint_id FROM checkpoints WHERE metadata ->> 'run_id' = ANY(%s)"
    _DELETE_NAMESPACE = "DELETE FROM {table} WHERE thread_id = %s AND checkpoint_ns = %s"
    # A state that was edited by hand says nothing about the run.
    _LAST_RUN = (
        "SELECT metadata FROM checkpoints WHERE thread_id = %s AND checkpoint_ns = ''"
        " AND metadata ->> 'source' <> 'update' ORDER BY checkpoint_id DESC LIMIT 1"
    )
    _HEAD = (
        "SELECT checkpoint_id, metadata::text, EXISTS (SELECT 1 FROM checkpoint_writes w"
        " WHERE w.thread_id = c.thread_id AND w.checkpoint_ns = '' AND w.checkpoint_id = c.checkpoint_id),"
        " EXISTS (SELECT 1 FROM checkpoints s"
        " WHERE s.thread_id = c.thread_id AND s.checkpoint_ns > '' AND s.checkpoint_id > c.checkpoint_id)"
        " FROM checkpoints c WHERE thread_id = %s AND checkpoint_ns = '' ORDER BY checkpoint_id DESC LIMIT 1"
    )

    _saver: PostgresSaver

    def __init__(self, database: PostgresDatabase) -> None:
        # Without a connection: each call gets a copy on the one that it may use.
        unconnected = PostgresSaver(cast(Any, None))
        super().__init__(database, database.read(PostgresTables, database.rows), unconnected)
        self._database = database

    def saver(self, serde: SerializerProtocol) -> PostgresSaver:
        """Return LangGraph's saver on the connection that is in use; it does one thing at a time, as that does."""
        saver = copy.copy(self._saver)
        saver.serde, saver.lock, saver.conn = serde, threading.Lock(), cast(Any, self._database.connection)
        saver.supports_pipeline = saver.supports_pipeline and not self._database.location.pgbouncer
        return saver

    def delete(self, thread_id: str, namespace: str, checkpoint_ids: Sequence[str]) -> None:
        """Delete checkpoints, their writes, and the values that nothing refers to any more."""
        for table in ("checkpoints", "checkpoint_writes"):
            self._rows(_DELETE.format(table=table), (thread_id, namespace, self._list(checkpoint_ids)))
        self._rows(_DELETE_BLOBS, (thread_id, namespace) * 2)

    def _metadata(self, stored: Any) -> Mapping[str, Any]:
        return stored if isinstance(stored, dict) else {}

    def _list(self, texts: Sequence[str]) -> list[str]:
        return [*texts]
