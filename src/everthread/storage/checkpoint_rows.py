"""The rows of checkpoints in one database: LangGraph's saver, and SQL on its tables."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde.base import SerializerProtocol

from everthread.storage.database import Database
from everthread.storage.kept_checkpoints import CheckpointNode
from everthread.storage.tables import Tables


class Head(NamedTuple):
    """The newest checkpoint of a thread."""

    checkpoint_id: str
    metadata: str
    """A digest of it."""
    is_last: bool
    """Nothing was saved behind it: neither what a task wrote nor a checkpoint of a subgraph, which may have stopped."""


class CheckpointRows(ABC):
    """The rows of checkpoints; every method is called inside of the database's `read` or `write`.

    A subclass has the statements, each with its parameters in the order in which they are named here.
    """

    _COLUMNS: ClassVar[Mapping[str, str]]
    """Of each table, without `thread_id`. By name: a database that is older than a column has it last."""
    _COPY: ClassVar[str]  # target, source
    _HISTORY: ClassVar[str]  # thread, namespace
    _NAMESPACES: ClassVar[str]  # thread
    _EVERY: ClassVar[str]
    _TASK_PATHS: ClassVar[str]  # thread, namespace, checkpoint
    _OF_RUNS: ClassVar[str]  # ids of runs
    _DELETE_NAMESPACE: ClassVar[str]  # thread, namespace
    _LAST_RUN: ClassVar[str]  # thread
    _HEAD: ClassVar[str]  # thread

    def __init__(self, database: Database, tables: Tables, saver: BaseCheckpointSaver[Any]) -> None:
        self.tables = tables
        self._rows = database.rows
        self._saver = saver

    @abstractmethod
    def saver(self, serde: SerializerProtocol) -> BaseCheckpointSaver[Any]:
        """Return LangGraph's saver on the connection that is in use."""

    @abstractmethod
    def delete(self, thread_id: str, namespace: str, checkpoint_ids: Sequence[str]) -> None:
        """Delete checkpoints, their writes, and values that nothing refers to any more."""

    def next_version(self, current: Any) -> Any:
        """Return the version of a channel after this one; see `BaseCheckpointSaver.get_next_version`."""
        return self._saver.get_next_version(current, None)

    def history(self, thread_id: str, namespace: str) -> dict[str, CheckpointNode]:
        """Return the checkpoints of a namespace by id, oldest first."""
        rows = self._rows(self._HISTORY, (thread_id, namespace))
        return {name: CheckpointNode(parent, self._metadata(stored)) for name, parent, stored in rows}

    def namespaces(self, thread_id: str) -> list[tuple[str, Mapping[str, Any]]]:
        """Return the namespaces of a thread, each with the metadata of one of its checkpoints."""
        return [(name, self._metadata(stored)) for name, stored in self._rows(self._NAMESPACES, (thread_id,))]

    def every(self) -> list[tuple[str, str, str]]:
        """Return thread, namespace and id of all checkpoints, the newest first."""
        return self._rows(self._EVERY)

    def task_paths(self, thread_id: str, namespace: str, checkpoint_id: str) -> Mapping[str, str]:
        """Return the path of each task that wrote to a checkpoint, by its id."""
        return dict(self._rows(self._TASK_PATHS, (thread_id, namespace, checkpoint_id)))

    def of_runs(self, run_ids: Sequence[str]) -> list[tuple[str, str, str]]:
        """Return thread, namespace and id of the checkpoints with one of these `run_id` in their metadata."""
        return self._rows(self._OF_RUNS, (self._list(run_ids),))

    def delete_namespace(self, thread_id: str, namespace: str) -> None:
        """Delete all checkpoints of a namespace."""
        for table in self._COLUMNS:
            self._rows(self._DELETE_NAMESPACE.format(table=table), (thread_id, namespace))

    def copy(self, source: str, target: str) -> None:
        """Copy all rows of a thread to one that has none."""
        for table, columns in self._COLUMNS.items():
            self._rows(self._COPY.format(table=table, columns=columns), (target, source))

    def last_run(self, thread_id: str) -> Mapping[str, Any]:
        """Return the metadata of the newest checkpoint that is no edit; empty when there is none."""
        rows = self._rows(self._LAST_RUN, (thread_id,))
        return self._metadata(rows[0][0]) if rows else {}

    def head(self, thread_id: str) -> Head | None:
        """Return the newest checkpoint of a thread as it is stored, its state aside; None when there is none."""
        rows = self._rows(self._HEAD, (thread_id,))
        if not rows:
            return None
        name, metadata, has_writes, has_subgraphs = rows[0]
        stored = metadata.encode() if isinstance(metadata, str) else metadata or b""
        return Head(str(name), hashlib.sha256(stored).hexdigest(), not has_writes and not has_subgraphs)

    @abstractmethod
    def _metadata(self, stored: Any) -> Mapping[str, Any]:
        """Read metadata; what cannot be read says nothing, so the checkpoint is not ours to prune."""

    @abstractmethod
    def _list(self, texts: Sequence[str]) -> Any:
        """Return some texts as one parameter."""
