"""Read a database and change nothing: records of the store, and the state of a thread.

For people who look at a database: a row that cannot be read is named in a warning, and the rest is read. LangChain and
LangGraph are not imported, which takes longer than any answer, so the checkpoints are read here as they are stored;
`tests/unit/storage/test_reader.py` compares that with what LangGraph reads. Runs go through the checkpointer and the
store.
"""

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import ormsgpack

from everthread.errors import StorageError
from everthread.state.namespaces import SESSIONS, Namespace
from everthread.state.reducer import reduced
from everthread.state.stored import StoredMessage
from everthread.storage.kept_checkpoints import OWN_GRAPH
from everthread.storage.locations import connect_to_read, locate, prepare
from everthread.storage.sqlite.checkpoint_rows import last_writer
from everthread.storage.sqlite.formats import refuse_newer
from everthread.storage.unreadable import FAULTS, described, leave_out, record_name

__all__ = ["Reader", "Record", "ThreadState", "channel_values", "json_object", "open_reader", "written_value"]

# As bytes: a text that is no UTF-8 could not even be fetched.
_TYPED = "CAST(type AS BLOB), CAST({} AS BLOB)"
_CHECKPOINT = f"SELECT checkpoint_id, parent_checkpoint_id, {_TYPED.format('checkpoint')} FROM checkpoints"
_HEAD = f"{_CHECKPOINT} WHERE thread_id = ? AND checkpoint_ns = '' ORDER BY checkpoint_id DESC LIMIT 1"
_PARENT = f"{_CHECKPOINT} WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id = ?"
_WRITES = (
    f"SELECT channel, {_TYPED.format('value')} FROM writes"
    " WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id = ? ORDER BY {path}task_id, idx"
)
_ITEM = "SELECT key, CAST(value AS BLOB) FROM store WHERE prefix = ?"


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
        self._damaged: dict[Namespace, set[str]] = {}
        """Keys of records that cannot be read, of namespaces that were searched to their end."""

    def get(self, namespace: Namespace, key: str) -> Record | None:
        """Return one item of the store; None when there is none, or when it cannot be read.

        Raises:
            UnreadableError: it is a session's, so nobody knows whose its thread is.
        """
        for found, blob in self._items(f"{_ITEM} AND key = ?", (".".join(namespace), key)):
            try:
                return Record(namespace, str(found), json_object(blob))
            except FAULTS as error:
                damaged = described(record_name(namespace, key), error)
                if namespace == SESSIONS:
                    raise damaged from error
                leave_out("", damaged)
        return None

    def has(self, namespace: Namespace, key: str) -> bool:
        """Tell whether there is an item, readable or not."""
        return bool(self._items(f"{_ITEM} AND key = ?", (".".join(namespace), key)))

    def search(self, namespace: Namespace, *, limit: int, offset: int = 0) -> list[Record]:
        """Return readable items of exactly this namespace, by key; `limit` and `offset` count these only."""
        found: list[Record] = []
        skipped = self._damaged.setdefault(namespace, set())
        sql = f"{_ITEM} AND key NOT IN (SELECT value FROM json_each(?)) ORDER BY key LIMIT ? OFFSET ?"
        while True:
            rows = self._items(sql, (".".join(namespace), json.dumps(sorted(skipped)), limit - len(found), offset))
            read = 0
            for key, blob in rows:
                try:
                    found.append(Record(namespace, str(key), json_object(blob)))
                    read += 1
                except FAULTS as error:
                    leave_out(record_name(namespace, key), error)
                    skipped.add(str(key))
            offset += read
            if read == len(rows):
                return found

    def has_state(self, thread_id: str) -> bool:
        """Tell whether a thread has a checkpoint."""
        return self._row(_HEAD, thread_id) is not None

    @property
    def has_checkpoints(self) -> bool:
        """Whether the database has LangGraph's tables."""
        return {"checkpoints", "writes"} <= self._tables

    def saved_at(self, thread_id: str) -> str:
        """Return when the newest checkpoint of a thread was saved, ISO 8601; empty when it does not say so."""
        row = self._row(_HEAD, thread_id)
        return str(_loaded(*row[2:]).get("ts", "")) if row is not None else ""

    def is_ours(self, thread_id: str) -> bool:
        """Tell whether our own graph wrote the newest checkpoint of a thread, or has still to write the first."""
        return not self.has_state(thread_id) or last_writer(self.connection, thread_id) == OWN_GRAPH

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
        except FAULTS as error:
            raise StorageError(
                f"the state of thread {thread_id!r} cannot be read ({type(error).__name__}: {error}); "
                "see whether another version of langgraph wrote it"
            ) from error

    def _state(self, thread_id: str, row: Sequence[Any]) -> ThreadState:
        head, seen = row[0], set[str]()
        values, base, writes = self._values(thread_id, row), None, list[Any]()
        state = values
        while True:
            base = None if values is None else values.get("messages")
            if base is not None or row[1] in (None, *seen):
                break
            seen.add(row[1])
            parent = self._row(_PARENT, thread_id, row[1])
            if parent is None:
                break
            row, values = parent, self._values(thread_id, parent)
            # In place of a checkpoint that cannot be read stands the one ahead of it.
            state = values if state is None else state
            writes[:0] = [value for name, value in self._writes(thread_id, row[0]) if name == "messages"]
        values = {name: value for name, value in (state or {}).items() if name != "messages"}
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
        found = []
        for channel, kind, blob in self.connection.execute(_WRITES.format(path=path), (thread_id, checkpoint_id)):
            try:
                found.append((channel, written_value(channel, kind, blob)))
            except FAULTS as error:
                leave_out(f"a write to `{channel}` at checkpoint {checkpoint_id!r} of thread {thread_id!r}", error)
        return found

    def _values(self, thread_id: str, row: Sequence[Any]) -> dict[str, Any] | None:
        """Return the channels of a checkpoint; None when it cannot be read."""
        try:
            return channel_values(*row[2:])
        except FAULTS as error:
            leave_out(f"checkpoint {row[0]!r} of thread {thread_id!r}", error)
            return None

    def _row(self, sql: str, *values: str) -> Any:
        return self.connection.execute(sql, values).fetchone() if "checkpoints" in self._tables else None

    def _items(self, sql: str, values: Sequence[Any]) -> list[tuple[str, bytes | None]]:
        return self.connection.execute(sql, values).fetchall() if "store" in self._tables else []


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


