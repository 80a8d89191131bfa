"""A full disk, a file that cannot be written, a damaged one: a clear error, and nothing is lost."""

import os
import resource
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from everthread import Context, build_graph, open_storage
from everthread.errors import StorageError
from everthread.models.scripted import CannedModel, Tools
from everthread.state import Agent
from everthread.storage.open import Storage
from everthread.storage.reading import read_thread

CONFIG: Any = {"configurable": {"thread_id": "t"}}
CONTEXT = Context(user_id="ada", window=2_000, keep_last_turns=2)
AGENT = Agent(name="echo", title="Echo", instructions="Repeat.")


class Echo(CannedModel):
    """Repeats the question."""

    @property
    def _llm_type(self) -> str:
        return "echo"

    def next_reply(self, messages: list[BaseMessage], tools: Tools) -> AIMessage:
        return AIMessage(f"re: {messages[-1].text}")


def say(storage: Storage, turn: int) -> None:
    graph = build_graph(AGENT, model=Echo(), summarizer="offline", storage=storage)
    graph.invoke({"messages": [HumanMessage(text_of(turn), id=f"u-{turn}")]}, CONFIG, context=CONTEXT)


def talk(storage: Storage, first: int, last: int) -> None:
    for turn in range(first, last):
        say(storage, turn)


def text_of(turn: int) -> str:
    return f"Question {turn}: " + f"word-{turn} " * 150


def texts(storage: Storage) -> list[str]:
    return [str(message.text) for message in read_thread(storage, "t").messages]


def expected(turns: int) -> list[str]:
    return [text for turn in range(turns) for text in (text_of(turn), f"re: {text_of(turn)}")]


def limit(storage: Storage, pages: int | None) -> None:
    """Let the file grow by so many pages and no more; None lifts the limit."""
    database = storage.database.connection
    used = database.execute("PRAGMA page_count").fetchone()[0]
    database.execute(f"PRAGMA max_page_count = {2**30 if pages is None else used + pages}")


@pytest.mark.parametrize("pages", [0, 1, 4])
def test_a_full_disk_fails_the_turn_and_the_same_message_gets_one_turn_afterwards(tmp_path: Path, pages: int) -> None:
    with open_storage(f"sqlite:///{tmp_path}/a.db") as storage:
        talk(storage, 0, 4)
        limit(storage, pages)
        with pytest.raises(StorageError, match="full; what was saved before is intact"):
            talk(storage, 4, 14)
        limit(storage, None)
        # The client sends the message again that got no answer, and goes on.
        talk(storage, sum(text.startswith("re:") for text in texts(storage)), 14)

        assert texts(storage) == expected(14)


def test_a_disk_that_refuses_a_write_fails_the_turn_and_the_same_message_gets_one_turn_afterwards(
    tmp_path: Path,
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with open_storage(f"sqlite:///{tmp_path}/a.db") as storage:
        talk(storage, 0, 4)
        log = tmp_path / "a.db-wal"
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (log.stat().st_size + 20_000, hard))
            with pytest.raises(StorageError, match="the disk is full or failing, and try again"):
                talk(storage, 4, 14)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        talk(storage, sum(text.startswith("re:") for text in texts(storage)), 14)

        assert texts(storage) == expected(14)


def test_a_lock_that_cannot_be_taken_is_one_clear_error(tmp_path: Path) -> None:
    with open_storage(f"sqlite:///{tmp_path}/a.db") as storage:
        (tmp_path / "a.db-locks").write_text("")

        with pytest.raises(StorageError, match="cannot lock the file"):
            say(storage, 0)


def test_a_database_that_became_read_only_is_named_and_keeps_what_it_has(tmp_path: Path) -> None:
    with open_storage(f"sqlite:///{tmp_path}/a.db") as storage:
        say(storage, 0)
        storage.database.connection.execute("PRAGMA query_only = ON")
        with pytest.raises(StorageError, match=r"readonly.* allow writing"):
            say(storage, 1)

        assert texts(storage) == expected(1)


