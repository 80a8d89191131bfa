"""What the database holds of a user or of a thread, and where: erasing and exporting read the same list.

A row that cannot be read stops neither: it belongs to whom its namespace names, or else whose id is in its bytes.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from langgraph.checkpoint.serde.base import SerializerProtocol

from everthread.errors import NotFoundError
from everthread.state import namespaces
from everthread.storage.decoded import checkpoint_values
from everthread.storage.reading import unknown
from everthread.storage.tables import Tables, Undecoded
from everthread.storage.unreadable import FAULTS, leave_out, record_name

_KINDS = {"trips": "bookings"}
"""Words of ours for namespaces that are called otherwise; `threads.….notes` are session notes."""


@dataclass(frozen=True)
class Record:
    """One row of the store."""

    prefix: str
    """Namespace, its labels joined by dots."""
    key: str
    value: dict[str, Any]
    """Empty when the row cannot be read."""
    damaged: bytes = b""
    """The row as it is stored, when it cannot be read."""

    def names(self, field: str, identifier: str) -> bool:
        """Tell whether the row has an id in a field."""
        if self.damaged:
            return orjson.dumps({field: identifier})[1:-1] in self.damaged
        return self.value.get(field) == identifier


@dataclass(frozen=True)
class UserData:
    """Where the data of a user or of a thread is."""

    user_id: str | None
    """Whose data it is; None for a thread that crashed before its first record."""
    threads: tuple[str, ...]
    jobs: tuple[str, ...] = ()
    """Threads of consolidation jobs that name the user or one of the threads."""
    prefixes: tuple[str, ...] = ()
    """Namespaces of the store that go with all below them."""
    kept_notes: tuple[Record, ...] = ()
    """Long-term notes that were said in another thread too, without the sources of this one."""
    records: tuple[tuple[str, str], ...] = ()
    """Prefix and key of every other record."""
    strangers: tuple[str, ...] = ()
    """Threads whose session record cannot be read, so that nobody knows whose they are."""

    @property
    def checkpointed(self) -> tuple[str, ...]:
        """Threads and jobs, whose checkpoints go."""
        return *self.threads, *self.jobs


def of_user(tables: Tables, serde: SerializerProtocol, user_id: str) -> UserData:
    """List what belongs to a user: profile, notes, bookings, tickets, and every thread of theirs.

    Raises:
        NotFoundError: there is no such user.
    """
    every = list(_below(tables, _text(namespaces.SESSIONS)))
    sessions = [record for record in every if _is_session_of(tables, record, user_id)]
    threads = tuple(record.key for record in sessions)
    own = _text(namespaces.user(user_id))
    if not threads and next(_below(tables, own), None) is None:
        raise NotFoundError(f"there is no user {user_id!r} in this database; `everthread threads` shows who has talked")
    return UserData(
        user_id,
        threads,
        jobs=tuple(_jobs(tables, serde, {user_id, *threads})),
        prefixes=(own, *(_text(namespaces.thread(thread)) for thread in threads)),
        records=tuple((record.prefix, record.key) for record in sessions),
        strangers=tuple(
            one.key for one in every if one.damaged and _owner(tables, one) is None and one not in sessions
        ),
    )


def of_thread(tables: Tables, serde: SerializerProtocol, thread_id: str) -> UserData:
    """List what belongs to a thread, and what its user's records have from it.

    Bookings and tickets made in it belong to it, and so do long-term notes that were said nowhere
    else. A note that was said elsewhere too only loses its sources in this thread.

    Raises:
        NotFoundError: there is no such thread.
    """
    prefix, sessions = _text(namespaces.thread(thread_id)), _text(namespaces.SESSIONS)
    session = next((record for record in _below(tables, sessions) if record.key == thread_id), None)
    if (
        session is None
        and not tables.row_counts([thread_id]).get("checkpoints")
        and next(_below(tables, prefix), None) is None
    ):
        raise unknown(thread_id)
    user_id = _owner(tables, session) if session else None
    rows: list[tuple[str, str]] = [(sessions, thread_id)] if session else []
    kept: list[Record] = []
    own = _text(namespaces.user(user_id)) if user_id else "users"
    for record in _below(tables, own) if user_id or session is None or session.damaged else ():
        sources = record.value.get("sources")
        sources = [source for source in sources if isinstance(source, dict)] if isinstance(sources, list) else []
        elsewhere = [source for source in sources if source.get("thread_id") != thread_id]
        if record.names("thread_id", thread_id) or (sources and not elsewhere):
            rows.append((record.prefix, record.key))
        elif sources and len(elsewhere) < len(sources):
            kept.append(Record(record.prefix, record.key, {**record.value, "sources": elsewhere}))
    return UserData(
        user_id,
        (thread_id,),
        jobs=tuple(_jobs(tables, serde, {thread_id})),
        prefixes=(prefix,),
        kept_notes=tuple(kept),
        records=tuple(rows),
    )


def records(tables: Tables, found: UserData) -> Iterator[Record]:
    """Return every record of the store that is listed, in a fixed order."""
    for prefix in found.prefixes:
        yield from _below(tables, prefix)
    for prefix, key in found.records:
        for _, value in tables.page(tuple(prefix.split(".")), key=key):
            yield _record(prefix, key, value)


def sessions(tables: Tables) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the session record of each thread; an empty one when it cannot be read."""
    for record in _below(tables, _text(namespaces.SESSIONS)):
        yield record.key, record.value