def json_object(blob: bytes | None) -> dict[str, Any]:
    """Return the value of a record; one of the `FAULTS` is raised when it is none."""
    value = json.loads(blob or b"")
    if not isinstance(value, dict):
        raise TypeError(f"its value is no JSON object but a {type(value).__name__}")
    return value


def channel_values(kind: bytes, blob: bytes) -> dict[str, Any]:
    """Return the channels of a stored checkpoint; one of the `FAULTS` is raised when it is none."""
    checkpoint = _loaded(kind, blob)
    if not isinstance(checkpoint, Mapping) or not isinstance(checkpoint.get("channel_values"), Mapping):
        raise TypeError("it holds something else than a checkpoint")
    values = dict(checkpoint["channel_values"])
    _messages(values.get("messages"))
    return values


def written_value(channel: str, kind: bytes, blob: bytes) -> Any:
    """Return what a task wrote to a channel; one of the `FAULTS` is raised when it cannot be read."""
    value = _loaded(kind, blob)
    if channel == "messages" and not (isinstance(value, Mapping) and value.get("type") == "__overwrite__"):
        _messages(value)
    return value


def _loaded(stored_as: bytes, blob: bytes) -> Any:
    """Return a value that LangGraph has stored, objects as the mapping of their fields.

    Raises:
        ValueError: it is stored in another form, such as encrypted.
    """
    kind = stored_as.decode()
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
