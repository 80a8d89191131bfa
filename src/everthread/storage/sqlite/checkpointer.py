"""The rows of checkpoints in SQLite: SQL on `checkpoints` and `writes`, whose layout is LangGraph's.

`tables` has what is read without LangGraph.
"""

import copy
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any, ClassVar

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.sqlite import SqliteSaver

from everthread.state import namespaces
from everthread.storage.checkpoint_rows import CheckpointRows
from everthread.storage.kept_checkpoints import OURS
from everthread.storage.sqlite.database import SqliteDatabase
from everthread.storage.sqlite.tables import METADATA, SqliteTables

_DELETE = (
    "DELETE FROM {table} WHERE thread_id = ? AND checkpoint_ns = ?"
    " AND checkpoint_id IN (SELECT value FROM json_each(?))"
)


class SqliteCheckpointRows(CheckpointRows):
    """The rows of checkpoints in SQLite; see `CheckpointRows`."""

    _COLUMNS: ClassVar = {
        "checkpoints": "checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata",
        "writes": "checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, value",
    }
    _COPY = "INSERT INTO {table} (thread_id, {columns}) SELECT ?, {columns} FROM {table} WHERE thread_id = ?"
    _HISTORY = (
        "SELECT checkpoint_id, parent_checkpoint_id, metadata FROM checkpoints"
        " WHERE thread_id = ? AND checkpoint_ns = ? ORDER BY checkpoint_id"
    )
    _NAMESPACES = "SELECT checkpoint_ns, metadata FROM checkpoints WHERE thread_id = ? GROUP BY checkpoint_ns"
    _EVERY = "SELECT thread_id, checkpoint_ns, checkpoint_id FROM checkpoints ORDER BY checkpoint_id DESC"
    _TASK_PATHS = (
        "SELECT DISTINCT task_id, task_path FROM writes WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?"
    )
    _OF_RUNS = (
        "SELECT thread_id, checkpoint_ns, checkpoint_id FROM checkpoints"
        f" WHERE {METADATA.format('run_id')} IN (SELECT value FROM json_each(?))"
    )
    _DELETE_NAMESPACE = "DELETE FROM {table} WHERE thread_id = ? AND checkpoint_ns = ?"
    # A state that was edited by hand says nothing about the run.
    _LAST_RUN = (
        "SELECT metadata FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ''"
        f" AND {METADATA.format('source')} <> 'update' ORDER BY checkpoint_id DESC LIMIT 1"
    )
    _HEAD = (
        "SELECT checkpoint_id, CAST(metadata AS BLOB), EXISTS (SELECT 1 FROM writes w"
        " WHERE w.thread_id = c.thread_id AND w.checkpoint_ns = '' AND w.checkpoint_id = c.checkpoint_id),"
        " EXISTS (SELECT 1 FROM checkpoints s"
        " WHERE s.thread_id = c.thread_id AND s.checkpoint_ns > '' AND s.checkpoint_id > c.checkpoint_id)"
        " FROM checkpoints c WHERE thread_id = ? AND checkpoint_ns = '' ORDER BY checkpoint_id DESC LIMIT 1"
    )

    def __init__(self, database: SqliteDatabase) -> None:
        saver = _Saver(database.connection)
        saver.setup()
        super().__init__(database, SqliteTables(database.rows), saver)

    def saver(self, serde: SerializerProtocol) -> BaseCheckpointSaver[Any]:
        """Return LangGraph's saver on the connection."""
        saver = copy.copy(self._saver)
        saver.serde = serde
        return saver

    def delete(self, thread_id: str, namespace: str, checkpoint_ids: Sequence[str]) -> None:
        """Delete checkpoints and their writes."""
        for table in self._COLUMNS:
            self._rows(_DELETE.format(table=table), (thread_id, namespace, self._list(checkpoint_ids)))

    def _metadata(self, stored: bytes | None) -> Mapping[str, Any]:
        try:
            read = json.loads(stored or b"{}")
        except (ValueError, TypeError, RecursionError):
            return {}
        return read if isinstance(read, dict) else {}

    def _list(self, texts: Sequence[str]) -> str:
        return json.dumps([*texts])


class _Saver(SqliteSaver):
    """A `SqliteSaver` whose caller says where a transaction begins, and holds the connection."""

    @contextmanager
    def cursor(self, transaction: bool = True) -> Iterator[sqlite3.Cursor]:
        """Give a cursor."""
        with closing(self.conn.cursor()) as cursor:
            yield cursor


def mark_as_ours(connection: sqlite3.Connection) -> None:
    """Mark the checkpoints of the threads that have a session of ours, as runs do since the mark is there."""
    connection.execute(
        "UPDATE checkpoints SET metadata = CAST(json_set(CAST(metadata AS TEXT), ?, 1) AS BLOB)"
        " WHERE thread_id IN (SELECT key FROM store WHERE prefix = ?) AND json_valid(CAST(metadata AS TEXT))",
        (f"$.{OURS}", ".".join(namespaces.SESSIONS)),
    )
