"""Find every row that cannot be read, as `everthread doctor` does; LangChain is not imported."""

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from everthread.state import Note, Summary, namespaces
from everthread.state.records import StoredItem
from everthread.state.stored import StoredMessage
from everthread.storage.reader import Record
from everthread.storage.stored_values import json_object
from everthread.storage.tables import Tables
from everthread.storage.unreadable import FAULTS, record_name


def session_record(item: StoredItem) -> dict[str, Any]:
    """Return a session's record with its thread, once the fields that commands read are found to be there.

    Raises:
        ValueError, TypeError, LookupError: one of them is missing or something else.
    """
    record = {"turns": 0, "consolidated_turns": 0, **item.value, "thread_id": item.key}
    for name in ("turns", "consolidated_turns"):
        int(record[name])
    then = datetime.fromisoformat(record["last_activity"])
    if then.tzinfo is None:
        # A transcript of earlier versions kept the time that it was given; all others are in UTC.
        record["last_activity"] = then.replace(tzinfo=UTC).isoformat()
    if not isinstance(record["user_id"], str | None):
        raise TypeError("`user_id` is no text")
    return record


def receipt(item: StoredItem) -> dict[str, Any]:
    """Return a receipt of retention, once the fields that commands read are found to be there; see `session_record`."""
    value = item.value
    datetime.fromisoformat(value["at"])
    missing = {"thread_id", "user_id", "whole", "erased", "bytes"} - value.keys()
    if missing:
        raise LookupError(f"it has no `{min(missing)}`")
    return value


def _check_counters(item: StoredItem) -> None:
    """Raise one of the `FAULTS` for counters of what was spent that cannot be added up."""
    for purposes in item.value["models"].values():
        for sums in purposes.values():
            sum(sums.values())
    for call in item.value["open"].values():
        float(call["most"])


_READERS: Mapping[str, Callable[[StoredItem], object]] = {
    "notes": lambda item: Note.model_validate(item.value),
    "transcript": lambda item: StoredMessage.of(item.value["message"]),
    "summaries": lambda item: Summary.model_validate(item.value),
    "sessions": session_record,
    "receipts": receipt,
    "spend": _check_counters,
}
"""By the last label of our namespaces; an application's own records need only be JSON objects."""


def unreadable(tables: Tables) -> Iterator[str]:
    """Yield the names of the checkpoints, writes and records that cannot be read; every row is decoded."""
    yield from tables.unreadable()
    for prefix, key, value, times in tables.unreadable_items():
        name = record_name(prefix.decode("utf-8", "replace"), key.decode("utf-8", "replace"))
        try:
            record = Record(tuple(prefix.decode().split(".")), key.decode(), json_object(value))
            for time in times:
                datetime.fromisoformat(time if isinstance(time, str) else time.decode())
            is_ours = record.namespace[0] in ("users", "threads", *namespaces.SESSIONS)
            if is_ours and (read := _READERS.get(record.namespace[-1])):
                read(record)
        except FAULTS:
            yield name


_INDEX_ROWS = (
    "SELECT count(*) FROM lexical_docs WHERE typeof(words) <> 'integer' OR ns NOT IN (SELECT ns FROM lexical_spaces)",
    "SELECT count(*) FROM lexical_spaces WHERE typeof(docs) <> 'integer' OR typeof(words) <> 'integer'",
    "SELECT count(*) FROM lexical_paths WHERE NOT json_valid(paths)",
    "SELECT 2 - count(*) FROM lexical_meta WHERE name IN ('doc', 'ns') AND typeof(value) = 'integer'",
)


def damaged_index_rows(database: sqlite3.Connection) -> int:
    """Count the rows of the full-text index that are not as it wrote them; its words count as one."""
    if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'lexical_index'").fetchone():
        return 0
    damaged = 0
    for query in _INDEX_ROWS:
        try:
            damaged += database.execute(query).fetchone()[0]
        except sqlite3.DatabaseError:
            damaged += 1  # the table is gone
    # A table that lists all words, in the temporary schema: nothing of the file is changed.
    (only_reads,) = database.execute("PRAGMA query_only").fetchone()
    database.execute("PRAGMA query_only=OFF")
    try:
        database.execute("CREATE VIRTUAL TABLE temp.lexical_words USING fts5vocab(main, lexical_index, row)")
        database.execute("SELECT count(*) FROM temp.lexical_words").fetchone()
    except sqlite3.DatabaseError:
        damaged += 1
    with suppress(sqlite3.DatabaseError):
        database.execute("DROP TABLE IF EXISTS temp.lexical_words")
    database.execute(f"PRAGMA query_only={only_reads}")
    return damaged
