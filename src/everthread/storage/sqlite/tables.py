"""The rows of a SQLite database as they are stored; see `Tables`."""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from typing import Any

from everthread.state import namespaces
from everthread.state.namespaces import Namespace
from everthread.storage.kept_checkpoints import OURS
from everthread.storage.locations import connect_to_read, locate, prepare
from everthread.storage.sqlite.formats import refuse_newer
from everthread.storage.stored_values import channel_values, json_object, loaded, written_value
from everthread.storage.tables import StoredCheckpoint
from everthread.storage.unreadable import FAULTS

__all__ = ["METADATA", "SqliteTables", "open_tables"]

# As bytes: a text that is no UTF-8 could not even be fetched.
_TYPED = "CAST(type AS BLOB), CAST({} AS BLOB)"
_CHECKPOINT = (
    f"SELECT checkpoint_id, parent_checkpoint_id, {_TYPED.format('checkpoint')} FROM checkpoints"
    " WHERE thread_id = ? AND checkpoint_ns = ''"
)
_WRITES = (
    f"SELECT channel, {_TYPED.format('value')} FROM writes"
    " WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id = ? ORDER BY {path}task_id, idx"
)
_ITEM = "SELECT key, CAST(value AS BLOB) FROM store WHERE prefix = ?"
# What the first bytes tell to be something else need not be parsed; a quotation mark in somebody's words is escaped.
_SKIPPED = " AND instr(substr(value, 1, 128), CAST('{}' AS BLOB)) = 0"
# A value that is no JSON would stop the whole query; who decodes it names it.
_OF_KINDS = (
    " AND CASE WHEN json_valid(CAST(value AS TEXT)) THEN"
    " json_extract(CAST(value AS TEXT), '$.event') IN (SELECT value FROM json_each(?)) ELSE 1 END"
)
_PLACES = (
    "SELECT key, json_extract(CAST(value AS TEXT), '$.seq') FROM store"
    " WHERE prefix = ?{} AND json_valid(CAST(value AS TEXT)) AND json_extract(CAST(value AS TEXT), '$.role') = ?"
)
_LAST_PLACES = (
    " ORDER BY CASE WHEN json_valid(CAST(value AS TEXT)) THEN json_extract(CAST(value AS TEXT), '$.seq') END DESC"
    " LIMIT ? OFFSET ?"
)
_BELOW = (
    "SELECT prefix, key, CAST(value AS BLOB) FROM store WHERE prefix = ? OR (prefix > ? AND prefix < ?)"
    " ORDER BY prefix, key"
)
_NAMED = "SELECT 1 FROM store WHERE prefix = ? AND instr(CAST(value AS TEXT), ?) > 0 LIMIT 1"
_SAVED = f"SELECT {_TYPED.format('checkpoint')} FROM checkpoints WHERE thread_id = ? ORDER BY checkpoint_id"
_WRITTEN = f"SELECT channel, {_TYPED.format('value')} FROM writes WHERE thread_id = ?"
_EVERY_CHECKPOINT = f"SELECT thread_id, checkpoint_id, {_TYPED.format('checkpoint')}, CAST(metadata AS BLOB)"
_EVERY_WRITE = f"SELECT thread_id, checkpoint_id, channel, {_TYPED.format('value')}"
_EVERY_ITEM = (
    "SELECT CAST(prefix AS BLOB), CAST(key AS BLOB), CAST(value AS BLOB), CAST(created_at AS BLOB),"
    " CAST(updated_at AS BLOB) FROM store"
)
# Metadata that is no JSON would stop the whole query.
METADATA = "CASE WHEN json_valid(CAST(metadata AS TEXT)) THEN json_extract(CAST(metadata AS TEXT), '$.{}') END"
_SIZES = (
    "SELECT thread_id, count(*), sum(length(checkpoint) + length(CAST(metadata AS BLOB)))"
    " + ifnull((SELECT sum(length(value)) FROM writes WHERE writes.thread_id = checkpoints.thread_id), 0)"
    " FROM checkpoints GROUP BY thread_id"
)
# Edits that did not come through a guard say nothing.
_LAST_WRITER = (
    f"SELECT {METADATA.format(OURS)} FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ''"
    f" AND ({METADATA.format('source')} <> 'update' OR {METADATA.format(OURS)} IS NOT NULL)"
    " ORDER BY checkpoint_id DESC LIMIT 1"
)


