"""A pool of connections to Postgres: every read and write on a connection of its own, every write a transaction."""

import os
import select
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, ParamSpec, TypeVar

import psycopg
from psycopg import Connection
from psycopg.rows import TupleRow
from psycopg_pool import ConnectionPool, PoolTimeout

from everthread.errors import StorageError
from everthread.storage.postgres.failures import described
from everthread.storage.postgres.location import PostgresLocation
from everthread.storage.worker import check_process, let_in

P = ParamSpec("P")
T = TypeVar("T")

_WAIT_SECONDS = 30.0
"""How long a call waits for a connection of the pool."""


class _CutError(StorageError):
    """The server ended the connection."""


class PostgresDatabase:
    """The connections of one process to a database.

    Args:
        location: where it is; a connection to it worked a moment ago.
        check: called before and after each write; raises what keeps it from being acknowledged.
    """

    def __init__(self, location: PostgresLocation, check: Callable[[], None]) -> None:
        self.location = location
        self.check = check
        self._process: int | None = os.getpid()
        self._local = threading.local()
        self._pool: ConnectionPool[Connection[TupleRow]] = ConnectionPool(
            location.conninfo(),
            kwargs={"autocommit": True, **({"prepare_threshold": None} if location.pgbouncer else {})},
            min_size=1,
            max_size=location.pool_size,
            timeout=_WAIT_SECONDS,
            check=check_quiet,
            name="everthread",
            open=True,
        )

    @property
    def connection(self) -> Connection[TupleRow]:
        """The connection of the read or write that is under way in this thread."""
        connection: Connection[TupleRow] = self._local.connection
        return connection

    def read(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function that only reads; see `Database`. On a connection that turns out to be cut, once more."""
        check_process(self._process)
        try:
            return self._read(work, *args, **kwargs)
        except _CutError:
            return self._read(work, *args, **kwargs)

    def _read(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        with self._connected() as connection:
            if not self.location.pgbouncer:
                return work(*args, **kwargs)
            with connection.transaction():
                self._set()
                return work(*args, **kwargs)

    def write(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function in one transaction; see `Database`."""
        return self._write(True, lambda: work(*args, **kwargs))

    def write_one(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function without a transaction around it; see `Database`."""
        return self._write(False, lambda: work(*args, **kwargs))

    def _write(self, is_whole: bool, work: Callable[[], T]) -> T:
        check_process(self._process)
        with let_in(), self._connected() as connection:
            self.check()
            with connection.transaction() if is_whole or self.location.pgbouncer else nullcontext():
                if self.location.pgbouncer:
                    self._set()
                result = work()
            # Behind the commit too: what is acknowledged was saved under the lock.
            self.check()
            return result

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        """Execute one statement inside of `read` or `write`; return its rows."""
        cursor = self.connection.execute(sql.encode(), values)
        return cursor.fetchall() if cursor.description else []

    def outside(self, *statements: str) -> None:
        """Execute statements that no transaction may hold, such as `VACUUM`, past a pooler and without a time limit."""
        check_process(self._process)
        with _failures(), connect(self.location, direct=True) as connection:
            connection.execute("SET statement_timeout = 0")
            for statement in statements:
                connection.execute(statement.encode())

    def close(self) -> None:
        """Close all connections."""
        self._process = None
        self._pool.close()

    @contextmanager
    def _connected(self) -> Iterator[Connection[TupleRow]]:
        """Take a connection of the pool for this thread, once; what fails on it is raised as one sentence."""
        if (current := getattr(self._local, "connection", None)) is not None:
            yield current
            return
        with _failures(), self._pool.connection() as connection:
            self._local.connection = connection
            try:
                yield connection
            except psycopg.Error as error:
                if connection.closed:
                    raise _CutError(str(described(error))) from error
                raise
            finally:
                self._local.connection = None

    def _set(self) -> None:
        """Set for this transaction what a session of our own has from its beginning."""
        for name, value in self.location.settings().items():
            self.rows("SELECT set_config(%s, %s, true)", (name, value))


def connect(location: PostgresLocation, *, direct: bool = False) -> Connection[TupleRow]:
    """Open one connection, in autocommit.

    Raises:
        StorageError: the server does not answer, or refuses.
    """
    try:
        return psycopg.connect(location.conninfo(direct=direct), autocommit=True, prepare_threshold=None)
    except psycopg.Error as error:
        # The driver's text names hosts and users, one line for each address tried, and no password.
        reason = " ".join(str(error).splitlines()[0].split()) if str(error) else type(error).__name__
        raise StorageError(f"cannot open the database {location.url!r}: {reason}") from None


def check_quiet(connection: Connection[Any]) -> None:
    """Raise an `OperationalError` for a connection that the server has closed.

    An idle one has nothing to read, which costs a microsecond to find out; otherwise the server is asked.
    """
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    if poll.poll(0):
        connection.execute("SELECT 1")


@contextmanager
def _failures() -> Iterator[None]:
    """Raise what Postgres says as one sentence."""
    try:
        yield
    except (psycopg.Error, PoolTimeout) as error:
        raise described(error) from error
