"""Open a SQLite file, or a database in memory."""

import sqlite3
from collections.abc import Sequence
from dataclasses import replace

from everthread.errors import StorageError
from everthread.storage.checkpointer import Checkpointer
from everthread.storage.locations import Synchronous, level, locate, prepare
from everthread.storage.locks import ThreadLocks
from everthread.storage.sqlite.checkpointer import SqliteCheckpointRows
from everthread.storage.sqlite.database import SqliteDatabase
from everthread.storage.sqlite.erasing import SqliteEraser
from everthread.storage.sqlite.formats import refuse_newer, upgrade
from everthread.storage.sqlite.store import SqliteSearchStore
from everthread.storage.sqlite.tables import SqliteTables
from everthread.storage.storage import Storage
from everthread.storage.worker import Worker


def open_sqlite(
    url: str,
    *,
    create: bool,
    lock_timeout_seconds: float,
    synchronous: Synchronous | None,
    allowed_types: Sequence[type],
) -> Storage:
    """Open a database; see `open_storage`."""
    location = locate(url)
    if synchronous is not None:
        location = replace(location, synchronous=level(synchronous))
    prepare(location, create=create)
    locks = ThreadLocks(location.path, timeout_seconds=lock_timeout_seconds)
    try:
        database = SqliteDatabase(location)
    except sqlite3.Error as error:
        raise _cannot_open(location.url, error) from error
    worker = Worker()
    try:
        refuse_newer(database.connection, location.path)
        rows = SqliteCheckpointRows(database)
        store = SqliteSearchStore(database, worker, locks)
        checkpointer = Checkpointer(database, rows, worker, store, allowed_types)
        database.write(upgrade, database.connection)
    except BaseException as error:
        worker.close()
        database.close()
        if isinstance(error, sqlite3.Error):
            raise _cannot_open(location.url, error) from error
        raise
    tables = SqliteTables(lambda sql, values: database.read(database.rows, sql, values))
    eraser = SqliteEraser(database, store)
    return Storage(location.url, database, checkpointer, store, locks, worker, tables, eraser)


def _cannot_open(url: str, error: sqlite3.Error) -> StorageError:
    return StorageError(f"cannot open the database {url!r}: {error}; it was left as it is")