class SqliteTables:
    """The rows of a SQLite database, on a connection that stays open; see `Tables`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        self._tables = {str(row[0]) for row in tables}

    @property
    def has_checkpoints(self) -> bool:
        """Whether the database has LangGraph's tables."""
        return {"checkpoints", "writes"} <= self._tables

    def checkpoint(self, thread_id: str, checkpoint_id: str | None = None) -> StoredCheckpoint | None:
        """Return a checkpoint, the newest unless one is named."""
        if checkpoint_id is None:
            rows = self._rows("checkpoints", f"{_CHECKPOINT} ORDER BY checkpoint_id DESC LIMIT 1", thread_id)
        else:
            rows = self._rows("checkpoints", f"{_CHECKPOINT} AND checkpoint_id = ?", thread_id, checkpoint_id)
        for name, parent, *stored in rows:
            return StoredCheckpoint(name, parent, partial(channel_values, *stored), partial(_saved_at, *stored))
        return None

    def writes(self, thread_id: str, checkpoint_id: str) -> list[tuple[str, bytes, bytes]]:
        """Return what tasks wrote after a checkpoint, in order."""
        columns = self.connection.execute("PRAGMA table_info(writes)").fetchall()
        path = "task_path, " if any(column[1] == "task_path" for column in columns) else ""
        return self._rows("writes", _WRITES.format(path=path), thread_id, checkpoint_id)

    def last_writer(self, thread_id: str) -> int | None:
        """Return which graph wrote the newest checkpoint of a thread."""
        rows = self._rows("checkpoints", _LAST_WRITER, thread_id)
        return None if not rows or rows[0][0] is None else int(rows[0][0])

    def thread_sizes(self) -> dict[str, tuple[int, int]]:
        """Return checkpoints of each thread, and bytes of all its rows."""
        rows = self._rows("checkpoints", _SIZES) if self.has_checkpoints else []
        return {str(thread_id): (count, size) for thread_id, count, size in rows}

    def bytes_of(self, threads: Sequence[str]) -> dict[str, int]:
        """Return the bytes of all rows of some threads."""
        sizes = dict.fromkeys(threads, 0)
        for thread_id in threads:
            below = ".".join(namespaces.thread(thread_id))
            for table, sql, values in (
                ("checkpoints", "SELECT sum(length(checkpoint) + length(metadata)) FROM checkpoints", None),
                ("writes", "SELECT sum(length(value)) FROM writes", None),
                ("store", "SELECT sum(length(CAST(value AS BLOB))) FROM store", (f"{below}.", f"{below}/")),
            ):
                where = " WHERE thread_id = ?" if values is None else " WHERE prefix > ? AND prefix < ?"
                sizes[thread_id] += sum(
                    row[0] or 0 for row in self._rows(table, sql + where, *(values or (thread_id,)))
                )
        return sizes

    def thread_ids(self) -> list[str]:
        """Return the threads that have checkpoints."""
        return [str(row[0]) for row in self._rows("checkpoints", "SELECT DISTINCT thread_id FROM checkpoints")]

    def row_counts(self, threads: Iterable[str]) -> dict[str, int]:
        """Count the rows of threads by table."""
        counts = Counter[str]()
        for thread_id in threads:
            for table in ("checkpoints", "writes"):
                query = f"SELECT count(*) FROM {table} WHERE thread_id = ?"
                counts[table] += sum(row[0] for row in self._rows(table, query, thread_id))
        return counts

    def stored_values(self, thread_id: str) -> Iterator[tuple[str, bytes, bytes]]:
        """Yield whole checkpoints and what tasks wrote, oldest first."""
        for kind, blob in self._rows("checkpoints", _SAVED, thread_id):
            yield "", kind or b"", blob or b""
        yield from self._rows("writes", f"{_WRITTEN} ORDER BY checkpoint_id, task_id, idx", thread_id)

    def newest_inputs(self, thread_id: str, most: int) -> Iterator[tuple[str, bytes, bytes]]:
        """Yield what was last said in a thread."""
        said = f"{_WRITTEN} AND channel IN ('messages', '__start__') ORDER BY checkpoint_id DESC LIMIT ?"
        yield from self._rows("writes", said, thread_id, most)
        for kind, blob in self._rows("checkpoints", f"{_SAVED} DESC LIMIT 1", thread_id):
            yield "", kind or b"", blob or b""

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
        prefix = ".".join(namespace)
        if key is not None:
            return self._rows("store", f"{_ITEM} AND key = ?", prefix, key)
        order = "key DESC" if is_last_first else "key"
        sql = f"{_ITEM} AND key NOT IN (SELECT value FROM json_each(?)) ORDER BY {order} LIMIT ? OFFSET ?"
        return self._rows("store", sql, prefix, json.dumps([*skip]), limit, offset)

    def keys(self, namespace: Namespace) -> list[str]:
        """Return the keys of exactly one namespace, in no order."""
        return [
            str(key) for (key,) in self._rows("store", "SELECT key FROM store WHERE prefix = ?", ".".join(namespace))
        ]

    def holding(
        self, namespace: Namespace, words: Sequence[str], *, limit: int | None = None, offset: int = 0
    ) -> list[tuple[str, bytes]]:
        """Return the items of exactly one namespace whose values hold all of some words."""
        sql = f"{_ITEM}{' AND CAST(value AS TEXT) LIKE ?' * len(words)}{'' if limit is None else _LAST_PLACES}"
        page = () if limit is None else (limit, offset)
        return self._rows("store", sql, ".".join(namespace), *(f"%{word}%" for word in words), *page)

    def events(self, namespace: Namespace, kinds: Sequence[str]) -> list[tuple[str, bytes]]:
        """Return the events of a ledger of some kinds, or of all when none is named, oldest first."""
        if not kinds:
            return self._rows("store", f"{_ITEM} ORDER BY key", ".".join(namespace))
        # Most events are of these kinds.
        skipped = (_SKIPPED.format(f'"event":"{one}"') for one in ("prompt_assembled", "injected") if one not in kinds)
        sql = f"{_ITEM}{''.join(skipped)}{_OF_KINDS} ORDER BY key"
        return self._rows("store", sql, ".".join(namespace), json.dumps([*kinds]))

    def places(self, namespace: Namespace, role: str) -> list[tuple[str, int]]:
        """Return key and place of every record of a transcript that is of a role, in no order."""
        skipped = (_SKIPPED.format(f'"role":"{one}"') for one in ("human", "ai", "tool") if one != role)
        rows = self._rows("store", _PLACES.format("".join(skipped)), ".".join(namespace), role)
        return [(str(key), seq) for key, seq in rows if isinstance(seq, int)]

    def below(self, prefix: str) -> list[tuple[str, str, bytes]]:
        """Return the items of a namespace and of all below it, in order."""
        # "/" is the character after ".", so this is every prefix that begins with "prefix.".
        return self._rows("store", _BELOW, prefix, prefix + ".", prefix + "/")

    def names(self, namespace: Namespace, text: str) -> bool:
        """Tell whether a value in a namespace holds a text."""
        return bool(self._rows("store", _NAMED, ".".join(namespace), text))

    def unreadable(self, thread_id: str | None = None) -> Iterator[str]:
        """Yield the names of checkpoints and writes that cannot be read; of one thread, or of all."""
        where, values = ("", ()) if thread_id is None else (" WHERE thread_id = ?", (thread_id,))
        for thread, checkpoint_id, kind, blob, metadata in self._each(
            "checkpoints", f"{_EVERY_CHECKPOINT} FROM checkpoints{where}", *values
        ):
            try:
                channel_values(kind, blob)
                json_object(metadata or b"{}")
            except FAULTS:
                yield f"checkpoint {checkpoint_id!r} of thread {thread!r}"
        for thread, checkpoint_id, channel, kind, blob in self._each(
            "writes", f"{_EVERY_WRITE} FROM writes{where}", *values
        ):
            try:
                written_value(channel, kind, blob)
            except FAULTS:
                yield f"a write to `{channel}` at checkpoint {checkpoint_id!r} of thread {thread!r}"

    def unreadable_items(self) -> Iterator[tuple[bytes, bytes, bytes, list[Any]]]:
        """Yield every item as it is stored."""
        for prefix, key, value, *times in self._each("store", _EVERY_ITEM):
            yield prefix, key, value, times

    def _rows(self, table: str, sql: str, *values: Any) -> list[Any]:
        return [*self._each(table, sql, *values)]

    def _each(self, table: str, sql: str, *values: Any) -> Iterator[Any]:
        return iter(self.connection.execute(sql, values) if table in self._tables else ())


@contextmanager
def open_tables(url: str) -> Iterator[SqliteTables]:
    """Open a database to look at it; nothing in it is changed."""
    location = locate(url)
    prepare(location, read_only=True)
    with closing(sqlite3.connect(":memory:") if location.path is None else connect_to_read(location.path)) as opened:
        refuse_newer(opened, location.path)
        yield SqliteTables(opened)


def _saved_at(kind: bytes, blob: bytes) -> str:
    return str(loaded(kind, blob).get("ts", ""))
