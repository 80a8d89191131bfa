"""The thread lock: one run at a time on a thread, across threads and processes.

Two processes on one `thread_id` otherwise keep about half of the messages without any exception. A lock is an
operating system's lock (`flock`) on a small file beside the database, so it is free the moment its holder dies; a
holder that is only stopped keeps it, and the others wait. The file is named by a digest of the thread's id and removed
by whoever holds it, so the folder is as small as the number of runs going on.

POSIX only: Windows has no `flock`, and a file there cannot be removed while it is open. There `open_storage` refuses a
database file and says so.
"""

import asyncio
import hashlib
import os
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from io import FileIO
from pathlib import Path
from typing import Protocol

from everthread.errors import SettingsError, StorageError, ThreadBusyError
from everthread.storage.worker import check_process

if sys.platform != "win32":
    import fcntl

_FIRST_WAIT_SECONDS = 0.002
_LONGEST_WAIT_SECONDS = 0.05


class Lock(Protocol):
    """A lock that may be held by another run, here or elsewhere."""

    @property
    def is_held(self) -> bool:
        """Whether this one holds it."""

    def take(self) -> bool:
        """Take the lock; False while somebody else holds it."""

    async def atake(self) -> bool:
        """Do what `take` does without blocking the event loop."""

    def release(self) -> None:
        """Give the lock back; safe at any moment, also when `take` was interrupted, and again."""

    def holder(self) -> str:
        """Name who holds the lock, as far as it can be known."""


class Locks(ABC):
    """The locks of one database: on threads, and on the notes of users.

    Args:
        timeout_seconds: how long a run waits for another one on the same thread; 0 never waits.
    """

    def __init__(self, timeout_seconds: float) -> None:
        self.timeout_seconds = timeout_seconds
        self._process: int | None = os.getpid()

    def hold(self, key: str, *, timeout_seconds: float | None = None) -> "Hold":
        """Return what holds a thread's lock for the length of a block, sync or async.

        Args:
            key: the thread.
            timeout_seconds: how long to wait for it; None: as long as every run does.

        Raises:
            StorageError: the process was forked since, and what forked it may hold the lock; or the storage is closed.
        """
        check_process(self._process)
        return self._hold(key, self.timeout_seconds if timeout_seconds is None else timeout_seconds)

    @abstractmethod
    def close(self) -> None:
        """Give up what is only there for taking locks."""

    @abstractmethod
    def holders(self, keys: Iterable[str]) -> dict[str, str]:
        """Name who holds which of some threads' locks now, as far as it can be known; no lock is taken for it."""

    @abstractmethod
    def are_free(self) -> bool:
        """Tell whether nobody holds a lock now, as far as it can be known."""

    @abstractmethod
    def _hold(self, key: str, timeout_seconds: float) -> "Hold":
        """Do what `hold` does."""


class ThreadLocks(Locks):
    """Locks of a database file.

    Args:
        path: the file; None for a database in memory, whose locks hold within the process.
        timeout_seconds: how long a run waits for another one on the same thread; 0 never waits.
    """

    def __init__(self, path: Path | None, *, timeout_seconds: float = 600.0) -> None:
        super().__init__(timeout_seconds)
        self.folder: Path | None = None
        """Holds a file for each lock that is held."""
        self._holders: dict[str, object] = {}
        """Who holds a lock of a database in memory, by its name."""
        if path is not None:
            if sys.platform == "win32":
                raise SettingsError("a database file needs the file locks of Linux or macOS; on Windows use WSL")
            real = path.resolve()
            self.folder = real.with_name(real.name + "-locks")

    def close(self) -> None:
        """Do nothing: a lock that is still held is given back by whoever holds it."""

    def holders(self, keys: Iterable[str]) -> dict[str, str]:
        """Name who holds which of some threads' locks now."""
        locks = {key: self._lock(_file_name(key)) for key in keys}
        return {key: lock.holder() for key, lock in locks.items() if lock.is_taken()}

    def are_free(self) -> bool:
        """Tell whether nobody holds a lock now; what a dead process left behind is removed."""
        if self.folder is None:
            return not self._holders
        names = [path.name for path in self.folder.iterdir()] if self.folder.is_dir() else []
        for lock in map(self._lock, names):
            if not lock.take():
                return False
            lock.release()
        return True

    def _hold(self, key: str, timeout_seconds: float) -> "Hold":
        return Hold(self._lock(_file_name(key)), key, timeout_seconds)

    def _lock(self, name: str) -> "_FileLock | _MemoryLock":
        return _MemoryLock(self._holders, name) if self.folder is None else _FileLock(self.folder / name)


