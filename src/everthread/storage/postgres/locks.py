"""The thread lock on Postgres: session advisory locks, all on one connection that does nothing else.

A session's locks are free the moment it ends, so a lock dies with its holder here too. One thread owns the connection
and does one thing after the other: whatever a run is cut off at, its release comes behind its `take`. When the
connection is lost, so are the locks; every write of a run asks for that before and after it.

Session locks need a direct connection: behind PgBouncer, `direct_url`.
"""

import asyncio
import os
import select
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, TypeVar

import psycopg
from psycopg import Connection

from everthread.errors import StorageError
from everthread.storage.locks import Hold, Locks, described, digest
from everthread.storage.postgres.database import connect
from everthread.storage.postgres.failures import described as failure
from everthread.storage.postgres.location import PostgresLocation

T = TypeVar("T")

_RELEASE_SECONDS = 2.0
"""How long a run waits until its lock is given back; on a connection that hangs it goes on without."""


_HELD = (
    "SELECT (classid::bigint << 32) | objid::bigint, pid FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1"
    " AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    " AND ((classid::bigint << 32) | objid::bigint) = ANY(%s)"
)


class SessionLocks(Locks):
    """Locks of a Postgres database.

    Args:
        timeout_seconds: how long a run waits for another one on the same thread; 0 never waits.
    """

    def __init__(self, location: PostgresLocation, *, timeout_seconds: float = 600.0) -> None:
        super().__init__(timeout_seconds)
        self._location = location
        self._keeper = ThreadPoolExecutor(1, thread_name_prefix="everthread-locks")
        # What follows is changed on the keeper's thread only.
        self._session: Connection[Any] | None = None
        self._schema = ""
        self._holders: dict[str, _SessionLock] = {}

    def holders(self, keys: Iterable[str]) -> dict[str, str]:
        """Name who holds which of some threads' locks now."""
        return self.submit(self._held, list(keys)).result()

    def _hold(self, key: str, timeout_seconds: float) -> Hold:
        return _SessionHold(_SessionLock(self, key), key, timeout_seconds)

    def _held(self, keys: Sequence[str]) -> dict[str, str]:
        try:
            session = self._connected()
            numbers = {lock_number(self._schema, key): key for key in keys}
            rows = session.execute(_HELD, ([*numbers],)).fetchall()
        except psycopg.Error as error:
            self._disconnect()
            raise failure(error) from error
        own = session.info.backend_pid
        return {numbers[number]: "a run of this process" if pid == own else f"process {pid}" for number, pid in rows}

    def are_free(self) -> bool:
        """Tell whether no run of this process holds a lock."""
        return not self._holders

    def close(self) -> None:
        """Give all locks back; a forked child leaves them alone."""
        if self._process != os.getpid():
            return
        self._process = None
        self._keeper.submit(self._disconnect)
        self._keeper.shutdown()

    def check(self) -> None:
        """Look whether the locks around the code that runs are still held; a few microseconds.

        Raises:
            StorageError: one of them was lost with its connection, so another run may be on that thread by now.
        """
        for hold in _holds.get():
            if hold.is_lost(self):
                raise StorageError(
                    f"the lock of {described(hold.key)} was lost with the connection that held it, so nothing more of "
                    "this run is saved; what was acknowledged is intact, run the thread again"
                )

    def submit(self, work: Callable[..., T], *args: Any) -> Future[T]:
        """Do something on the thread that owns the connection, after all that was asked for before."""
        return self._keeper.submit(work, *args)

    def take(self, lock: "_SessionLock") -> bool:
        """Take a lock, on the keeper's thread; False while somebody else holds it."""
        here = self._holders.get(lock.key)
        # A session may take its own lock again, so runs of one process are told apart here.
        if here is not None and here.is_held:
            return here is lock
        try:
            session = self._connected()
            row = session.execute("SELECT pg_try_advisory_lock(%s)", (lock_number(self._schema, lock.key),)).fetchone()
        except psycopg.Error as error:
            self._disconnect()
            raise failure(error) from error
        if row is None or not row[0]:
            return False
        self._holders[lock.key], lock.session = lock, session
        return True

    def give_back(self, lock: "_SessionLock") -> None:
        """Give a lock back, on the keeper's thread."""
        session, lock.session = lock.session, None
        if self._holders.get(lock.key) is not lock:
            return
        del self._holders[lock.key]
        if session is None or session is not self._session:
            return
        try:
            session.execute("SELECT pg_advisory_unlock(%s)", (lock_number(self._schema, lock.key),))
        except psycopg.Error:
            self._disconnect()

    def is_session(self, session: Connection[Any] | None) -> bool:
        """Tell whether a connection is the one that holds the locks now."""
        return session is not None and session is self._session

    def is_alive(self, session: Connection[Any]) -> bool:
        """Tell whether the server still has a session; one that has nothing to say is there."""
        if not self.is_session(session) or session.closed:
            return False
        poll = select.poll()
        with suppress(psycopg.Error, OSError, ValueError):
            poll.register(session.fileno(), select.POLLIN)
            return not poll.poll(0) or self.submit(self._answers, session).result()
        return False

    def _answers(self, session: Connection[Any]) -> bool:
        try:
            if session is self._session:
                session.execute("SELECT 1")
        except psycopg.Error:
            self._disconnect()
        return session is self._session

    def _connected(self) -> Connection[Any]:
        if self._session is None or self._session.closed:
            self._holders.clear()
            session = connect(self._location, direct=True)
            row = session.execute("SELECT current_schema(), set_config('idle_session_timeout', '0', false)").fetchone()
            self._session, self._schema = session, str(row[0]) if row else ""
        return self._session

    def _disconnect(self) -> None:
        if self._session is not None:
            self._session.close()
        self._session = None
        self._holders.clear()


