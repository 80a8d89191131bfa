"""Read a database and change nothing: records of the store, and the state of a thread.

For people who look at a database. LangChain and LangGraph are not imported, which takes longer than any answer, so the
checkpoints are read here as they are stored; `tests/unit/storage/test_reader.py` compares that with what LangGraph
reads. Runs go through the checkpointer and the store.
"""

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import ormsgpack

from everthread.errors import StorageError
from everthread.state.namespaces import Namespace
from everthread.state.reducer import reduced
from everthread.state.stored import StoredMessage
from everthread.storage.locations import connect_to_read, locate, prepare
from everthread.storage.sqlite.formats import refuse_newer

__all__ = ["Reader", "Record", "ThreadState", "open_reader"]

_CHECKPOINT = "SELECT checkpoint_id, parent_checkpoint_id, type, checkpoint FROM checkpoints"
_HEAD = f"{_CHECKPOINT} WHERE thread_id = ? AND checkpoint_ns = '' ORDER BY checkpoint_id DESC LIMIT 1"
_PARENT = f"{_CHECKPOINT} WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id = ?"
_WRITES = (
    "SELECT channel, type, value FROM writes WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id = ?"
    " ORDER BY {path}task_id, idx"
)


@dataclass(frozen=True)
class Record:
    """An item of the store."""

    namespace: Namespace
    key: str
    value: dict[str, Any]


@dataclass(frozen=True)
class ThreadState:
    """The newest checkpoint of a thread."""

    values: Mapping[str, Any]
    """Channels of the state by name, without `messages`."""
    messages: Sequence[StoredMessage]
    """The working set, oldest first, with input that no node has consumed yet."""
    is_unfinished: bool
    """A node has still to run, as a rule because a crash or an approval came in between."""
    asked: Sequence[Any]
    """What the run asks before it goes on: the values of its interrupts."""


class Reader:
    """The records and threads of one database.

    Args:
        connection: open as long as the reader is used.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        self._tables = {str(row[0]) for row in tables}

    def get(self, namespace: Namespace, key: str) -> Record | None:
        """Return one item of the store; None when there is none."""
        sql = "SELECT key, value FROM store WHERE prefix = ? AND key = ?"
        return next((Record(namespace, *row) for row in self._items(sql, (".".join(namespace), key))), None)

    def search(self, namespace: Namespace, *, limit: int, offset: int = 0) -> list[Record]:
        """Return items of exactly this namespace, by key."""
        sql = "SELECT key, value FROM store WHERE prefix = ? ORDER BY key LIMIT ? OFFSET ?"
        return [Record(namespace, *row) for row in self._items(sql, (".".join(namespace), limit, offset))]

    def has_state(self, thread_id: str) -> bool:
        """Tell whether a thread has a checkpoint."""
        return self._row(_HEAD, thread_id) is not None

    def state(self, thread_id: str) -> ThreadState:
        """Return the state of a thread; an empty one when it has no checkpoint.

        Raises:
            StorageError: it is stored in a form that this version does not know.
        """
        row = self._row(_HEAD, thread_id)
        if row is None:
            return ThreadState({}, (), is_unfinished=False, asked=())
        try:
            return self._state(thread_id, row)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise StorageError(
                f"the state of thread {thread_id!r} cannot be read ({type(error).__name__}: {error}); "
                "see whether another version of langgraph wrote it"
            ) from error

    def _state(self, thread_id: str, row: Sequence[Any]) -> ThreadState:
        head, _, kind, blob = row
        values = dict(_loaded(kind, blob)["channel_values"])
        writes: list[Any] = []
        base, seen = values.pop("messages", None), set[str]()
        while base is None and row is not None and row[1] not in (None, *seen):
            seen.add(row[1])
            row = self._row(_PARENT, thread_id, row[1])
            if row is not None:
                base = _loaded(row[2], row[3])["channel_values"].get("messages")
                writes[:0] = [value for name, value in self._writes(thread_id, row[0]) if name == "messages"]
        for write in [*writes]:
            if isinstance(write, Mapping) and write.get("type") == "__overwrite__":
                base, writes = write.get("value"), writes[writes.index(write) + 1 :]
        received = values.pop("__start__", None)
        if isinstance(received, Mapping):
            writes.append(received.get("messages"))
        pending = self._writes(thread_id, head)
        # LangGraph's own channels have names that no key of a state can have; one with a value wakes a node.
        waiting = [name for name, value in values.items() if _is_control(name) and value != []]
        return ThreadState(
            {name: value for name, value in values.items() if not _is_control(name)},
            reduced(_messages(base), _messages(writes)),
            is_unfinished=bool(waiting) or received is not None,
            asked=[one["value"] for name, value in pending if name == "__interrupt__" for one in value],
        )

    def _writes(self, thread_id: str, checkpoint_id: str) -> list[tuple[str, Any]]:
        columns = self.connection.execute("PRAGMA table_info(writes)").fetchall()
        path = "task_path, " if any(column[1] == "task_path" for column in columns) else ""
        rows = self.connection.execute(_WRITES.format(path=path), (thread_id, checkpoint_id))
        return [(channel, _loaded(kind, blob)) for channel, kind, blob in rows]

    def _row(self, sql: str, *values: str) -> Any:
        return self.connection.execute(sql, values).fetchone() if "checkpoints" in self._tables else None

    def _items(self, sql: str, values: Sequence[Any]) -> list[tuple[str, dict[str, Any]]]:
        rows = self.connection.execute(sql, values).fetchall() if "store" in self._tables else []
        return [(str(key), json.loads(value)) for key, value in rows]


@contextmanager
def open_reader(url: str) -> Iterator[Reader]:
    """Open a database to look at it; nothing in it is changed.

    Raises:
        SettingsError: the URL is not understood.
        StorageError: there is no such file, it is no database of ours, or a newer version made it.
    """
    location = locate(url)
    prepare(location, read_only=True)
    with closing(sqlite3.connect(":memory:") if location.path is None else connect_to_read(location.path)) as opened:
        refuse_newer(opened, location.path)
        yield Reader(opened)


def _is_control(name: str) -> bool:
    return name.startswith("__") or not name.isidentifier()


def _messages(values: Any) -> list[StoredMessage]:
    """Return the messages in a value or a list of values, which may hold lists."""
    if values is None:
        return []
    if not isinstance(values, list) or _is_pair(values):
        return [StoredMessage.of(values)]
    return [message for value in values for message in _messages(value)]


def _is_pair(value: Sequence[Any]) -> bool:
    return len(value) == 2 and all(isinstance(part, str) for part in value)


def _loaded(kind: str, blob: bytes) -> Any:
    """Return a value that LangGraph has stored, objects as the mapping of their fields.

    Raises:
        ValueError: it is stored in another form, such as encrypted.
    """
    if kind == "msgpack":
        return ormsgpack.unpackb(blob, ext_hook=_object, option=ormsgpack.OPT_NON_STR_KEYS)
    if kind == "json":
        return json.loads(blob)
    if kind in ("null", "bytes", "bytearray"):
        return blob or None
    raise ValueError(f"stored as {kind!r}")


def _object(_: int, data: bytes) -> Any:
    """Return an object of Python, stored as module, name and what makes it: its fields, when these have names."""
    value = ormsgpack.unpackb(data, ext_hook=_object, option=ormsgpack.OPT_NON_STR_KEYS)
    match value:
        case [str(), str(), {**fields}, *_]:
            return fields
    return value
