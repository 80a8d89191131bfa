"""Erase rows from a SQLite file: from its tables, its full-text index, its log and its free space."""

import sqlite3
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from everthread.errors import SettingsError, StorageError, ThreadBusyError
from everthread.storage.candidates import space_name
from everthread.storage.damage import damaged_index_rows
from everthread.storage.erasing import Doomed, Eraser, Found
from everthread.storage.locks import Locks
from everthread.storage.residue import Row, in_files, in_rows
from everthread.storage.sqlite.database import SqliteDatabase
from everthread.storage.sqlite.store import SqliteSearchStore
from everthread.storage.store import as_json

_ATTEMPTS = 20
"""Times to ask other connections to leave the log, each for as long as the busy timeout."""


class SqliteEraser(Eraser):
    """Erases from a file; see `Eraser`."""

    reclaiming = "rewriting the file"
    _HAS_MARKS = "SELECT count(*) FROM sqlite_master WHERE name = 'erasures'"
    _MARKED = "SELECT 1 FROM erasures WHERE target = ?"
    _UNMARK = "DELETE FROM erasures WHERE target = ?"
    _database: SqliteDatabase

    def __init__(self, database: SqliteDatabase, store: SqliteSearchStore) -> None:
        self._database = database
        self._store = store
        self._connection = database.connection

    @property
    def place(self) -> str:
        """Path of the file."""
        return str(self._path)

    @property
    def _path(self) -> Path:
        path = self._database.location.path
        if path is None:
            raise SettingsError("a database in memory keeps nothing; there is nothing to erase")
        return path

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Use the storage's own connection, so that none of its calls comes in between, and zero what is deleted."""
        with self._database.lock:
            self._database.check_files()
            # The runs that share the connection need not write zeros.
            self._connection.execute("PRAGMA secure_delete = ON")
            try:
                yield
            finally:
                self._connection.execute("PRAGMA secure_delete = FAST")

    def delete(self, doomed: Doomed, mark: str, began: str) -> list[Any]:
        """Delete all rows in one transaction, whatever table they are in, and leave a mark until all is done."""
        spaces = self._spaces(doomed.where.prefixes)
        self._database.write(self._delete, doomed, mark, began)
        return spaces

    def rewrite(self, spaces: list[Any]) -> None:
        """Rewrite the file: rows that were changed or pruned long ago leave their bytes in it, and so does the index.

        Raises:
            StorageError: it could not be.
        """
        with _explained("rewrite the file"):
            self._store.settle()
            if self._in_index(spaces):
                # The words of a row that could not be read: nobody can say which they are.
                self._store.build_index()
            self._connection.execute("VACUUM")

    def finish(self) -> None:
        """Write the log into the file and cut it to nothing.

        Raises:
            StorageError: another connection kept reading.
        """
        with _explained("empty the write-ahead log"):
            for _ in range(_ATTEMPTS):
                if self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0:
                    return
        raise StorageError(
            "the rows are erased, but another process keeps reading the database, so its log cannot be emptied; "
            "stop that process and run the same command again"
        )

    def search(self, sought: list[bytes], spaces: list[Any]) -> Found:
        """Search all tables, the full-text index and all bytes of the file; a database in memory has none."""
        hits, rows = in_rows(self._every_row(), sought)
        unseen = [text for text in sought if text not in {hit.text for hit in hits}]
        path = self._database.location.path
        in_bytes, files = ({}, {}) if path is None else in_files(path, unseen, self._database.opened)
        left = [f"the full-text index ({words} words)"] if (words := self._in_index(spaces)) else []
        left += [f"the bytes of {name} ({len(texts)} texts)" for name, texts in in_bytes.items()]
        return Found(hits, rows, files, left)

    def size(self) -> int:
        """Return the bytes of the file and its log."""
        path = self._database.location.path
        if path is None:
            raise SettingsError("a database in memory has no space to give back")
        return sum(file.stat().st_size for file in (path, path.with_name(path.name + "-wal")) if file.exists())

    def check_idle(self, locks: Locks) -> None:
        """Refuse to rewrite the file under a run, which would have to wait for it."""
        if not locks.are_free():
            raise ThreadBusyError("the database is in use: a run holds a thread; try again when no run is going on")

    def reclaim(self) -> None:
        """Rewrite the file without its free pages."""
        if damaged_index_rows(self._connection):
            self._store.build_index(is_damaged=True)
        try:
            # A connection of its own, which waits for other processes.
            with closing(sqlite3.connect(self._path, timeout=30, isolation_level=None)) as database:
                database.execute("VACUUM")
                database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.OperationalError as error:
            raise StorageError(
                f"the file could not be rewritten ({error}), and what was pruned stays pruned: nothing else was lost; "
                f"try again with {self.size():,} bytes of free disk space, when no other process uses the database"
            ) from error

    def _delete(self, doomed: Doomed, mark: str, began: str) -> None:
        where, execute, many = doomed.where, self._connection.execute, self._connection.executemany
        execute("CREATE TABLE IF NOT EXISTS erasures (target TEXT PRIMARY KEY, began TEXT)")
        execute("INSERT OR IGNORE INTO erasures VALUES (?, ?)", (mark, began))
        for table, columns in self._columns().items():
            if {"prefix", "key"} <= set(columns):
                under = "prefix = ? OR (prefix > ? AND prefix < ?)"
                many(f'DELETE FROM "{table}" WHERE {under}', [(one, one + ".", one + "/") for one in where.prefixes])
                many(f'DELETE FROM "{table}" WHERE prefix = ? AND key = ?', where.records)
            if "thread_id" in columns:
                many(f'DELETE FROM "{table}" WHERE thread_id = ?', [(one,) for one in where.checkpointed])
        many(
            "UPDATE store SET value = ? WHERE prefix = ? AND key = ?",
            [(as_json(note.value), note.prefix, note.key) for note in where.kept_notes],
        )
        many(
            "UPDATE store SET value = ? WHERE prefix = ? AND instr(CAST(value AS TEXT), ?) > 0",
            [(value, prefix, text) for prefix, text, value in doomed.shown],
        )
        many("INSERT OR REPLACE INTO store (prefix, key, value) VALUES (?, ?, ?)", doomed.added)

    def _columns(self) -> dict[str, list[str]]:
        """Return the columns of each table with rows of its own; a virtual one shows those of its shadow tables."""
        found: dict[str, list[str]] = {}
        for table, column in self._read(
            "SELECT t.name, c.name FROM sqlite_master t JOIN pragma_table_info(t.name) c"
            " WHERE t.type = 'table' AND t.sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY t.name, c.cid"
        ):
            found.setdefault(str(table), []).append(str(column))
        return found

    def _every_row(self) -> Iterator[Row]:
        """Yield every row of every table."""
        for table, columns in self._columns().items():
            naming = ("prefix", "key") if {"prefix", "key"} <= set(columns) else ("thread_id",)
            named = [columns.index(name) for name in naming if name in columns]
            # As bytes: a text that is no UTF-8 could not even be fetched.
            blobs = ", ".join(f'CAST("{name}" AS BLOB)' for name in columns)
            for row in self._connection.execute(f'SELECT {blobs} FROM "{table}"'):
                yield table, tuple(_text(row[place]) for place in named), b"\x00".join(value or b"" for value in row)

    def _spaces(self, prefixes: Collection[str]) -> list[int]:
        """Return the numbers that the full-text index has for the namespaces that go."""
        if not self._read("SELECT 1 FROM sqlite_master WHERE name = 'lexical_spaces'"):
            return []
        query = "SELECT ns FROM lexical_spaces WHERE prefix = ? OR (prefix > ? AND prefix < ?)"
        ranges = [(prefix, prefix + ".", prefix + "/") for prefix in prefixes]
        return [int(row[0]) for one in ranges for row in self._read(query, *one)]

    def _in_index(self, spaces: Collection[int]) -> int:
        """Count the words that the full-text index holds of namespaces, given by their numbers in it."""
        if not spaces:
            return 0
        ends = tuple("_" + space_name(space) for space in spaces)
        # The terms of an index lie in its pages shortened by what they share, where no search of bytes finds them.
        self._connection.execute("CREATE VIRTUAL TABLE temp.lexical_terms USING fts5vocab(main, lexical_index, row)")
        try:
            return sum(str(term).endswith(ends) for (term,) in self._read("SELECT term FROM lexical_terms"))
        finally:
            self._connection.execute("DROP TABLE temp.lexical_terms")


@contextmanager
def _explained(step: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        raise StorageError(
            f"the rows are erased, but Everthread could not {step} ({error}), so their bytes may still be in it; "
            "run the same command again when no other process uses the database and as much disk space is free"
        ) from error


def _text(value: bytes | None) -> str:
    return "None" if value is None else value.decode("utf-8", "replace")
