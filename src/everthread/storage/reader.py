"""Read a database and change nothing: records of the store, and the state of a thread.

For people who look at a database: a row that cannot be read is named in a warning, and the rest is read. LangChain and
LangGraph are not imported, which takes longer than any answer, so the checkpoints are read here as they are stored;
`tests/unit/storage/test_reader.py` compares that with what LangGraph reads. Runs go through the checkpointer and the
store.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from everthread.errors import StorageError
from everthread.state.marks import is_answer
from everthread.state.namespaces import SESSIONS, Namespace
from everthread.state.reducer import reduced
from everthread.state.stored import StoredMessage
from everthread.storage.kept_checkpoints import OWN_GRAPH
from everthread.storage.locations import is_postgres, needing_postgres
from everthread.storage.stored_values import json_object, messages_in, written_value
from everthread.storage.tables import StoredCheckpoint, Tables
from everthread.storage.unreadable import FAULTS, described, leave_out, record_name

TurnStatus = Literal["idle", "interrupted", "unfinished"]
"""`interrupted`: it waits for answers; `unfinished`: it was begun and has no reply."""

_NEWEST = 50
"""Items of a page of the newest; what is looked for is as a rule among the last ones."""


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
        tables: open as long as the reader is used.
    """

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self._damaged: dict[Namespace, set[str]] = {}
        """Keys of records that cannot be read, of namespaces that were searched to their end."""

    def get(self, namespace: Namespace, key: str) -> Record | None:
        """Return one item of the store; None when there is none, or when it cannot be read.

        Raises:
            UnreadableError: it is a session's, so nobody knows whose its thread is.
        """
        for found, blob in self.tables.page(namespace, key=key):
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
        return bool(self.tables.page(namespace, key=key))

    def search(self, namespace: Namespace, *, limit: int, offset: int = 0) -> list[Record]:
        """Return readable items of exactly this namespace, by key; `limit` and `offset` count these only."""
        found: list[Record] = []
        skipped = self._damaged.setdefault(namespace, set())
        while True:
            rows = self.tables.page(namespace, skip=sorted(skipped), limit=limit - len(found), offset=offset)
            readable = [*self.decoded(namespace, rows)]
            found += readable
            skipped.update({str(key) for key, _ in rows} - {record.key for record in readable})
            offset += len(readable)
            if len(readable) == len(rows):
                return found

    def newest(self, namespace: Namespace) -> Iterator[Record]:
        """Yield the readable items of exactly one namespace, the last key first, a few at a time."""
        offset = 0
        while rows := self.tables.page(namespace, limit=_NEWEST, offset=offset, is_last_first=True):
            yield from self.decoded(namespace, rows)
            offset += len(rows)

    def decoded(self, namespace: Namespace, rows: Iterable[tuple[str, bytes]]) -> Iterator[Record]:
        """Yield what can be read of rows; the others are named in a warning."""
        for key, blob in rows:
            try:
                yield Record(namespace, str(key), json_object(blob))
            except FAULTS as error:
                leave_out(record_name(namespace, key), error)

    def has_state(self, thread_id: str) -> bool:
        """Tell whether a thread has a checkpoint."""
        return self.tables.checkpoint(thread_id) is not None

    def saved_at(self, thread_id: str) -> str:
        """Return when the newest checkpoint of a thread was saved, ISO 8601; empty when it does not say so."""
        saved = self.tables.checkpoint(thread_id)
        return saved.saved_at() if saved is not None else ""

    def is_ours(self, thread_id: str) -> bool:
        """Tell whether our own graph wrote the newest checkpoint of a thread, or has still to write the first."""
        return not self.has_state(thread_id) or self.tables.last_writer(thread_id) == OWN_GRAPH

    def state(self, thread_id: str) -> ThreadState:
        """Return the state of a thread; an empty one when it has no checkpoint.

        Raises:
            StorageError: it is stored in a form that this version does not know.
        """
        saved = self.tables.checkpoint(thread_id)
        if saved is None:
            return ThreadState({}, (), is_unfinished=False, asked=())
        try:
            return self._state(thread_id, saved)
        except FAULTS as error:
            raise StorageError(
                f"the state of thread {thread_id!r} cannot be read ({type(error).__name__}: {error}); "
                "see whether another version of langgraph wrote it"
            ) from error

    def turn(self, thread_id: str) -> TurnStatus:
        """Tell what became of the last turn of a thread; one that still runs is unfinished too."""
        saved = self.tables.checkpoint(thread_id)
        values = self._values(thread_id, saved) if saved is not None else None
        if saved is None or not values:
            return "idle"
        if any(name == "__interrupt__" for name, _ in self._writes(thread_id, saved.id)):
            return "interrupted"
        if not _is_waiting(values):
            return "idle"
        # What is left may be the work behind an answer.
        messages = self.state(thread_id).messages
        return "idle" if messages and is_answer(messages[-1]) else "unfinished"

    def _state(self, thread_id: str, saved: StoredCheckpoint) -> ThreadState:
        head, seen = saved.id, set[str]()
        values, base, writes = self._values(thread_id, saved), None, list[Any]()
        state = values
        while True:
            base = None if values is None else values.get("messages")
            if base is not None or saved.parent is None or saved.parent in seen:
                break
            seen.add(saved.parent)
            parent = self.tables.checkpoint(thread_id, saved.parent)
            if parent is None:
                break
            saved, values = parent, self._values(thread_id, parent)
            # In place of a checkpoint that cannot be read stands the one ahead of it.
            state = values if state is None else state
            writes[:0] = [value for name, value in self._writes(thread_id, saved.id) if name == "messages"]
        values = {name: value for name, value in (state or {}).items() if name != "messages"}
        for write in [*writes]:
            if isinstance(write, Mapping) and write.get("type") == "__overwrite__":
                base, writes = write.get("value"), writes[writes.index(write) + 1 :]
        is_unfinished, received = _is_waiting(values), values.pop("__start__", None)
        if isinstance(received, Mapping):
            writes.append(received.get("messages"))
        pending = self._writes(thread_id, head)
        return ThreadState(
            {name: value for name, value in values.items() if not _is_control(name)},
            reduced(messages_in(base), messages_in(writes)),
            is_unfinished=is_unfinished,
            asked=[one["value"] for name, value in pending if name == "__interrupt__" for one in value],
        )

    def _writes(self, thread_id: str, checkpoint_id: str) -> list[tuple[str, Any]]:
        found = []
        for channel, kind, blob in self.tables.writes(thread_id, checkpoint_id):
            try:
                found.append((channel, written_value(channel, kind, blob)))
            except FAULTS as error:
                leave_out(f"a write to `{channel}` at checkpoint {checkpoint_id!r} of thread {thread_id!r}", error)
        return found

    def _values(self, thread_id: str, saved: StoredCheckpoint) -> dict[str, Any] | None:
        """Return the channels of a checkpoint; None when it cannot be read."""
        try:
            return saved.values()
        except FAULTS as error:
            leave_out(f"checkpoint {saved.id!r} of thread {thread_id!r}", error)
            return None


@contextmanager
def open_reader(url: str) -> Iterator[Reader]:
    """Open a database to look at it; nothing in it is changed.

    Raises:
        SettingsError: the URL is not understood.
        StorageError: there is no such database, it is none of ours, or a newer version made it.
    """
    # Taken when called: each needs a driver that the other one does without.
    if is_postgres(url):
        with needing_postgres():
            from everthread.storage.postgres import tables as postgres
        with postgres.open_tables(url) as tables:
            yield Reader(tables)
        return
    from everthread.storage.sqlite import tables as sqlite

    with sqlite.open_tables(url) as rows:
        yield Reader(rows)


def _is_waiting(values: Mapping[str, Any]) -> bool:
    """Tell whether a node has still to run."""
    # LangGraph's own channels have names that no key of a state can have; one with a value wakes a node.
    waking = (value != [] for name, value in values.items() if _is_control(name) and name != "__start__")
    return values.get("__start__") is not None or any(waking)


def _is_control(name: str) -> bool:
    return name.startswith("__") or not name.isidentifier()
