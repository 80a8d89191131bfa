"""The rows of checkpoints in SQLite: SQL on `checkpoints` and `writes`, whose layout is LangGraph's.

`tables` has what is read without LangGraph.
"""

import copy
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any

from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.sqlite import SqliteSaver

from everthread.state import namespaces
from everthread.storage.kept_checkpoints import OURS, CheckpointNode
from everthread.storage.sqlite.database import SqliteDatabase
from everthread.storage.sqlite.tables import METADATA, SqliteTables

__all__ = ["SqliteCheckpointRows", "mark_as_ours"]

_TABLES = ("checkpoints", "writes")

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
_EVERY = "SELECT thread_id, checkpoint_ns, checkpoint_id FROM checkpoints ORDER BY checkpoint_id DESC"
_TASK_PATHS = (
    "SELECT DISTINCT task_id, task_path FROM writes WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?"
)
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


class SqliteCheckpointRows:
    """The rows of checkpoints in SQLite; see `CheckpointRows`."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database
        self._saver = _Saver(database.connection)
        self._saver.setup()
        self._tables = SqliteTables(database.rows)

    def saver(self, serde: SerializerProtocol) -> SqliteSaver:
        """Return LangGraph's saver on the connection."""
        saver = copy.copy(self._saver)
        saver.serde = serde
        return saver

    def next_version(self, current: Any) -> Any:
        """Return the version of a channel after this one."""
        return self._saver.get_next_version(current, None)

    def history(self, thread_id: str, namespace: str) -> dict[str, CheckpointNode]:
        """Return the checkpoints of a namespace by id, oldest first."""
        return {
            checkpoint_id: CheckpointNode(parent, _metadata(blob))
            for checkpoint_id, parent, blob in self._rows(_HISTORY, (thread_id, namespace))
        }

    def namespaces(self, thread_id: str) -> list[tuple[str, Mapping[str, Any]]]:
        """Return the namespaces of a thread, each with the metadata of one of its checkpoints."""
        return [(name, _metadata(blob)) for name, blob in self._rows(_NAMESPACES, (thread_id,))]

    def every(self) -> list[tuple[str, str, str]]:
        """Return thread, namespace and id of all checkpoints, the newest first."""
        return self._rows(_EVERY)

    def task_paths(self, thread_id: str, namespace: str, checkpoint_id: str) -> Mapping[str, str]:
        """Return the path of each task that wrote to a checkpoint, by its id."""
        return dict(self._rows(_TASK_PATHS, (thread_id, namespace, checkpoint_id)))

    def of_runs(self, run_ids: Sequence[str]) -> list[tuple[str, str, str]]:
        """Return thread, namespace and id of the checkpoints of runs."""
        return self._rows(_OF_RUNS, (json.dumps([*run_ids]),))

    def delete(self, thread_id: str, namespace: str, checkpoint_ids: Sequence[str]) -> None:
        """Delete checkpoints and their writes."""
        for table in _TABLES:
            self._rows(_DELETE.format(table=table), (thread_id, namespace, json.dumps([*checkpoint_ids])))

    def delete_namespace(self, thread_id: str, namespace: str) -> None:
        """Delete all checkpoints of a namespace."""
        for table in _TABLES:
            self._rows(_DELETE_NAMESPACE.format(table=table), (thread_id, namespace))

    def copy(self, source: str, target: str) -> None:
        """Copy all rows of a thread to one that has none."""
        for table, columns in _COPY.items():
            sql = f"INSERT INTO {table} (thread_id, {columns}) SELECT ?, {columns} FROM {table} WHERE thread_id = ?"
            self._rows(sql, (target, source))

    def last_run(self, thread_id: str) -> Mapping[str, Any]:
        """Return the metadata of the newest checkpoint that is no edit; empty when there is none."""
        row = self._rows(_LAST_RUN, (thread_id,))
        return _metadata(row[0][0]) if row else {}

    def last_writer(self, thread_id: str) -> int | None:
        """Return which graph wrote the newest checkpoint of a thread."""
        return self._tables.last_writer(thread_id)

    def unreadable(self, thread_id: str) -> Iterator[str]:
        """Yield the names of the checkpoints and writes of a thread that cannot be read."""
        return self._tables.unreadable(thread_id)

    def _rows(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        return self._database.rows(sql, values)


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


def _metadata(blob: bytes | None) -> dict[str, Any]:
    """Read metadata; what cannot be read says nothing, so the checkpoint is not ours to prune."""
    try:
        read = json.loads(blob or b"{}")
    except (ValueError, TypeError, RecursionError):
        return {}
    return read if isinstance(read, dict) else {}
