"""Open one database as a checkpointer, a store and the thread locks."""

import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import (
    AbstractContextManager,
    AsyncExitStack,
    ExitStack,
    asynccontextmanager,
    closing,
    contextmanager,
    nullcontext,
)
from dataclasses import dataclass, replace

import aiosqlite
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore
from langgraph.store.sqlite.aio import AsyncSqliteStore

from everthread.errors import StorageError
from everthread.storage.fence import afence, afence_store, fence, fence_store
from everthread.storage.lexical import AsyncLexicalSqliteStore, LexicalSqliteStore
from everthread.storage.lexical.journals import Journals
from everthread.storage.locations import Location, Synchronous, level, locate, prepare
from everthread.storage.locks import ThreadLocks
from everthread.storage.reviving import MessageSerializer
from everthread.storage.searchable import text_fields
from everthread.storage.whole import WholeAsyncSqliteSaver, WholeSqliteSaver

_PRAGMAS = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous={}",
    "PRAGMA busy_timeout=30000",
    # Some builds write zeros over every page that they free, a fifth of all that a turn writes. `erase` asks for it.
    "PRAGMA secure_delete=FAST",
)


@dataclass(frozen=True)
class Storage:
    """One open database."""

    url: str
    checkpointer: BaseCheckpointSaver[str]
    store: BaseStore
    locks: ThreadLocks
    is_asynchronous: bool = False
    """Opened with `aopen_storage`, for `ainvoke` and `astream`."""
    is_one_file: bool = False
    """The checkpointer and the store have their tables in one database; with asyncio, in memory, each has its own."""
    journals: Journals | None = None
    """Take the writes of a run; None where every write is saved when it comes."""

    @contextmanager
    def hold(self, thread_id: str, config: RunnableConfig) -> Iterator[None]:
        """Hold the lock of a run's thread, and forget at its end what was read ahead for the run."""
        with self.locks.hold(thread_id):
            try:
                yield
            finally:
                if isinstance(self.checkpointer, WholeSqliteSaver):
                    self.checkpointer.forget(config)

    def journal(self, thread_id: str, durability: str) -> AbstractContextManager[None]:
        """Keep a journal for a run of a thread, which nobody else runs at the same time."""
        return nullcontext() if self.journals is None else self.journals.open(thread_id, durability)


@contextmanager
def open_storage(
    url: str,
    *,
    create: bool = True,
    lock_timeout_seconds: float = 600.0,
    synchronous: Synchronous | None = None,
) -> Iterator[Storage]:
    """Open a database for `invoke` and `stream`.

    Args:
        url: `sqlite:///path`, `sqlite:////absolute/path` or `sqlite://` for one in memory.
        create: make the file when it does not exist, readable by its owner only.
        lock_timeout_seconds: how long a run waits for another one on the same thread before it raises
            `ThreadBusyError`; 0 raises it at once.
        synchronous: `full` waits for the disk at every commit, so that a loss of power takes nothing that was
            acknowledged; `normal` survives the death of the process. None: what the URL says, as in
            `sqlite:///a.db?synchronous=full`, else `normal`.

    Raises:
        SettingsError: the URL is not understood.
        StorageError: the file cannot be opened, is not SQLite, or belongs to another program.
    """
    location = _located(url, synchronous)
    prepare(location, create=create)
    with ExitStack() as stack:
        try:
            locks = stack.enter_context(closing(ThreadLocks(location, timeout_seconds=lock_timeout_seconds)))
            # One connection for both: after a write of another one it would read its pages anew.
            connection = stack.enter_context(closing(_connect(location)))
            saver = WholeSqliteSaver(connection, serde=MessageSerializer())
            saver.setup()
            stack.enter_context(closing(saver.journals))
            store = LexicalSqliteStore(connection, text_fields=text_fields)
            store.share(saver.lock, saver.journals)
            store.setup()
            saver.text_fields = text_fields
            if location.path is not None:  # the leases of a database in memory are in another one
                fence(connection, locks)
                fence_store(connection, location.path, locks)
        except sqlite3.Error as error:
            raise _unusable(location, error) from error
        yield Storage(url, saver, store, locks, is_one_file=True, journals=saver.journals)


@asynccontextmanager
async def aopen_storage(
    url: str,
    *,
    create: bool = True,
    lock_timeout_seconds: float = 600.0,
    synchronous: Synchronous | None = None,
) -> AsyncIterator[Storage]:
    """Open a database for `ainvoke` and `astream`; arguments and errors as in `open_storage`."""
    location = _located(url, synchronous)
    prepare(location, create=create)
    async with AsyncExitStack() as stack:
        try:
            locks = stack.enter_context(closing(ThreadLocks(location, timeout_seconds=lock_timeout_seconds)))
            saver_connection = await stack.enter_async_context(aiosqlite.connect(location.target, timeout=30))
            store_connection = await stack.enter_async_context(
                aiosqlite.connect(location.target, timeout=30, isolation_level=None)
            )
            for connection in (saver_connection, store_connection):
                for pragma in _PRAGMAS:
                    await connection.execute(pragma.format(location.synchronous))
            saver = WholeAsyncSqliteSaver(saver_connection, serde=MessageSerializer())
            await saver.setup()
            if location.path is not None:
                await afence(saver_connection, locks)
            store = AsyncLexicalSqliteStore(store_connection, text_fields=text_fields)
            await store.setup()
            if location.path is not None:
                await afence_store(store_connection, location.path, locks)
        except sqlite3.Error as error:
            raise _unusable(location, error) from error
        stack.push_async_callback(_stop_batching, store)
        is_one_file = location.path is not None
        yield Storage(url, saver, store, locks, is_asynchronous=True, is_one_file=is_one_file)


def _located(url: str, synchronous: str | None) -> Location:
    location = locate(url)
    return location if synchronous is None else replace(location, synchronous=level(synchronous))


def _connect(location: Location) -> sqlite3.Connection:
    # The saver and the store guard it with their lock, and say themselves where a transaction begins.
    connection = sqlite3.connect(location.target, timeout=30, check_same_thread=False, isolation_level=None)
    for pragma in _PRAGMAS:
        connection.execute(pragma.format(location.synchronous))
    return connection


def _unusable(location: Location, error: sqlite3.Error) -> StorageError:
    return StorageError(f"cannot open the database {location.url!r}: {error}; it was left as it is")


async def _stop_batching(store: AsyncSqliteStore) -> None:
    """End the store's background task, which would otherwise outlive its connection."""
    task = getattr(store, "_task", None)
    if task is not None:
        task.cancel()
