"""What a run writes is saved by steps: nothing of one that fails, and nobody misses what is still to be saved."""

import sqlite3
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.store.base import GetOp, PutOp

from everthread import open_storage
from everthread.storage.lexical.journals import Entry, Journal, Journals
from everthread.storage.lexical.plans import Statement
from everthread.storage.open import Storage

LEDGER, NOTES = ("threads", "t", "ledger"), ("threads", "t", "notes")
EVENT = [PutOp(LEDGER, "e", {"event": "x"}, index=False)]
REFUSE = "CREATE TEMP TRIGGER refuse BEFORE INSERT ON main.checkpoints BEGIN SELECT RAISE(ABORT, 'refused'); END"
ONE, TWO = Statement("one"), Statement("two")


def config(**more: str) -> Any:
    return {"configurable": {"thread_id": "t", "checkpoint_ns": "", **more}}


def step(storage: Storage) -> str:
    """Write what a step of a run does: an event, what a task wrote, a checkpoint."""
    made = empty_checkpoint()
    storage.store.defer("t", EVENT)  # type: ignore[attr-defined]
    storage.checkpointer.put_writes(config(checkpoint_id="before"), [("turns", 1)], "task")
    storage.checkpointer.put(config(), made, {}, {})
    return str(made["id"])


def saved(folder: Path) -> tuple[int, int, int]:
    """Count events, writes and checkpoints that another connection sees."""
    database = sqlite3.connect(folder / "a.db")
    try:
        counts = [
            database.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for table in ("store WHERE prefix LIKE '%ledger'", "writes", "checkpoints")
        ]
    finally:
        database.close()
    return counts[0], counts[1], counts[2]