class Hold:
    """A lock held for the length of a block, `with` or `async with`; waiting in async holds no thread of an executor.

    `with hold, hold:` gives it back twice: Ctrl-C may cut off one release, and the other one makes up for it.

    Raises:
        ThreadBusyError: another run kept the lock for longer than the timeout.
    """

    def __init__(self, lock: Lock, key: str, timeout_seconds: float) -> None:
        self.key = key
        """Names what is locked."""
        self._lock, self._timeout_seconds = lock, timeout_seconds

    @property
    def is_held(self) -> bool:
        """Whether the block goes on."""
        return self._lock.is_held

    def release(self) -> None:
        """Give the lock back; safe at any moment, and again."""
        self._lock.release()

    def __enter__(self) -> None:
        try:
            for pause in self._pauses():
                if self._lock.is_held or self._lock.take():
                    break
                time.sleep(pause)
        except BaseException:
            self.release()
            raise

    def __exit__(self, *_: object) -> None:
        self.release()

    async def __aenter__(self) -> None:
        try:
            for pause in self._pauses():
                if self._lock.is_held or await self._lock.atake():
                    break
                await asyncio.sleep(pause)
        except BaseException:
            self.release()
            raise

    async def __aexit__(self, *_: object) -> None:
        self.release()

    def _pauses(self) -> Iterator[float]:
        """Yield the seconds to wait after each try that fails, until the timeout."""
        deadline, pause = time.monotonic() + self._timeout_seconds, _FIRST_WAIT_SECONDS
        while True:
            # A try comes first, so that a timeout of 0 is one try.
            is_last = time.monotonic() >= deadline
            yield 0 if is_last else pause
            if is_last:
                raise ThreadBusyError(
                    f"{described(self.key)} is busy: {self._lock.holder()} held its lock for "
                    f"{self._timeout_seconds:g} s; wait for that run or raise `lock_timeout_seconds`"
                )
            pause = min(pause * 1.5, _LONGEST_WAIT_SECONDS)


class _FileLock:
    """A lock on a file; `release` is safe at any moment, also when `take` was interrupted, and again."""

    _file: FileIO | None = None
    # A file object and no bare descriptor: it is closed, and the lock free, when the last one forgets it.

    def __init__(self, path: Path) -> None:
        self._path = path
        self.is_held = False
        self._process = os.getpid()

    def __del__(self) -> None:
        # A run that nobody finished, such as a stream whose event loop was closed.
        self.release()

    def take(self) -> bool:
        """Take the lock; False while somebody else holds it."""
        try:
            self._file = file = self._open()
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Whoever held it until now has removed the file, and a lock on a file without a name keeps nobody out.
            self.is_held = self._is_named(file)
            if self.is_held:
                os.pwrite(file.fileno(), f"{self._process:<20}".encode(), 0)
        except BlockingIOError:
            pass
        except OSError as error:
            raise StorageError(f"cannot lock the file {str(self._path)!r}: {error.strerror}") from error
        if not self.is_held:
            self.release()
        return self.is_held

    async def atake(self) -> bool:
        """Do what `take` does; it never waits."""
        return self.take()

    def release(self) -> None:
        """Give the lock back; a forked child has the file open too, and leaves it alone."""
        if self._file is None or self._process != os.getpid():
            return
        if self.is_held:
            self.is_held = False
            # While it is held, and only its own: afterwards, or when somebody emptied the folder, it is another's.
            if self._is_named(self._file):
                self._path.unlink(missing_ok=True)
        self._file.close()

    def is_taken(self) -> bool:
        """Tell whether somebody holds the lock; one that is free has no file, unless its holder died."""
        try:
            with FileIO(self._path, "r") as file:
                # Shared, so that two who look do not see each other.
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return False
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        except OSError as error:
            raise StorageError(f"cannot look at the lock {str(self._path)!r}: {error.strerror}") from error

    def holder(self) -> str:
        """Name who holds the lock, as far as it can be known."""
        try:
            process = self._path.read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            process = ""
        if process == str(os.getpid()):
            return "another run of this process"
        return f"process {process}" if process.isdigit() else "another run"

    def _open(self) -> FileIO:
        try:
            return FileIO(self._path, "r+", opener=_create)
        except FileNotFoundError:
            self._path.parent.mkdir(mode=0o700, exist_ok=True)
            return FileIO(self._path, "r+", opener=_create)

    def _is_named(self, file: FileIO) -> bool:
        """Tell whether the path still names the file that is open."""
        try:
            return os.path.samestat(os.fstat(file.fileno()), self._path.stat())
        except FileNotFoundError:
            return False


def _file_name(key: str) -> str:
    return digest(key).hex()[:32]


def _create(path: str, _: int) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


class _MemoryLock:
    """A lock within the process; `release` is safe at any moment, and again."""

    def __init__(self, holders: dict[str, object], name: str) -> None:
        self._holders = holders
        self._name = name
        self._holder = object()

    def __del__(self) -> None:
        self.release()

    @property
    def is_held(self) -> bool:
        """Whether this one holds it."""
        return self._holders.get(self._name) is self._holder

    def take(self) -> bool:
        """Take the lock; False while somebody else holds it."""
        return self._holders.setdefault(self._name, self._holder) is self._holder

    async def atake(self) -> bool:
        """Do what `take` does."""
        return self.take()

    def release(self) -> None:
        """Give the lock back."""
        if self.is_held:
            del self._holders[self._name]

    def is_taken(self) -> bool:
        """Tell whether somebody holds the lock."""
        return self._name in self._holders

    def holder(self) -> str:
        """Name who holds the lock."""
        return "another run of this process"


def digest(key: str) -> bytes:
    """Return what names the lock of a thread, or of a user's notes, whatever its id looks like."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()


def described(key: str) -> str:
    """Name what a key locks: a thread, or the notes of a user."""
    return f"the memory of {key[1:].replace('/', ' ')!r}" if key.startswith("\x00") else f"thread {key!r}"