def test_a_file_without_permission_to_write_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"sqlite:///{tmp_path}/a.db"
    with open_storage(url):
        pass
    monkeypatch.setattr(os, "access", lambda _, mode: mode != os.W_OK)

    with pytest.raises(StorageError, match="it is read-only"), open_storage(url):
        pass


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = talked(tmp_path)
    refusal = sqlite3.OperationalError("attempt to write a readonly database")
    refusal.sqlite_errorname = "SQLITE_READONLY_DIRECTORY"

    def refuse(*_: Any, **__: Any) -> Any:
        raise refusal

    monkeypatch.setattr("everthread.storage.locations.sqlite3.connect", refuse)

    with (
        pytest.raises(StorageError, match="cannot write in the folder of the database"),
        open_storage(f"sqlite:///{path}"),
    ):
        pass


def test_a_database_of_a_newer_version_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = talked(tmp_path)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("INSERT INTO store_migrations VALUES (99)")
    before = path.read_bytes()

    with pytest.raises(StorageError, match="made by a newer LangGraph"), open_storage(f"sqlite:///{path}"):
        pass

    assert path.read_bytes() == before


def test_tables_of_another_version_are_told_as_such(tmp_path: Path) -> None:
    path = talked(tmp_path)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("ALTER TABLE checkpoints RENAME COLUMN metadata TO told")

    with (
        pytest.raises(StorageError, match="its tables are not as this version knows them"),
        open_storage(f"sqlite:///{path}") as storage,
    ):
        say(storage, 10)


def test_the_log_of_a_process_that_died_is_read_again(tmp_path: Path) -> None:
    with open_storage(f"sqlite:///{tmp_path}/a.db") as storage:
        talk(storage, 0, 3)
        for name in ("a.db", "a.db-wal"):  # as they are at a kill
            shutil.copy(tmp_path / name, tmp_path / f"copy-{name}")

    with open_storage(f"sqlite:///{tmp_path}/copy-a.db") as storage:
        assert texts(storage) == expected(3)


def test_a_log_that_is_rubbish_takes_nothing_from_the_database(tmp_path: Path) -> None:
    path = talked(tmp_path)
    path.with_name("a.db-wal").write_bytes(bytes(range(256)) * 200)

    with open_storage(f"sqlite:///{path}") as storage:
        assert texts(storage) == expected(10)


@pytest.mark.parametrize("keep", [0.1, 0.5, 0.9])
def test_a_file_that_was_cut_off_is_refused_and_left_as_it_is(tmp_path: Path, keep: float) -> None:
    path = talked(tmp_path)
    os.truncate(path, int(path.stat().st_size * keep))
    before = path.read_bytes()

    with (
        pytest.raises(StorageError, match=r"malformed|damaged|not a readable"),
        open_storage(f"sqlite:///{path}") as one,
    ):
        say(one, 10)

    assert path.read_bytes()[: len(before)] == before


def test_damaged_pages_are_an_error_and_never_an_empty_thread(tmp_path: Path) -> None:
    path = talked(tmp_path)
    damage(path, "sqlite_autoindex_checkpoints_1")

    with pytest.raises(StorageError, match="the file is damaged"), open_storage(f"sqlite:///{path}") as storage:
        say(storage, 10)


def talked(folder: Path) -> Path:
    with open_storage(f"sqlite:///{folder}/a.db") as storage:
        talk(storage, 0, 10)
    return folder / "a.db"


def damage(path: Path, name: str) -> None:
    """Overwrite the root page of a table or an index."""
    with closing(sqlite3.connect(path)) as database:
        size = database.execute("PRAGMA page_size").fetchone()[0]
        root = database.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (name,)).fetchone()[0]
    with suppress(FileNotFoundError):
        path.with_name(path.name + "-wal").unlink()
    with path.open("r+b") as file:
        file.seek((root - 1) * size)
        file.write(b"\xa5" * size)
