"""The rows of a Postgres database as they are stored; see `Tables`."""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, ClassVar

import psycopg

from everthread.errors import StorageError
from everthread.storage.kept_checkpoints import OURS
from everthread.storage.postgres.database import connect
from everthread.storage.postgres.failures import described
from everthread.storage.postgres.location import locate_postgres
from everthread.storage.postgres.texts import read_json, text_in, text_out
from everthread.storage.stored_values import loaded, messages_in, written_value
from everthread.storage.tables import UNANSWERED, StoredCheckpoint, Tables
from everthread.storage.unreadable import FAULTS

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
    "SELECT channel, type, blob FROM checkpoint_writes w WHERE thread_id = %s AND checkpoint_ns = ''"
    f" AND checkpoint_id = %s AND {UNANSWERED.format('checkpoint_writes')} ORDER BY task_path, task_id, idx"
)
_INLINE = (
    "SELECT v.key, v.value::text FROM checkpoints c CROSS JOIN LATERAL jsonb_each(c.checkpoint -> 'channel_values') v"
    " WHERE c.thread_id = %s ORDER BY c.checkpoint_id"
)
_STORED = "SELECT channel, type, blob FROM checkpoint_blobs WHERE thread_id = %s ORDER BY version"
_WRITTEN = "SELECT channel, type, blob FROM checkpoint_writes WHERE thread_id = %s"
_SAID = "channel IN ('messages', '__start__')"


class PostgresTables(Tables):
    """The rows of a Postgres database; see `Tables`."""

    _SAVED_IN: ClassVar = {
        "checkpoints": ("checkpoints", "octet_length(checkpoint::text) + octet_length(metadata::text)"),
        "values": ("checkpoint_blobs", "octet_length(blob)"),
        "writes": ("checkpoint_writes", "octet_length(blob)"),
    }
    _TABLES = (
        "SELECT name FROM unnest(ARRAY['checkpoints', 'checkpoint_blobs', 'checkpoint_writes', 'store']) AS n (name)"
        " WHERE to_regclass(name) IS NOT NULL"
    )
    _PLACEHOLDER = "%s"
    # Edits that did not come through a guard say nothing.
    _LAST_WRITER = (
        f"SELECT metadata -> '{OURS}' FROM checkpoints WHERE thread_id = %s AND checkpoint_ns = ''"
        f" AND (metadata ->> 'source' <> 'update' OR metadata -> '{OURS}' IS NOT NULL)"
        " ORDER BY checkpoint_id DESC LIMIT 1"
    )
    _BYTES_BELOW = "SELECT sum(octet_length(value::text)) FROM store WHERE prefix ~>~ %s AND prefix ~<~ %s"
    _ITEM = "SELECT key, value::text FROM store WHERE prefix = %s"
    _PAGE = f'{_ITEM} AND key <> ALL(%s) ORDER BY key COLLATE "C" {{order}} LIMIT %s OFFSET %s'
    _HAS_WORD = " AND value::text ILIKE %s"
    _OF_KINDS = " AND value ->> 'event' = ANY(%s)"
    _BY_KEY = ' ORDER BY key COLLATE "C"'
    _LAST_PLACES = (
        " ORDER BY CASE jsonb_typeof(value -> 'seq') WHEN 'number' THEN (value ->> 'seq')::numeric END DESC NULLS LAST"
        " LIMIT %s OFFSET %s"
    )
    _PLACES = "SELECT key, value -> 'seq' FROM store WHERE prefix = %s AND value ->> 'role' = %s"
    _BELOW = (
        "SELECT prefix, key, value::text FROM store WHERE prefix = %s OR (prefix ~>~ %s AND prefix ~<~ %s)"
        ' ORDER BY prefix COLLATE "C", key COLLATE "C"'
    )
    _NAMED = "SELECT 1 FROM store WHERE prefix = %s AND position(%s IN value::text) > 0 LIMIT 1"

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
                        raise TypeError("it holds something other than a checkpoint")
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
        for prefix, key, value, *times in self._rows(
            "store", "SELECT prefix, key, value::text, created_at, updated_at FROM store"
        ):
            yield prefix.encode(), key.encode(), self._value(value), [time.isoformat() for time in times]

    def _values(self, thread_id: str, saved: Any) -> dict[str, Any]:
        """Return the channels of a checkpoint; one of the `FAULTS` is raised when it is none."""
        if not isinstance(saved, dict) or not isinstance(saved.get("channel_values"), dict | None):
            raise TypeError("it holds something other than a checkpoint")
        values = dict(saved.get("channel_values") or {})
        for channel, kind, blob in self._saved(_BLOBS, json.dumps(saved.get("channel_versions") or {}), thread_id):
            if kind != "empty":
                values[channel] = loaded(kind.encode(), blob or b"")
        messages_in(values.get("messages"))
        return values

    def _list(self, texts: Sequence[str]) -> list[str]:
        return [text_in(text) for text in texts]

    def _text(self, text: str) -> str:
        return text_in(text)

    def _read_text(self, text: str) -> str:
        return text_out(text)

    def _value(self, value: str) -> bytes:
        return value.encode() if "\ufdd0" not in value else json.dumps(read_json(value)).encode()

    def _saved(self, sql: str, *values: Any) -> list[Any]:
        return self._rows("checkpoints", sql, *values)


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


def _saved_at(saved: Any) -> str:
    return str(saved.get("ts", "")) if isinstance(saved, dict) else ""