class _SessionLock:
    """A lock of a session; `release` is safe at any moment, also when `take` was interrupted, and again."""

    def __init__(self, locks: SessionLocks, key: str) -> None:
        self._locks = locks
        self._process = os.getpid()
        self._is_asked = False
        self.key = key
        self.session: Connection[Any] | None = None
        """The session that has it; set on the keeper's thread."""

    def __del__(self) -> None:
        # Not waited for: this may be the keeper's own thread.
        self._give_back()

    @property
    def is_held(self) -> bool:
        """Whether this one holds it."""
        return self._locks.is_session(self.session)

    def is_lost(self, locks: SessionLocks) -> bool:
        """Tell whether it is a lock of a database that was taken, not given back, and its session is gone."""
        session = self.session
        return session is not None and self._locks is locks and not locks.is_alive(session)

    def take(self) -> bool:
        """Take the lock; False while somebody else holds it."""
        return self._submit().result()

    async def atake(self) -> bool:
        """Do what `take` does without blocking the event loop."""
        return await asyncio.wrap_future(self._submit())

    def release(self) -> None:
        """Give the lock back; a forked child leaves it alone."""
        given = self._give_back()
        if given is not None:
            with suppress(TimeoutError):
                given.result(_RELEASE_SECONDS)

    def holder(self) -> str:
        """Name who holds the lock."""
        return "another run"

    def _submit(self) -> Future[bool]:
        self._is_asked = True
        return self._locks.submit(self._locks.take, self)

    def _give_back(self) -> Future[None] | None:
        if not self._is_asked or self._process != os.getpid():
            return None
        given = None
        # The storage was closed, and with it the session.
        with suppress(RuntimeError):
            given = self._locks.submit(self._locks.give_back, self)
        # Behind it: what Ctrl-C cuts off in between is asked for again by the next release.
        self._is_asked = False
        return given


_holds: ContextVar[tuple["_SessionHold", ...]] = ContextVar("everthread_session_holds", default=())
"""Those around the code that runs; one that was given back may still be here, left behind in another context."""


class _SessionHold(Hold):
    """A `Hold` whose loss is found by the writes inside of its block."""

    _lock: _SessionLock

    def __enter__(self) -> None:
        super().__enter__()
        self._note()

    async def __aenter__(self) -> None:
        await super().__aenter__()
        self._note()

    def is_lost(self, locks: SessionLocks) -> bool:
        return self._lock.is_lost(locks)

    def _note(self) -> None:
        _holds.set((*(one for one in _holds.get() if one.is_held and one is not self), self))


def lock_number(schema: str, key: str) -> int:
    """Return the number of an advisory lock; Postgres has one set of them for all schemas of a database."""
    return int.from_bytes(digest(f"everthread\x00{schema}\x00{key}")[:8], signed=True)
