"""The format of a database: a number in a table of ours, older ones brought up to date when opened."""

import sqlite3
from pathlib import Path

from everthread.errors import StorageError
from everthread.memory.text.words import VERSION as WORDS_VERSION

FORMAT = 1
"""Of the databases that this version writes; those from before formats were counted have none."""

INDEX_VERSION = WORDS_VERSION + 1
"""Of the full-text index; one of an older version is built again when its file is opened."""


def refuse_newer(connection: sqlite3.Connection, path: Path | None) -> None:
    """Look at the format before anything is changed.

    Raises:
        StorageError: a newer version of this library made the database.
    """
    found = _format(connection)
    if found is not None and found > FORMAT:
        raise StorageError(
            f"{str(path)!r} was made by a newer everthread (its format is {found}, this one knows {FORMAT}); "
            "it was left as it is, upgrade everthread"
        )


def upgrade(connection: sqlite3.Connection) -> None:
    """Bring a database with all its tables up to date, in a transaction; what other apps wrote stays as it is."""
    if _format(connection) == FORMAT:
        return
    columns = [str(column[1]) for column in connection.execute("PRAGMA table_info(thread_locks)")]
    if columns == ["thread_id", "holder", "expires"]:
        # Leases of runs, from before a lock was one of the operating system.
        # Taken when called: a format is read without LangGraph too.
        from everthread.storage.sqlite.checkpointer import mark_as_ours

        connection.execute("DROP TABLE thread_locks")
        mark_as_ours(connection)
    connection.execute("CREATE TABLE IF NOT EXISTS everthread (key TEXT PRIMARY KEY, value)")
    connection.execute("INSERT OR REPLACE INTO everthread VALUES ('format', ?)", (FORMAT,))


def _format(connection: sqlite3.Connection) -> int | None:
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'everthread'").fetchone():
        return None
    row = connection.execute("SELECT value FROM everthread WHERE key = 'format'").fetchone()
    return None if row is None else int(row[0])
