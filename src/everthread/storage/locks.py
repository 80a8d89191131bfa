"""The thread lock: one run at a time on a thread, across threads and processes.

Two processes on one `thread_id` otherwise keep about half of the messages without any exception. A
lock is a lease: its holder renews it while it runs, and a holder that died frees it by expiry.
"""

import asyncio
import logging
import os
import sqlite3
import threading
import time
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from pathlib import Path

from everthread.errors import ThreadBusyError
from everthread.storage.locations import Location

logger = logging.getLogger(__name__)

LEASE_SECONDS = 15.0
"""How long a lease outlives its last renewal."""

_FIRST_WAIT_SECONDS = 0.005
_LONGEST_WAIT_SECONDS = 0.1


class ThreadLocks:
    """Leases on threads, kept in the database they protect.

    Args:
        location: the database; one in memory keeps its leases in the process.
        timeout_seconds: how long a run waits for another one on the same thread; 0 never waits.
    """

    def __init__(self, location: Location, *, timeout_seconds: float = 600.0) -> None:
        self.timeout_seconds = timeout_seconds
        self._held: dict[str, str] = {}
        self._guard = threading.Lock()
        self._stop = threading.Event()
        self._renewer: threading.Thread | None = None
        self._database = sqlite3.connect(location.target, timeout=30, isolation_level=None, check_same_thread=False)
        self._database.execute("PRAGMA journal_mode=WAL")
        self._database.execute("PRAGMA synchronous=NORMAL")
        self._database.execute(
            "CREATE TABLE IF NOT EXISTS thread_locks (thread_id TEXT PRIMARY KEY, holder TEXT, expires REAL)"
        )

    def close(self) -> None:
        """Stop renewing and close the connection; leases that are still held expire."""
        self._stop.set()
        if self._renewer is not None:
            self._renewer.join()
        self._database.close()

    @contextmanager
    def hold(self, thread_id: str) -> Iterator[None]:
        """Hold a thread's lock for the length of a block.

        Raises:
            ThreadBusyError: another run kept it for longer than the timeout.
        """
        holder = _new_holder()
        for pause in self._attempts(thread_id, holder):
            time.sleep(pause)
        try:
            yield
        finally:
            self._release(thread_id, holder)

    @asynccontextmanager
    async def ahold(self, thread_id: str) -> AsyncIterator[None]:
        """Hold a thread's lock for the length of an async block; see `hold`.

        The lease is taken and given back in a worker thread: another connection of the same loop may
        hold the database's write lock, and its commit needs the loop.
        """
        holder = _new_holder()
        attempts = self._attempts(thread_id, holder)
        # Another process may hold it: there is no event to wait for.
        while (pause := await asyncio.to_thread(next, attempts, None)) is not None:  # noqa: ASYNC110
            await asyncio.sleep(pause)
        try:
            yield
        finally:
            await asyncio.shield(asyncio.to_thread(self._release, thread_id, holder))

    def _attempts(self, thread_id: str, holder: str) -> Iterator[float]:
        """Yield the pauses to make until the lease is ours."""
        deadline = time.monotonic() + self.timeout_seconds
        pause = _FIRST_WAIT_SECONDS
        while not self._acquire(thread_id, holder):
            if time.monotonic() >= deadline:
                raise ThreadBusyError(
                    f"thread {thread_id!r} is busy: another run held its lock for {self.timeout_seconds:g} s; "
                    "wait for that run or raise `lock_timeout_seconds`"
                )
            yield pause
            pause = min(pause * 1.5, _LONGEST_WAIT_SECONDS)

    def _acquire(self, thread_id: str, holder: str) -> bool:
        now = time.time()
        with self._guard:
            # One statement is one transaction: no other process can come between check and write.
            cursor = self._database.execute(
                "INSERT INTO thread_locks VALUES (?, ?, ?) ON CONFLICT (thread_id) DO UPDATE"
                " SET holder = excluded.holder, expires = excluded.expires WHERE thread_locks.expires < ?",
                (thread_id, holder, now + LEASE_SECONDS, now),
            )
            if cursor.rowcount == 0 and not self._inherit(thread_id, holder, now):
                return False
            self._held[thread_id] = holder
            if self._renewer is None:
                self._renewer = threading.Thread(target=self._renew, name="everthread-locks", daemon=True)
                self._renewer.start()
            return True

    def _inherit(self, thread_id: str, holder: str, now: float) -> bool:
        """Take the lease of a process of this machine that is gone, instead of waiting for its expiry."""
        row = self._database.execute("SELECT holder FROM thread_locks WHERE thread_id = ?", (thread_id,)).fetchone()
        if row is None or not _is_gone(str(row[0])):
            return False
        cursor = self._database.execute(
            "UPDATE thread_locks SET holder = ?, expires = ? WHERE thread_id = ? AND holder = ?",
            (holder, now + LEASE_SECONDS, thread_id, row[0]),
        )
        return cursor.rowcount == 1

    def _release(self, thread_id: str, holder: str) -> None:
        with self._guard:
            if self._held.get(thread_id) == holder:
                del self._held[thread_id]
            self._database.execute("DELETE FROM thread_locks WHERE thread_id = ? AND holder = ?", (thread_id, holder))

    def _renew(self) -> None:
        while not self._stop.wait(LEASE_SECONDS / 3):
            try:
                with self._guard:
                    expires = time.time() + LEASE_SECONDS
                    self._database.executemany(
                        "UPDATE thread_locks SET expires = ? WHERE thread_id = ? AND holder = ?",
                        [(expires, thread_id, holder) for thread_id, holder in self._held.items()],
                    )
            except sqlite3.Error as error:
                # A busy database must not end the renewing: the next round tries again.
                logger.warning("could not renew %d thread locks: %s", len(self._held), error)


def _new_holder() -> str:
    return f"{_place()}:{os.getpid()}:{uuid.uuid4().hex}"


@cache
def _place() -> str:
    """Name what a process id is valid in: this boot of this machine, and this namespace of processes.

    Containers may share a host name and a database and still not see each other's processes.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}/{os.readlink('/proc/self/ns/pid').translate(_NO_COLON)}"
    except OSError:
        return ""


_NO_COLON = str.maketrans(":", "-")


def _is_gone(holder: str) -> bool:
    """Tell whether the holder was a process of this place that no longer runs."""
    place, _, process = holder.rpartition(":")[0].rpartition(":")
    if not place or place != _place() or not process.isdigit():
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False
