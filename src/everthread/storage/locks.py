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
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from everthread.errors import ThreadBusyError
from everthread.storage.failures import first_of, told
from everthread.storage.locations import Location

logger = logging.getLogger(__name__)

LEASE_SECONDS = 15.0
"""How long a lease outlives its last renewal."""

LOST = "the lease of the thread is lost"
"""What the database answers to a write of a run that no longer holds its thread; see `fence`."""

_FIRST_WAIT_SECONDS = 0.005
_LONGEST_WAIT_SECONDS = 0.1


@dataclass(frozen=True)
class _Lease:
    """A lease of ours as we last saw it."""

    holder: str
    expires: float
    """Wall clock; until then nobody else can take it."""


class ThreadLocks:
    """Leases on threads, kept in the database they protect.

    Args:
        location: the database; one in memory keeps its leases in the process.
        timeout_seconds: how long a run waits for another one on the same thread; 0 never waits.
    """

    def __init__(self, location: Location, *, timeout_seconds: float = 600.0) -> None:
        self.timeout_seconds = timeout_seconds
        self._held: dict[str, _Lease] = {}
        self._guard = threading.Lock()
        self._stop = threading.Event()
        self._renewer: threading.Thread | None = None
        self._database = sqlite3.connect(location.target, timeout=30, isolation_level=None, check_same_thread=False)
        self._database.execute("PRAGMA journal_mode=WAL")
        self._database.execute("PRAGMA synchronous=NORMAL")
        # A thread's id may say something about its user, and erasing must not leave it in free space.
        self._database.execute("PRAGMA secure_delete=ON")
        # WITHOUT ROWID, since every turn writes two rows here: an index of its own would double the pages.
        self._database.execute(
            "CREATE TABLE IF NOT EXISTS thread_locks"
            " (thread_id TEXT PRIMARY KEY, holder TEXT, expires REAL) WITHOUT ROWID"
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
            ThreadBusyError: another run kept it for longer than the timeout, or took it over because this
                process stood still for longer than its lease.
            StorageError: the database failed inside the block, such as a full disk.
        """
        holder = _new_holder()
        with _failures_told(thread_id):
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
        with _failures_told(thread_id):
            # Another process may hold it: there is no event to wait for.
            while (pause := await asyncio.to_thread(next, attempts, None)) is not None:  # noqa: ASYNC110
                await asyncio.sleep(pause)
            try:
                yield
            finally:
                await asyncio.shield(asyncio.to_thread(self._release, thread_id, holder))

    def doubtful_holder(self, thread_id: str) -> str | None:
        """Return who we are on a thread whose lease may have gone to somebody else; None when it cannot have.

        None also for a thread that is not locked here, such as one whose state is edited by hand.
        """
        lease = self._held.get(thread_id)
        return lease.holder if lease is not None and time.time() >= lease.expires else None

    def doubtful(self) -> dict[str, str]:
        """Return the leases of ours that may have gone to somebody else: thread or key, and who we are."""
        now = time.time()
        return {thread_id: lease.holder for thread_id, lease in list(self._held.items()) if now >= lease.expires}

    def _attempts(self, thread_id: str, holder: str) -> Iterator[float]:
        """Yield the pauses to make until the lease is ours."""
        deadline = time.monotonic() + self.timeout_seconds
        pause = _FIRST_WAIT_SECONDS
        while not self._acquire(thread_id, holder):
            if time.monotonic() >= deadline:
                raise ThreadBusyError(
                    f"{_shown(thread_id)} is busy: {self._described(thread_id)} held its lock for "
                    f"{self.timeout_seconds:g} s; wait for that run or raise `lock_timeout_seconds`"
                )
            yield pause
            pause = min(pause * 1.5, _LONGEST_WAIT_SECONDS)

    def _acquire(self, thread_id: str, holder: str) -> bool:
        now = time.time()
        expires = now + LEASE_SECONDS
        with self._guard:
            if thread_id in self._held:
                # A run of ours that stood still is still there, whatever its lease says.
                return False
            # One statement is one transaction: no other process can come between check and write.
            cursor = self._database.execute(
                "INSERT INTO thread_locks VALUES (?, ?, ?) ON CONFLICT (thread_id) DO UPDATE"
                " SET holder = excluded.holder, expires = excluded.expires WHERE thread_locks.expires < ?",
                (thread_id, holder, expires, now),
            )
            if cursor.rowcount == 0 and not self._inherit(thread_id, holder, expires):
                return False
            self._held[thread_id] = _Lease(holder, expires)
            if self._renewer is None:
                self._renewer = threading.Thread(target=self._renew, name="everthread-locks", daemon=True)
                self._renewer.start()
            return True

    def _inherit(self, thread_id: str, holder: str, expires: float) -> bool:
        """Take the lease of a process of this machine that is gone, instead of waiting for its expiry."""
        row = self._database.execute("SELECT holder FROM thread_locks WHERE thread_id = ?", (thread_id,)).fetchone()
        if row is None or not _is_gone(str(row[0])):
            return False
        cursor = self._database.execute(
            "UPDATE thread_locks SET holder = ?, expires = ? WHERE thread_id = ? AND holder = ?",
            (holder, expires, thread_id, row[0]),
        )
        return cursor.rowcount == 1

    def _described(self, thread_id: str) -> str:
        """Name who holds a thread, as far as it can be told."""
        with self._guard:
            row = self._database.execute("SELECT holder FROM thread_locks WHERE thread_id = ?", (thread_id,)).fetchone()
        place, process = _origin(str(row[0])) if row else ("", "")
        if process == str(os.getpid()) and place == _place():
            return "another run of this process"
        return f"process {process}" if process and place == _place() else "another run"

    def _release(self, thread_id: str, holder: str) -> None:
        with self._guard:
            lease = self._held.get(thread_id)
            if lease is not None and lease.holder == holder:
                del self._held[thread_id]
            try:
                self._database.execute(
                    "DELETE FROM thread_locks WHERE thread_id = ? AND holder = ?", (thread_id, holder)
                )
            except sqlite3.Error as error:
                # What the run did is saved or not, whatever becomes of its lease, which expires.
                logger.warning("could not give the lock of thread %r back: %s", thread_id, error)

    def _renew(self) -> None:
        while not self._stop.wait(LEASE_SECONDS / 3):
            try:
                with self._guard:
                    for thread_id, lease in list(self._held.items()):
                        self._extend(thread_id, lease.holder)
            except sqlite3.Error as error:
                # A busy database must not end the renewing: the next round tries again.
                logger.warning("could not renew %d thread locks: %s", len(self._held), error)

    def _extend(self, thread_id: str, holder: str) -> None:
        expires = time.time() + LEASE_SECONDS
        cursor = self._database.execute(
            "UPDATE thread_locks SET expires = ? WHERE thread_id = ? AND holder = ?", (expires, thread_id, holder)
        )
        if cursor.rowcount == 1:
            self._held[thread_id] = _Lease(holder, expires)
        else:
            logger.warning("the lease of thread %r went to another run; what this one does is not saved", thread_id)


@contextmanager
def _failures_told(thread_id: str) -> Iterator[None]:
    """Turn what the database says of a failed run into what happened and what to do."""
    try:
        yield
    except sqlite3.Error as error:
        if LOST in str(first_of(error)):
            raise ThreadBusyError(
                f"{_shown(thread_id)} went to another run, because this process stood still for more than "
                f"{LEASE_SECONDS:g} s; nothing of this run was saved since, send the message again"
            ) from error
        raise told(error) from error


def _shown(key: str) -> str:
    """Name what a key locks: a thread, or the notes of a user."""
    return f"the memory of {key[1:].replace('/', ' ')!r}" if key.startswith("\x00") else f"thread {key!r}"


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


def _origin(holder: str) -> tuple[str, str]:
    """Return the place and the process id of a holder."""
    place, _, process = holder.rpartition(":")[0].rpartition(":")
    return place, process


def _is_gone(holder: str) -> bool:
    """Tell whether the holder was a process of this place that no longer runs."""
    place, process = _origin(holder)
    if not place or place != _place() or not process.isdigit():
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False
