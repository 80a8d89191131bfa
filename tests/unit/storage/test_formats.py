"""Databases of older and newer versions."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from everthread import Context, build_graph, open_storage
from everthread.errors import StorageError
from everthread.models.scripted import ScriptedModel
from everthread.state import Agent

DUMP = Path(__file__).parent / "data" / "before_versions.sql"
CONFIG: Any = {"configurable": {"thread_id": "t"}}


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A file that a version without format numbers made."""
    with closing(sqlite3.connect(tmp_path / "a.db")) as database:
        database.executescript(DUMP.read_text(encoding="utf-8"))
    return tmp_path / "a.db"


def rows(path: Path, sql: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as database:
        return database.execute(sql).fetchall()


def test_a_thread_of_an_older_version_goes_on(old: Path) -> None:
    model = ScriptedModel(["Fine."])
    with open_storage(f"sqlite:///{old}") as storage:
        agent = Agent(name="test", title="Test", instructions="Be brief.")
        graph = build_graph(agent, model=model, summarizer="offline", storage=storage)
        graph.invoke({"messages": "And now?"}, CONFIG, context=Context(user_id="ada"))

    assert [message.text for message in model.prompts[0][1:]] == ["Hi.", "Hello.", "Where to?", "Porto.", "And now?"]


def test_its_checkpoints_are_ours_and_those_of_another_app_are_not(old: Path) -> None:
    other = "SELECT * FROM checkpoints WHERE thread_id = 'other app'"
    before = rows(old, other)

    with open_storage(f"sqlite:///{old}") as storage:
        marked = {"everthread" in one.metadata for one in storage.checkpointer.list(CONFIG)}

    assert marked == {True}
    assert rows(old, other) == before
    assert rows(old, "SELECT name FROM sqlite_master WHERE name = 'thread_locks'") == []


def test_its_index_is_built_again(old: Path) -> None:
    with open_storage(f"sqlite:///{old}") as storage:
        found = storage.store.search((), query="aisle")

    assert [item.key for item in found] == ["n1"]


def test_opening_twice_changes_nothing(old: Path) -> None:
    everything = "SELECT 1, hex(metadata) FROM checkpoints UNION ALL SELECT 2, hex(value) FROM store ORDER BY 1, 2"
    with open_storage(f"sqlite:///{old}"):
        pass
    before = rows(old, everything)

    with open_storage(f"sqlite:///{old}"):
        pass

    assert rows(old, everything) == before


def test_a_newer_format_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "a.db")) as database, database:
        database.execute("CREATE TABLE everthread (key TEXT PRIMARY KEY, value)")
        database.execute("INSERT INTO everthread VALUES ('format', 99)")

    with pytest.raises(StorageError, match="its format is 99, this one knows 1"):
        open_storage(f"sqlite:///{tmp_path}/a.db")

    assert rows(tmp_path / "a.db", "SELECT name FROM sqlite_master WHERE type = 'table'") == [("everthread",)]