class Saved:
    """Stands in for a database: takes entries, or fails."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.entries: list[list[Entry]] = []
        self.failure = failure
        self.called = threading.Event()

    def __call__(self, entries: Sequence[Entry]) -> None:
        self.called.set()
        if self.failure is not None:
            raise self.failure
        self.entries.append(list(entries))


def broken(storage: Storage) -> None:
    with storage.journal("t", "exit"):
        step(storage)
        raise ValueError("model")


def test_a_step_is_saved_with_its_checkpoint(tmp_path: Path) -> None:
    with open_storage(f"sqlite:///{tmp_path}/a.db") as storage, storage.journal("t", "sync"):
        storage.store.defer("t", EVENT)  # type: ignore[attr-defined]
        storage.checkpointer.put_writes(config(checkpoint_id="before"), [("turns", 1)], "task")
        before = saved(tmp_path)
        storage.checkpointer.put(config(), empty_checkpoint(), {}, {})

        assert (before, saved(tmp_path)) == ((0, 0, 0), (1, 1, 1))


@pytest.mark.parametrize("durability", ["async", "exit"])
def test_a_run_that_ends_has_saved_everything(durability: str, tmp_path: Path) -> None:
    with open_storage(f"sqlite:///{tmp_path}/a.db") as storage:
        with storage.journal("t", durability):
            step(storage)

        assert saved(tmp_path) == (1, 1, 1)


def test_a_run_saves_nothing_ahead_of_its_exit(tmp_path: Path) -> None:
    with open_storage(f"sqlite:///{tmp_path}/a.db") as storage, storage.journal("t", "exit"):
        step(storage)

        assert saved(tmp_path) == (0, 0, 0)


def test_a_run_that_fails_has_saved_what_it_wrote(tmp_path: Path) -> None:
    with open_storage(f"sqlite:///{tmp_path}/a.db") as storage:
        with pytest.raises(ValueError, match="model"):
            broken(storage)

        assert saved(tmp_path) == (1, 1, 1)


def test_a_checkpoint_that_is_still_to_be_saved_can_be_read(tmp_path: Path) -> None:
    with open_storage(f"sqlite:///{tmp_path}/a.db") as storage, storage.journal("t", "exit"):
        made = step(storage)
        found = storage.checkpointer.get_tuple(config())

    assert found is not None
    assert found.checkpoint["id"] == made


def test_a_record_that_is_still_to_be_saved_can_be_read(tmp_path: Path) -> None:
    with open_storage(f"sqlite:///{tmp_path}/a.db") as storage, storage.journal("t", "exit"):
        storage.store.defer("t", EVENT)  # type: ignore[attr-defined]

        assert storage.store.get(LEDGER, "e") is not None


@pytest.mark.parametrize("prefix", [(), ("threads",), LEDGER])
def test_a_record_that_is_still_to_be_saved_can_be_found(prefix: tuple[str, ...], tmp_path: Path) -> None:
    with open_storage(f"sqlite:///{tmp_path}/a.db") as storage, storage.journal("t", "exit"):
        storage.store.defer("t", EVENT)  # type: ignore[attr-defined]

        assert [item.key for item in storage.store.search(prefix)] == ["e"]


def test_a_record_that_is_written_again_keeps_the_last_value(tmp_path: Path) -> None:
    with open_storage(f"sqlite:///{tmp_path}/a.db") as storage:
        with storage.journal("t", "exit"):
            storage.store.defer("t", EVENT)  # type: ignore[attr-defined]
            storage.store.put(LEDGER, "e", {"event": "y"}, index=False)

        assert storage.store.get(LEDGER, "e").value == {"event": "y"}  # type: ignore[union-attr]


def test_reading_something_else_saves_nothing(tmp_path: Path) -> None:
    with open_storage(f"sqlite:///{tmp_path}/a.db") as storage, storage.journal("t", "exit"):
        storage.store.defer("t", EVENT)  # type: ignore[attr-defined]
        storage.store.get(("users", "u", "notes"), "n")

        assert saved(tmp_path) == (0, 0, 0)


def test_a_text_that_is_still_to_be_saved_can_be_found_by_its_words(tmp_path: Path) -> None:
    with open_storage(f"sqlite:///{tmp_path}/a.db") as storage, storage.journal("t", "exit"):
        storage.store.defer("t", [PutOp(("threads", "t", "notes"), "n", {"text": "aisle seats"})])  # type: ignore[attr-defined]

        assert [item.key for item in storage.store.search(("threads", "t"), query="seat")] == ["n"]


@pytest.mark.parametrize(
    ("thread_id", "ops"),
    [("other", EVENT), ("t", [GetOp(LEDGER, "e")]), ("t", [])],
    ids=["no run", "a read", "nothing"],
)
def test_only_writes_are_left_to_a_run(thread_id: str, ops: list[PutOp], tmp_path: Path) -> None:
    with open_storage(f"sqlite:///{tmp_path}/a.db") as storage, storage.journal("t", "exit"):
        assert not storage.store.defer(thread_id, ops)  # type: ignore[attr-defined]


def test_a_run_in_memory_keeps_a_journal_too() -> None:
    with open_storage("sqlite://") as storage:
        with storage.journal("t", "exit"):
            assert storage.store.defer("t", EVENT)  # type: ignore[attr-defined]

        assert storage.store.get(LEDGER, "e") is not None


def test_of_two_writes_to_one_record_the_last_one_is_saved_and_found(tmp_path: Path) -> None:
    with open_storage(f"sqlite:///{tmp_path}/a.db") as storage:
        with storage.journal("t", "exit"):
            for text in ("an aisle seat", "a window seat"):
                storage.store.defer("t", [PutOp(NOTES, "n", {"text": text})])  # type: ignore[attr-defined]

        assert storage.store.search(NOTES, query="aisle") == []
        assert [item.value["text"] for item in storage.store.search(NOTES, query="window")] == ["a window seat"]


def test_a_step_that_fails_in_its_middle_leaves_nothing(tmp_path: Path) -> None:
    with open_storage(f"sqlite:///{tmp_path}/a.db") as storage:
        storage.checkpointer.conn.execute(REFUSE)  # type: ignore[attr-defined]
        with pytest.raises(sqlite3.IntegrityError, match="refused"), storage.journal("t", "sync"):
            step(storage)

        assert saved(tmp_path) == (0, 0, 0)


def test_a_checkpoint_is_saved_behind_its_run() -> None:
    save = Saved()
    journals = Journals(save)
    with journals.open("t", "async"):
        journal = journals.of("t")
        assert journal is not None
        journal.note(ONE)
        journal.step()

        assert save.called.wait(timeout=30)
    journals.close()
    assert save.entries == [[ONE]]


def test_what_is_on_its_way_to_the_disk_is_still_to_be_saved() -> None:
    seen: list[bool] = []
    journal = Journal(lambda entries: seen.append(journal.concerns([GetOp(LEDGER, "e")])), Journal.save)
    journal.note(EVENT)
    journal.save()

    assert (seen, journal.concerns([GetOp(LEDGER, "e")])) == ([True], False)


def test_what_another_writer_keeps_from_being_saved_is_saved_later() -> None:
    save = Saved(sqlite3.OperationalError("database is locked"))
    journals = Journals(save)
    with journals.open("t", "exit"):
        journals.of("t").note(ONE)  # type: ignore[union-attr]
        journals.settle()
        save.failure = None

    assert save.entries == [[ONE]]


def test_a_run_that_somebody_interrupts_at_its_end_has_no_journal() -> None:
    def interrupted(entries: Sequence[Entry]) -> None:
        raise KeyboardInterrupt

    journals = Journals(interrupted)
    with pytest.raises(KeyboardInterrupt), journals.open("t", "exit"):
        journals.of("t").note(ONE)  # type: ignore[union-attr]

    assert journals.of("t") is None


def test_what_a_run_left_that_nobody_ended_is_saved_when_the_storage_closes(tmp_path: Path) -> None:
    with ExitStack() as run:
        with open_storage(f"sqlite:///{tmp_path}/a.db") as storage:
            run.enter_context(storage.journal("t", "async"))
            step(storage)

        assert saved(tmp_path) == (1, 1, 1)


def test_whoever_lists_checkpoints_keeps_nobody_from_writing(tmp_path: Path) -> None:
    with open_storage(f"sqlite:///{tmp_path}/a.db") as storage:
        for _ in range(2):
            storage.checkpointer.put(config(), empty_checkpoint(), {}, {})
        listed = storage.checkpointer.list(config())
        next(listed)

        assert not storage.checkpointer.lock.locked()  # type: ignore[attr-defined]


def test_what_fails_behind_a_run_ends_it() -> None:
    journals = Journals(Saved(OSError("disk")))
    with pytest.raises(OSError, match="disk"), journals.open("t", "exit"):
        journals.of("t").note(ONE)  # type: ignore[union-attr]


def test_nothing_is_saved_after_a_failure() -> None:
    save = Saved(OSError("disk"))
    journal = Journal(save, Journal.save)
    journal.note(ONE)
    journal.save()
    save.failure = None
    journal.note(TWO)
    with pytest.raises(OSError, match="disk"):
        journal.step()

    assert save.entries == []


def test_the_failure_of_a_run_is_told_ahead_of_that_of_its_journal(tmp_path: Path) -> None:
    with open_storage(f"sqlite:///{tmp_path}/a.db") as storage:
        storage.checkpointer.conn.execute(REFUSE)  # type: ignore[attr-defined]
        with pytest.raises(ValueError, match="model"):
            broken(storage)


def test_a_run_that_ended_has_no_journal() -> None:
    journals = Journals(Saved())
    with journals.open("t", "exit"):
        pass

    assert journals.of("t") is None
