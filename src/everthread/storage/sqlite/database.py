"""One connection to a SQLite file: one reader or writer at a time, and every write a transaction of its own."""

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from everthread.errors import StorageError
from everthread.storage.failures import described
from everthread.storage.locations import Location
from everthread.storage.worker import check_process, let_in

P = ParamSpec("P")
T = TypeVar("T")

BUSY_SECONDS = 30
"""How long a write waits for another process that writes."""

_RETRY_SECONDS = 0.01
"""Between two tries to turn the log on."""


class SqliteDatabase:
    """A connection that threads share.

    Args:
        location: the file, or memory.
    """

    def __init__(self, location: Location) -> None:
        self.location = location
        self._process: int | None = os.getpid()
        self.lock = threading.RLock()
        """Held by whoever uses the connection."""
        # Autocommit: where a transaction begins and ends is written here and nowhere else.
        self.connection = sqlite3.connect(
            location.target, timeout=BUSY_SECONDS, check_same_thread=False, isolation_level=None
        )
        _turn_log_on(self.connection)
        for pragma in (
            f"synchronous={location.synchronous}",
            # Some builds write zeros over every page that they free, a fifth of all that a turn writes. `erase` asks
            # for it.
            "secure_delete=FAST",
        ):
            self.connection.execute(f"PRAGMA {pragma}")
        self._opened: dict[Path, FileIO] = {}
        self.connection.execute("SELECT count(*) FROM sqlite_master")  # opens the log too
        self._files = [] if location.path is None else _open_files(location.path)

    def read(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function that only reads.

        Raises:
            StorageError: the database failed, its file is no longer there, or it is not open in this process.
        """
        check_process(self._process)
        with self.lock, self._failures():
            result = work(*args, **kwargs)
            self.check_files()
            return result

    def write(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function in one transaction: all that it writes is saved when it returns, or else nothing.

        The function uses the connection itself, and neither `read` nor `write`.
        The transaction takes the write lock first: one that reads and then writes fails at once, without waiting,
        when another process wrote in between.

        Raises:
            StorageError: the database failed, its file is no longer there, it is not open in this process, or the run
                that writes is over.
        """
        check_process(self._process)
        with self.lock, let_in(), self._failures():
            self._abandon()
            try:
                self.connection.execute("BEGIN IMMEDIATE")
                result = work(*args, **kwargs)
                self.connection.execute("COMMIT")
                # Behind the commit: what is acknowledged was in the file that has the name.
                self.check_files()
                return result
            except BaseException:
                self._abandon()
                raise

    def write_one(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do what `write` does, which has no round trips to spare here."""
        return self.write(work, *args, **kwargs)

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        """Execute one statement inside of `read` or `write`; return its rows."""
        return self.connection.execute(sql, values).fetchall()

    def check_files(self) -> None:
        """Look whether the file and its log still are those that were opened; two `stat` calls, 3 µs.

        SQLite goes on in a file that has no name any more, and what it saves there nobody will find.

        Raises:
            StorageError: one of them was deleted, moved or replaced.
        """
        for path, opened in self._files:
            try:
                is_there = _identity(path) == opened
            except OSError:
                is_there = False
            if not is_there:
                raise StorageError(
                    f"the database file {path!r} was deleted, moved or replaced while it was open, so what is done now "
                    "cannot be saved; stop every process that uses it, put the file back, and open it again"
                )

    @contextmanager
    def _failures(self) -> Iterator[None]:
        """Raise what SQLite says as one sentence."""
        try:
            yield
        except sqlite3.Error as error:
            self.check_files()
            raise described(error) from error

    def _abandon(self) -> None:
        """Roll back what an interrupt left open: Ctrl-C can come between any two steps of Python."""
        if self.connection.in_transaction:
            self.connection.rollback()

    def opened(self, path: Path) -> FileIO:
        """Open one of the database's own files to read its bytes; it stays open until the connection is closed.

        When a process closes a file it loses all its POSIX locks on it, also those of SQLite, and another process
        could remove the log that this one goes on writing to.
        """
        if path not in self._opened:
            self._opened[path] = FileIO(path)
        return self._opened[path]

    def close(self) -> None:
        """Close the connection."""
        with self.lock:
            self._process = None
            self.connection.close()
            for file in self._opened.values():
                file.close()


def _open_files(path: Path) -> list[tuple[str, tuple[int, int]]]:
    """Return the file and its log with device and inode of each."""
    # Absolute, as SQLite keeps it: the process may change its folder.
    path = path.resolve()
    files = [path, path.with_name(path.name + "-wal")]
    return [(str(file), _identity(str(file))) for file in files if file.exists()]


def _identity(path: str) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_dev, found.st_ino


def _turn_log_on(connection: sqlite3.Connection) -> None:
    """Put a file into WAL mode, trying again while other processes do the same to a new file.

    SQLite's own time-out does not hold for that: whoever is not the first is told at once that the file is locked.
    """
    end = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
        else:
            return
        time.sleep(_RETRY_SECONDS)
