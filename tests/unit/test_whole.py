"""What fails in its middle leaves nothing behind: writes of a checkpoint, batches of the store."""

import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import PutOp

from everthread import open_storage
from everthread.storage.open import aopen_storage

CONFIG: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": "c"}}
WRITES = [("messages", "one"), ("turns", "refused"), ("moved", "three")]
REFUSE = (
    "CREATE TEMP TRIGGER refuse BEFORE INSERT ON main.writes WHEN NEW.channel = 'turns'"
    " BEGIN SELECT RAISE(ABORT, 'refused'); END"
)


def count(folder: Path) -> int:
    """Count the writes that another connection sees; fails at once when the file is locked for writing."""
    database = sqlite3.connect(folder / "a.db", timeout=0)
    try:
        database.execute("CREATE TABLE anything (x)")
        return int(database.execute("SELECT count(*) FROM writes").fetchone()[0])
    finally:
        database.close()


def test_a_write_that_fails_in_its_middle_leaves_nothing(tmp_path: Path) -> None:
    with open_storage(f"sqlite:///{tmp_path}/a.db") as storage:
        storage.checkpointer.conn.execute(REFUSE)  # type: ignore[attr-defined]
        with pytest.raises(sqlite3.IntegrityError, match="refused"):
            storage.checkpointer.put_writes(CONFIG, WRITES, "task")

        assert count(tmp_path) == 0


async def test_an_async_write_that_fails_in_its_middle_leaves_nothing_and_no_lock(tmp_path: Path) -> None:
    async with aopen_storage(f"sqlite:///{tmp_path}/a.db") as storage:
        await storage.checkpointer.conn.execute(REFUSE)  # type: ignore[attr-defined]
        with pytest.raises(sqlite3.IntegrityError, match="refused"):
            await storage.checkpointer.aput_writes(CONFIG, WRITES, "task")

        assert count(tmp_path) == 0


NOTE: dict[str, Any] = {"text": "x"}
MOVE = [PutOp(("threads", "t", "notes"), "n", None), PutOp(("users", "u", "notes"), "n", NOTE)]
REFUSE_NOTE = (
    "CREATE TEMP TRIGGER refuse BEFORE INSERT ON main.store WHEN NEW.prefix = 'users.u.notes'"
    " BEGIN SELECT RAISE(ABORT, 'refused'); END"
)


def test_a_note_whose_move_fails_stays_where_it_was(tmp_path: Path) -> None:
    with open_storage(f"sqlite:///{tmp_path}/a.db") as storage:
        storage.store.put(*MOVE[0][:2], NOTE)
        storage.store.conn.execute(REFUSE_NOTE)  # type: ignore[attr-defined]
        with pytest.raises(sqlite3.IntegrityError, match="refused"):
            storage.store.batch(MOVE)

        assert storage.store.get(*MOVE[0][:2]) is not None
        assert count(tmp_path) == 0


async def test_a_note_whose_async_move_fails_stays_where_it_was(tmp_path: Path) -> None:
    async with aopen_storage(f"sqlite:///{tmp_path}/a.db") as storage:
        await storage.store.aput(*MOVE[0][:2], NOTE)
        await storage.store.conn.execute(REFUSE_NOTE)  # type: ignore[attr-defined]
        with pytest.raises(sqlite3.IntegrityError, match="refused"):
            await storage.store.abatch(MOVE)

        assert await storage.store.aget(*MOVE[0][:2]) is not None
        assert count(tmp_path) == 0


def test_whoever_reads_need_not_wait_for_a_write_that_waits(tmp_path: Path) -> None:
    with open_storage(f"sqlite:///{tmp_path}/a.db") as storage, closing(sqlite3.connect(tmp_path / "a.db")) as other:
        storage.store.put(*MOVE[0][:2], NOTE)
        other.execute("BEGIN IMMEDIATE")
        waits = threading.Event()
        storage.store.conn.set_trace_callback(lambda sql: waits.set() if "BEGIN" in sql else None)  # type: ignore[attr-defined]
        writer = threading.Thread(target=storage.checkpointer.put_writes, args=(CONFIG, WRITES, "task"))
        writer.start()
        assert waits.wait(timeout=30)

        found = storage.store.get(*MOVE[0][:2])
        is_waiting = writer.is_alive()

        other.rollback()
        writer.join()
        assert found is not None
        assert is_waiting
        assert len(storage.checkpointer.conn.execute("SELECT * FROM writes").fetchall()) == len(WRITES)  # type: ignore[attr-defined]


def test_a_write_that_waits_for_too_long_says_so_and_leaves_the_connection_free(tmp_path: Path) -> None:
    with open_storage(f"sqlite:///{tmp_path}/a.db") as storage, closing(sqlite3.connect(tmp_path / "a.db")) as other:
        storage.store.conn.execute("PRAGMA busy_timeout = 1")  # type: ignore[attr-defined]
        other.execute("BEGIN IMMEDIATE")

        for _ in range(2):
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                storage.checkpointer.put_writes(CONFIG, WRITES, "task")

        assert storage.store.conn.execute("PRAGMA busy_timeout").fetchone() == (1,)  # type: ignore[attr-defined]
