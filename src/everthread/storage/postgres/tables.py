"""The rows of a Postgres database as they are stored; see `Tables`."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import psycopg

from everthread.errors import StorageError
from everthread.state import namespaces
from everthread.state.namespaces import Namespace
from everthread.storage.kept_checkpoints import OURS
from everthread.storage.postgres.database import connect
from everthread.storage.postgres.failures import described
from everthread.storage.postgres.location import locate_postgres
from everthread.storage.postgres.texts import read_json, text_in, text_out
from everthread.storage.stored_values import loaded, messages_in, written_value
from everthread.storage.tables import StoredCheckpoint
from everthread.storage.unreadable import FAULTS

__all__ = ["LAST_WRITER", "PostgresTables", "open_tables"]

Execute = Callable[[str, Sequence[Any]], list[Any]]
"""Executes one statement and returns its rows."""

_TABLES = ("checkpoints", "checkpoint_blobs", "checkpoint_writes", "store")

# Edits that did not come through a guard say nothing.
LAST_WRITER = (
    f"SELECT metadata -> '{OURS}' FROM checkpoints WHERE thread_id = %s AND checkpoint_ns = ''"
    f" AND (metadata ->> 'source' <> 'update' OR metadata -> '{OURS}' IS NOT NULL)"
    " ORDER BY checkpoint_id DESC LIMIT 1"
)
_CHECKPOINT = (
    "SELECT checkpoint_id, parent_checkpoint_id, checkpoint FROM checkpoints"
    " WHERE thread_id = %s AND checkpoint_ns = ''"
)
# Those of the versions that a checkpoint names.
_BLOBS = (
    "SELECT b.channel, b.type, b.blob FROM checkpoint_blobs b JOIN jsonb_each_text(%s::jsonb) v"
    " ON b.channel = v.key AND b.version = v.value WHERE b.thread_id = %s AND b.checkpoint_ns = ''"
)
_WRITES = (
    "SELECT channel, type, blob FROM checkpoint_writes WHERE thread_id = %s AND checkpoint_ns = ''"
    " AND checkpoint_id = %s ORDER BY task_path, task_id, idx"
)
_SIZES = (
    "SELECT c.thread_id, c.count, c.size + coalesce(b.size, 0) + coalesce(w.size, 0) FROM"
    " (SELECT thread_id, count(*), sum(octet_length(checkpoint::text) + octet_length(metadata::text)) AS size"
    " FROM checkpoints GROUP BY thread_id) c"
    " LEFT JOIN (SELECT thread_id, sum(octet_length(blob)) AS size FROM checkpoint_blobs GROUP BY thread_id) b"
    " USING (thread_id)"
    " LEFT JOIN (SELECT thread_id, sum(octet_length(blob)) AS size FROM checkpoint_writes GROUP BY thread_id) w"
    " USING (thread_id)"
)
_BYTES = (
    "SELECT thread_id, sum(octet_length(checkpoint::text) + octet_length(metadata::text)) FROM checkpoints"
    " WHERE thread_id = ANY(%s) GROUP BY thread_id",
    "SELECT thread_id, sum(octet_length(blob)) FROM checkpoint_blobs WHERE thread_id = ANY(%s) GROUP BY thread_id",
    "SELECT thread_id, sum(octet_length(blob)) FROM checkpoint_writes WHERE thread_id = ANY(%s) GROUP BY thread_id",
)
_BYTES_BELOW = "SELECT sum(octet_length(value::text)) FROM store WHERE prefix ~>~ %s AND prefix ~<~ %s"
_INLINE = (
    "SELECT v.key, v.value::text FROM checkpoints c CROSS JOIN LATERAL jsonb_each(c.checkpoint -> 'channel_values') v"
    " WHERE c.thread_id = %s ORDER BY c.checkpoint_id"
)
_STORED = "SELECT channel, type, blob FROM checkpoint_blobs WHERE thread_id = %s ORDER BY version"
_WRITTEN = "SELECT channel, type, blob FROM checkpoint_writes WHERE thread_id = %s"
_SAID = "channel IN ('messages', '__start__')"
_PAGE = "SELECT key, value::text FROM store WHERE prefix = %s"
_PLACES = "SELECT key, value -> 'seq' FROM store WHERE prefix = %s AND value ->> 'role' = %s"
_LAST_PLACES = (
    " ORDER BY CASE WHEN jsonb_typeof(value -> 'seq') = 'number' THEN (value ->> 'seq')::numeric END DESC NULLS LAST"
    " LIMIT %s OFFSET %s"
)
_BELOW = (
    "SELECT prefix, key, value::text FROM store WHERE prefix = %s OR (prefix ~>~ %s AND prefix ~<~ %s)"
    ' ORDER BY prefix COLLATE "C", key COLLATE "C"'
)


class PostgresTables:
    """The rows of a Postgres database; see `Tables`."""

    def __init__(self, execute: Execute) -> None:
        self._execute = execute
        names = execute(
            "SELECT name FROM unnest(%s::text[]) AS n (name) WHERE to_regclass(name) IS NOT NULL", ([*_TABLES],)
        )
        self._tables = {str(name) for (name,) in names}

    @property
    def has_checkpoints(self) -> bool:
        """Whether the database has LangGraph's tables."""
        return {*_TABLES[:3]} <= self._tables

    def checkpoint(self, thread_id: str, checkpoint_id: str | None = None) -> StoredCheckpoint | None:
        """Return a checkpoint, the newest unless one is named."""
        if checkpoint_id is None:
            rows = self._saved(f"{_CHECKPOINT} ORDER BY checkpoint_id DESC LIMIT 1", thread_id)
        else:
            rows = self._saved(f"{_CHECKPOINT} AND checkpoint_id = %s", thread_id, checkpoint_id)
        for name, parent, saved in rows:
            return StoredCheckpoint(name, parent, partial(self._values, thread_id, saved), partial(_saved_at, saved))
        return None

    def writes(self, thread_id: str, checkpoint_id: str) -> list[tuple[str, bytes, bytes]]:
        """Return what tasks wrote after a checkpoint, in order."""
        return _typed(self._saved(_WRITES, thread_id, checkpoint_id))

    def last_writer(self, thread_id: str) -> int | None:
        """Return which graph wrote the newest checkpoint of a thread."""
        rows = self._saved(LAST_WRITER, thread_id)
        return int(rows[0][0]) if rows and isinstance(rows[0][0], int) else None

    def thread_sizes(self) -> dict[str, tuple[int, int]]:
        """Return checkpoints of each thread, and bytes of all its rows."""
        return {thread_id: (count, int(size)) for thread_id, count, size in self._saved(_SIZES)}

    def bytes_of(self, threads: Sequence[str]) -> dict[str, int]:
        """Return the bytes of all rows of some threads."""
        sizes = dict.fromkeys(threads, 0)
        by_label = {".".join(namespaces.thread(one)): one for one in threads}
        for sql in _BYTES if self.has_checkpoints else ():
            for thread_id, size in self._saved(sql, [*threads]):
                sizes[thread_id] += int(size or 0)
        for prefix, thread_id in by_label.items():
            found = self._stored(_BYTES_BELOW, prefix + ".", prefix + "/")
            sizes[thread_id] += int(found[0][0] or 0) if found else 0
        return sizes

    def thread_ids(self) -> list[str]:
        """Return the threads that have checkpoints."""
        return [row[0] for row in self._saved("SELECT DISTINCT thread_id FROM checkpoints")]

    def row_counts(self, threads: Iterable[str]) -> dict[str, int]:
        """Count the rows of threads by table."""
        ids = [*threads]
        return {
            name: self._saved(f"SELECT count(*) FROM {table} WHERE thread_id = ANY(%s)", ids)[0][0]
            for name, table in (("checkpoints", _TABLES[0]), ("values", _TABLES[1]), ("writes", _TABLES[2]))
            if self.has_checkpoints
        }

    def stored_values(self, thread_id: str) -> Iterator[tuple[str, bytes, bytes]]:
        """Yield what checkpoints hold and what tasks wrote, oldest first."""
        for channel, value in self._saved(_INLINE, thread_id):
            yield channel, b"json", value.encode()
        yield from _typed(self._saved(_STORED, thread_id))
        yield from _typed(self._saved(f"{_WRITTEN} ORDER BY checkpoint_id, task_id, idx", thread_id))

    def newest_inputs(self, thread_id: str, most: int) -> Iterator[tuple[str, bytes, bytes]]:
        """Yield what was last said in a thread."""
        yield from _typed(self._saved(f"{_WRITTEN} AND {_SAID} ORDER BY checkpoint_id DESC LIMIT %s", thread_id, most))
        newest = f"SELECT channel, type, blob FROM checkpoint_blobs WHERE thread_id = %s AND {_SAID}"
        yield from _typed(self._saved(f"{newest} ORDER BY version DESC LIMIT 2", thread_id))

    def page(
        self,
        namespace: Namespace,
        *,
        key: str | None = None,
        skip: Sequence[str] = (),
        limit: int = 1,
        offset: int = 0,
        is_last_first: bool = False,
    ) -> list[tuple[str, bytes]]:
        """Return items of exactly one namespace by key."""
        prefix = text_in(".".join(namespace))
        if key is not None:
            rows = self._stored(f"{_PAGE} AND key = %s", prefix, text_in(key))
        else:
            order = "DESC" if is_last_first else "ASC"
            sql = f'{_PAGE} AND key <> ALL(%s) ORDER BY key COLLATE "C" {order} LIMIT %s OFFSET %s'
            rows = self._stored(sql, prefix, [text_in(one) for one in skip], limit, offset)
        return [(text_out(name), _plain(value)) for name, value in rows]

    def keys(self, namespace: Namespace) -> list[str]:
        """Return the keys of exactly one namespace, in no order."""
        rows = self._stored("SELECT key FROM store WHERE prefix = %s", text_in(".".join(namespace)))
        return [text_out(key) for (key,) in rows]

    def holding(
        self, namespace: Namespace, words: Sequence[str], *, limit: int | None = None, offset: int = 0
    ) -> list[tuple[str, bytes]]:
        """Return the items of exactly one namespace whose values hold all of some words."""
        sql = f"{_PAGE} AND value::text ILIKE ALL(%s::text[]){'' if limit is None else _LAST_PLACES}"
        page = () if limit is None else (limit, offset)
        rows = self._stored(sql, text_in(".".join(namespace)), [f"%{word}%" for word in words], *page)
        return [(text_out(name), _plain(value)) for name, value in rows]

    def events(self, namespace: Namespace, kinds: Sequence[str]) -> list[tuple[str, bytes]]:
        """Return the events of a ledger of some kinds, or of all when none is named, oldest first."""
        of_kinds = " AND value ->> 'event' = ANY(%s)" if kinds else ""
        sql = f'{_PAGE}{of_kinds} ORDER BY key COLLATE "C"'
        rows = self._stored(sql, text_in(".".join(namespace)), *([[*kinds]] if kinds else ()))
        return [(text_out(name), _plain(value)) for name, value in rows]

    def places(self, namespace: Namespace, role: str) -> list[tuple[str, int]]:
        """Return key and place of every record of a transcript that is of a role, in no order."""
        rows = self._stored(_PLACES, text_in(".".join(namespace)), role)
        return [(text_out(key), seq) for key, seq in rows if isinstance(seq, int)]

    def below(self, prefix: str) -> list[tuple[str, str, bytes]]:
        """Return the items of a namespace and of all below it, in order."""
        rows = self._stored(_BELOW, prefix, prefix + ".", prefix + "/")
        return [(text_out(found), text_out(key), _plain(value)) for found, key, value in rows]

    def names(self, namespace: Namespace, text: str) -> bool:
        """Tell whether a value in a namespace holds a text."""
        sql = "SELECT 1 FROM store WHERE prefix = %s AND position(%s IN value::text) > 0 LIMIT 1"
        return bool(self._stored(sql, ".".join(namespace), text))

    def unreadable(self, thread_id: str | None = None) -> Iterator[str]:
        """Yield the names of checkpoints and writes that cannot be read; of one thread, or of all."""
        for thread in self.thread_ids() if thread_id is None else [thread_id]:
            rows = self._saved(
                "SELECT checkpoint_id, checkpoint_ns, checkpoint, metadata FROM checkpoints WHERE thread_id = %s",
                thread,
            )
            for checkpoint_id, namespace, saved, metadata in rows:
                try:
                    if namespace == "":
                        self._values(thread, saved)
                    if not isinstance(saved, dict) or not isinstance(metadata, dict):
                        raise TypeError("it holds something else than a checkpoint")
                except FAULTS:
                    yield f"checkpoint {checkpoint_id!r} of thread {thread!r}"
            written = "SELECT checkpoint_id, channel, type, blob FROM checkpoint_writes WHERE thread_id = %s"
            for checkpoint_id, *stored in self._saved(written, thread):
                try:
                    written_value(*_typed([stored])[0])
                except FAULTS:
                    yield f"a write to `{stored[0]}` at checkpoint {checkpoint_id!r} of thread {thread!r}"

    def unreadable_items(self) -> Iterator[tuple[bytes, bytes, bytes, list[Any]]]:
        """Yield every item as it is stored."""
        for prefix, key, value, *times in self._stored(
            "SELECT prefix, key, value::text, created_at, updated_at FROM store"
        ):
            yield prefix.encode(), key.encode(), _plain(value), [time.isoformat() for time in times]

    def _values(self, thread_id: str, saved: Any) -> dict[str, Any]:
        """Return the channels of a checkpoint; one of the `FAULTS` is raised when it is none."""
        if not isinstance(saved, dict) or not isinstance(saved.get("channel_values"), dict | None):
            raise TypeError("it holds something else than a checkpoint")
        values = dict(saved.get("channel_values") or {})
        for channel, kind, blob in self._saved(_BLOBS, json.dumps(saved.get("channel_versions") or {}), thread_id):
            if kind != "empty":
                values[channel] = loaded(kind.encode(), blob or b"")
        messages_in(values.get("messages"))
        return values

    def _saved(self, sql: str, *values: Any) -> list[Any]:
        return self._execute(sql, values) if self.has_checkpoints else []

    def _stored(self, sql: str, *values: Any) -> list[Any]:
        return self._execute(sql, values) if "store" in self._tables else []


@contextmanager
def open_tables(url: str) -> Iterator[PostgresTables]:
    """Open a database to look at it, on one connection that can only read; nothing in it is changed."""
    location = locate_postgres(url)
    with connect(location, direct=not location.pgbouncer or location.schema is not None) as connection:
        try:
            connection.execute("SET default_transaction_read_only = on")
            exists = connection.execute("SELECT to_regclass('store'), to_regclass('checkpoints')").fetchone()
            if exists == (None, None):
                raise StorageError(
                    f"there are no tables of everthread at {location.url!r}; check the URL or begin a conversation"
                )
            yield PostgresTables(lambda sql, values: connection.execute(sql.encode(), values).fetchall())
        except psycopg.Error as error:
            raise described(error) from error


def _typed(rows: Iterable[Any]) -> list[tuple[str, bytes, bytes]]:
    return [(channel, (kind or "").encode(), blob or b"") for channel, kind, blob in rows]


def _plain(value: str) -> bytes:
    """Return a value of the store as any database would give it."""
    return value.encode() if "\ufdd0" not in value else json.dumps(read_json(value)).encode()


def _saved_at(saved: Any) -> str:
    return str(saved.get("ts", "")) if isinstance(saved, dict) else ""
