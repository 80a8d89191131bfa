"""The rows of a SQLite database as they are stored; see `Tables`."""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from typing import Any, ClassVar

from everthread.storage.kept_checkpoints import OURS
from everthread.storage.locations import connect_to_read, locate, prepare
from everthread.storage.sqlite.formats import refuse_newer
from everthread.storage.stored_values import channel_values, json_object, loaded, written_value
from everthread.storage.tables import UNANSWERED, StoredCheckpoint, Tables
from everthread.storage.unreadable import FAULTS

# As bytes: a text that is no UTF-8 could not even be fetched.
_TYPED = "CAST(type AS BLOB), CAST({} AS BLOB)"
_CHECKPOINT = (
    f"SELECT checkpoint_id, parent_checkpoint_id, {_TYPED.format('checkpoint')} FROM checkpoints"
    " WHERE thread_id = ? AND checkpoint_ns = ''"
)
_WRITES = (
    f"SELECT channel, {_TYPED.format('value')} FROM writes w"
    f" WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id = ? AND {UNANSWERED.format('writes')}"
    " ORDER BY {path}task_id, idx"
)
_SAVED = f"SELECT {_TYPED.format('checkpoint')} FROM checkpoints WHERE thread_id = ? ORDER BY checkpoint_id"
_WRITTEN = f"SELECT channel, {_TYPED.format('value')} FROM writes WHERE thread_id = ?"
_EVERY_CHECKPOINT = f"SELECT thread_id, checkpoint_id, {_TYPED.format('checkpoint')}, CAST(metadata AS BLOB)"
_EVERY_WRITE = f"SELECT thread_id, checkpoint_id, channel, {_TYPED.format('value')}"
_EVERY_ITEM = (
    "SELECT CAST(prefix AS BLOB), CAST(key AS BLOB), CAST(value AS BLOB), CAST(created_at AS BLOB),"
    " CAST(updated_at AS BLOB) FROM store"
)
# A value or metadata that is no JSON would stop the whole query; who decodes a value names it.
METADATA = "CASE WHEN json_valid(CAST(metadata AS TEXT)) THEN json_extract(CAST(metadata AS TEXT), '$.{}') END"


class SqliteTables(Tables):
    """The rows of a SQLite database; see `Tables`."""

    _SAVED_IN: ClassVar = {
        "checkpoints": ("checkpoints", "length(checkpoint) + length(CAST(metadata AS BLOB))"),
        "writes": ("writes", "length(value)"),
    }
    _TABLES = "SELECT name FROM sqlite_master WHERE type = 'table'"
    _PLACEHOLDER = "?"
    # Edits that did not come through a guard say nothing.
    _LAST_WRITER = (
        f"SELECT {METADATA.format(OURS)} FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ''"
        f" AND ({METADATA.format('source')} <> 'update' OR {METADATA.format(OURS)} IS NOT NULL)"
        " ORDER BY checkpoint_id DESC LIMIT 1"
    )
    _BYTES_BELOW = "SELECT sum(length(CAST(value AS BLOB))) FROM store WHERE prefix > ? AND prefix < ?"
    _ITEM = "SELECT key, CAST(value AS BLOB) FROM store WHERE prefix = ?"
    _PAGE = f"{_ITEM} AND hex(key) NOT IN (SELECT value FROM json_each(?)) ORDER BY key {{order}} LIMIT ? OFFSET ?"
    _HAS_WORD = " AND CAST(value AS TEXT) LIKE ?"
    _OF_KINDS = (
        " AND CASE WHEN json_valid(CAST(value AS TEXT)) THEN"
        " hex(json_extract(CAST(value AS TEXT), '$.event')) IN (SELECT value FROM json_each(?)) ELSE 1 END"
    )
    _BY_KEY = " ORDER BY key"
    _LAST_PLACES = (
        " ORDER BY CASE WHEN json_valid(CAST(value AS TEXT)) THEN json_extract(CAST(value AS TEXT), '$.seq') END DESC"
        " LIMIT ? OFFSET ?"
    )
    _PLACES = (
        "SELECT key, json_extract(CAST(value AS TEXT), '$.seq') FROM store"
        " WHERE prefix = ?{without} AND json_valid(CAST(value AS TEXT))"
        " AND json_extract(CAST(value AS TEXT), '$.role') = ?"
    )
    _BELOW = (
        "SELECT prefix, key, CAST(value AS BLOB) FROM store WHERE prefix = ? OR (prefix > ? AND prefix < ?)"
        " ORDER BY prefix, key"
    )
    _NAMED = "SELECT 1 FROM store WHERE prefix = ? AND instr(CAST(value AS TEXT), ?) > 0 LIMIT 1"

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
        columns = self._rows("writes", "PRAGMA table_info(writes)")
        path = "task_path, " if any(column[1] == "task_path" for column in columns) else ""
        return self._rows("writes", _WRITES.format(path=path), thread_id, checkpoint_id)

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

    def _list(self, texts: Sequence[str]) -> str:
        # In hexadecimal digits: the functions of SQLite for JSON end a text at its first NUL.
        return json.dumps([text.encode().hex().upper() for text in texts])

    def _without(self, field: str, values: Iterable[str]) -> str:
        # What the first bytes tell to be of these need not be parsed; a quotation mark in somebody's words is escaped.
        names = (f'"{field}":"{value}"' for value in values)
        return "".join(f" AND instr(substr(value, 1, 128), CAST('{name}' AS BLOB)) = 0" for name in names)


@contextmanager
def opened_to_read(url: str) -> Iterator[sqlite3.Connection]:
    """Open a database file to look at it; nothing in it is changed.

    Raises:
        SettingsError: the URL is not understood.
        StorageError: there is no such file, it is none of ours, or a newer version made it.
    """
    location = locate(url)
    prepare(location, read_only=True)
    with closing(sqlite3.connect(":memory:") if location.path is None else connect_to_read(location.path)) as opened:
        refuse_newer(opened, location.path)
        yield opened


@contextmanager
def open_tables(url: str) -> Iterator[SqliteTables]:
    """Open the tables of a database; see `opened_to_read`."""
    with opened_to_read(url) as connection:
        yield SqliteTables(connection.execute)


def _saved_at(kind: bytes, blob: bytes) -> str:
    return str(loaded(kind, blob).get("ts", ""))
