"""One connection to a SQLite file: one reader or writer at a time, and every write a transaction of its own."""

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

from everthread.storage.failures import described
from everthread.storage.locations import Location
from everthread.storage.worker import let_in

__all__ = ["Database"]

P = ParamSpec("P")
T = TypeVar("T")

BUSY_SECONDS = 30
"""How long a write waits for another process that writes."""


class Database:
    """A connection that threads share.

    Args:
        location: the file, or memory.
    """

    def __init__(self, location: Location) -> None:
        self.location = location
        self.lock = threading.RLock()
        """Held by whoever uses the connection."""
        # Autocommit: where a transaction begins and ends is written here and nowhere else.
        self.connection = sqlite3.connect(
            location.target, timeout=BUSY_SECONDS, check_same_thread=False, isolation_level=None
        )
        for pragma in (
            "journal_mode=WAL",
            f"synchronous={location.synchronous}",
            # Some builds write zeros over every page that they free, a fifth of all that a turn writes. `erase` asks
            # for it.
            "secure_delete=FAST",
        ):
            self.connection.execute(f"PRAGMA {pragma}")

    def read(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function that only reads.

        Raises:
            StorageError: the database failed.
        """
        with self.lock, _failures():
            return work(*args, **kwargs)

    def write(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function in one transaction: all that it writes is saved when it returns, or else nothing.

        The function uses the connection itself, and neither `read` nor `write`.
        The transaction takes the write lock first: one that reads and then writes fails at once, without waiting,
        when another process wrote in between.

        Raises:
            StorageError: the database failed, or the run that writes is over.
        """
        with self.lock, let_in(), _failures():
            self._abandon()
            try:
                self.connection.execute("BEGIN IMMEDIATE")
                result = work(*args, **kwargs)
                self.connection.execute("COMMIT")
                return result
            except BaseException:
                self._abandon()
                raise

    def _abandon(self) -> None:
        """Roll back what an interrupt left open: Ctrl-C can come between any two steps of Python."""
        if self.connection.in_transaction:
            self.connection.rollback()

    def close(self) -> None:
        """Close the connection."""
        with self.lock:
            self.connection.close()


@contextmanager
def _failures() -> Iterator[None]:
    """Raise what SQLite says as one sentence."""
    try:
        yield
    except sqlite3.Error as error:
        raise described(error) from error