def kind_of(prefix: str) -> str:
    """Return what the records of a namespace are called, such as `notes`, `bookings` or `transcript`."""
    labels = prefix.split(".")
    last = labels[2] if len(labels) > 2 else labels[0]
    if labels[0] == "threads" and last == "notes":
        return "session notes"
    return _KINDS.get(last, last)


def _jobs(tables: Tables, serde: SerializerProtocol, ids: set[str]) -> Iterator[str]:
    """Find the threads of jobs that name one of the ids; a thread with messages is a conversation."""
    talked = {record.key for record in _below(tables, _text(namespaces.SESSIONS))}
    for thread_id in tables.thread_ids():
        if thread_id in talked or thread_id in ids:
            continue
        values = list(checkpoint_values(tables, serde, thread_id))
        is_conversation = any(
            name == "messages" or (isinstance(value, Mapping) and "messages" in value) for name, value in values
        )
        if not is_conversation and any(_names(value, ids) for _, value in values):
            yield thread_id


def _names(value: Any, ids: set[str]) -> bool:
    if isinstance(value, str):
        return value in ids
    if isinstance(value, Undecoded):
        return any(value.find(one.encode()) >= 0 for one in ids)
    if isinstance(value, Mapping):
        return any(_names(item, ids) for item in value.values())
    return isinstance(value, Sequence) and not isinstance(value, bytes) and any(_names(item, ids) for item in value)


def _below(tables: Tables, prefix: str) -> Iterator[Record]:
    """Return the records of a namespace and of all below it."""
    for found, key, value in tables.below(prefix):
        yield _record(found, key, value)


def _record(prefix: str, key: str, value: bytes) -> Record:
    try:
        read = orjson.loads(value)
        if not isinstance(read, dict):
            raise TypeError(f"its value is no JSON object but a {type(read).__name__}")
    except FAULTS as error:
        leave_out(record_name(prefix, key), error)
        return Record(prefix, key, {}, bytes(value) or b"\x00")
    return Record(prefix, key, read)


def _is_session_of(tables: Tables, record: Record, user_id: str) -> bool:
    owner = _owner(tables, record)
    return owner == user_id or (owner is None and record.names("user_id", user_id))


def _owner(tables: Tables, session: Record) -> str | None:
    """Return whose a session is, by its record or else by what was archived of its thread; None: nobody knows."""
    user_id = session.value.get("user_id")
    if "user_id" not in session.value:
        prefix = _text(namespaces.transcript(session.key))
        user_id = next((one for record in _below(tables, prefix) if (one := record.value.get("user_id"))), None)
    return None if user_id is None else str(user_id)


def _text(namespace: namespaces.Namespace) -> str:
    return ".".join(namespace)
