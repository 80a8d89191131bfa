"""Every write is one transaction: it is saved as a whole or leaves nothing, whatever interrupts it."""

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import PutOp

from everthread import open_storage
from everthread.errors import StorageError
from everthread.storage.locations import locate
from everthread.storage.sqlite.database import SqliteDatabase as Database

CONFIG: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": "c"}}
WRITES = [("messages", "one"), ("turns", "refused"), ("moved", "three")]
REFUSE = (
    "CREATE TEMP TRIGGER refuse BEFORE INSERT ON main.writes WHEN NEW.channel = 'turns'"
    " BEGIN SELECT RAISE(ABORT, 'refused'); END"
)


def count(folder: Path) -> int:
    """Count the writes that another connection sees; fails at once when the file is locked for writing."""
    with closing(sqlite3.connect(folder / "a.db", timeout=0)) as database:
        database.execute("CREATE TABLE anything (x)")
        return int(database.execute("SELECT count(*) FROM writes").fetchone()[0])


async def either(part: Any, name: str, asynchronous: bool, *args: Any) -> None:
    """Call a method or its async twin."""
    await getattr(part, f"a{name}")(*args) if asynchronous else getattr(part, name)(*args)


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_a_write_that_fails_in_its_middle_leaves_nothing(asynchronous: bool, tmp_path: Path) -> None:
    with open_storage(f"sqlite:///{tmp_path}/a.db") as storage:
        storage.database.connection.execute(REFUSE)
        with pytest.raises(StorageError, match="the database failed: refused"):
            await either(storage.checkpointer, "put_writes", asynchronous, CONFIG, WRITES, "task")

        assert count(tmp_path) == 0


NOTE: dict[str, Any] = {"text": "x"}
MOVE = [PutOp(("threads", "t", "notes"), "n", None), PutOp(("users", "u", "notes"), "n", NOTE)]
REFUSE_NOTE = (
    "CREATE TEMP TRIGGER refuse BEFORE INSERT ON main.store WHEN NEW.prefix = 'users.u.notes'"
    " BEGIN SELECT RAISE(ABORT, 'refused'); END"
)


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_a_note_whose_move_fails_stays_where_it_was(asynchronous: bool, tmp_path: Path) -> None:
    with open_storage(f"sqlite:///{tmp_path}/a.db") as storage:
        storage.store.put(*MOVE[0][:2], NOTE)
        storage.database.connection.execute(REFUSE_NOTE)
        with pytest.raises(StorageError, match="refused"):
            await either(storage.store, "batch", asynchronous, MOVE)

        assert storage.store.get(*MOVE[0][:2]) is not None
        assert count(tmp_path) == 0


def test_a_write_that_waits_for_too_long_says_so_and_leaves_the_connection_free(tmp_path: Path) -> None:
    with open_storage(f"sqlite:///{tmp_path}/a.db") as storage, closing(sqlite3.connect(tmp_path / "a.db")) as other:
        storage.database.connection.execute("PRAGMA busy_timeout = 1")
        other.execute("BEGIN IMMEDIATE")

        for _ in range(2):
            with pytest.raises(StorageError, match="another process kept it locked: try again"):
                storage.checkpointer.put_writes(CONFIG, WRITES, "task")

        other.rollback()
        storage.checkpointer.put_writes(CONFIG, WRITES, "task")
        assert count(tmp_path) == 3


class Interrupted:
    """A connection during which somebody presses Ctrl-C: Python hears of it when a call returns."""

    def __init__(self, connection: sqlite3.Connection, at: int) -> None:
        self._connection = connection
        self._left = at

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._connection, name)
        return self._counted(found) if callable(found) else found

    def _counted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any) -> Any:
            result = call(*args)
            self._left -= 1
            if self._left == 0:
                raise KeyboardInterrupt
            return result

        return counted


@pytest.mark.parametrize("at", range(1, 6))
def test_ctrl_c_after_any_step_leaves_no_transaction_and_no_lock(tmp_path: Path, at: int) -> None:
    database = Database(locate(f"sqlite:///{tmp_path}/a.db"))
    plain = database.connection
    plain.execute("CREATE TABLE notes (x)")

    def insert() -> None:
        database.connection.execute("INSERT INTO notes VALUES (1)")
        database.connection.execute("INSERT INTO notes VALUES (2)")

    database.connection = Interrupted(plain, at)  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt) if at < 5 else nullcontext():
        database.write(insert)
    database.connection = plain
    saved = plain.execute("SELECT count(*) FROM notes").fetchone()[0]
    with ThreadPoolExecutor(1) as another:
        another.submit(database.write, insert).result(timeout=10)

    assert saved == (0 if at < 4 else 2)
    assert plain.execute("SELECT count(*) FROM notes").fetchone() == (saved + 2,)
    database.close()


def test_what_an_interrupt_left_open_is_rolled_back_by_the_next_write(tmp_path: Path) -> None:
    database = Database(locate(f"sqlite:///{tmp_path}/a.db"))
    database.connection.execute("CREATE TABLE notes (x)")
    database.connection.execute("BEGIN IMMEDIATE")
    database.connection.execute("INSERT INTO notes VALUES (1)")

    database.write(lambda: database.connection.execute("INSERT INTO notes VALUES (2)"))

    assert database.connection.execute("SELECT x FROM notes").fetchall() == [(2,)]
    database.close()


async def test_a_call_whose_caller_is_cancelled_finishes_and_leaves_the_connection_clean(tmp_path: Path) -> None:
    with open_storage(f"sqlite:///{tmp_path}/a.db") as storage:
        began, go_on = threading.Event(), threading.Event()

        def slow() -> None:
            storage.database.connection.execute("INSERT INTO store (prefix, key, value) VALUES ('a', 'k', '{}')")
            began.set()
            assert go_on.wait(30)

        task = asyncio.create_task(storage.worker.call(storage.database.write, slow))
        await asyncio.to_thread(began.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        go_on.set()

        assert await storage.store.aget(("a",), "k") is not None
        assert count(tmp_path) == 0


async def test_threads_and_tasks_on_one_storage_lose_nothing(tmp_path: Path) -> None:
    with open_storage(f"sqlite:///{tmp_path}/a.db") as storage:

        def write(name: str) -> None:
            for number in range(20):
                storage.store.put(("a",), f"{name}-{number}", {})
                storage.checkpointer.put_writes(CONFIG, [("messages", number)], f"{name}-{number}")

        async def awrite(name: str) -> None:
            for number in range(20):
                await storage.store.aput(("a",), f"{name}-{number}", {})
                await storage.checkpointer.aput_writes(CONFIG, [("messages", number)], f"{name}-{number}")

        threads = [asyncio.to_thread(write, f"thread {number}") for number in range(4)]
        await asyncio.gather(*threads, *(awrite(f"task {number}") for number in range(8)))

        assert len(storage.store.search(("a",), limit=999)) == 240
        assert count(tmp_path) == 240


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_a_closed_storage_says_that_it_is_closed(asynchronous: bool, tmp_path: Path) -> None:
    storage = open_storage(f"sqlite:///{tmp_path}/a.db")
    storage.store.put(("a",), "b", {})
    storage.close()

    with pytest.raises(StorageError, match="the storage is closed: open the database again"):
        _ = await storage.store.aget(("a",), "b") if asynchronous else storage.store.get(("a",), "b")
