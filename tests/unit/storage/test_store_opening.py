"""Opening a store: databases of other versions, two at once, Everthread's own."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import PutOp
from langgraph.store.sqlite import SqliteStore

from everthread.errors import StorageError
from everthread.state import namespaces
from everthread.storage.open import open_storage
from everthread.storage.sqlite import index
from everthread.storage.texts import text_fields

SPACE = ("threads", "t")


def filled_by_stock(path: Path, count: int) -> None:
    with SqliteStore.from_conn_string(str(path)) as stock:
        stock.setup()
        stock.batch([PutOp(SPACE, f"k{n}", {"text": f"tea {n}"}) for n in range(count)])


def found(path: Path, query: str) -> list[str]:
    with open_storage(f"sqlite:///{path}") as storage:
        return [item.key for item in storage.store.search((), query=query, limit=5000)]


def test_a_database_of_the_stock_store_is_indexed_when_opened(tmp_path: Path) -> None:
    filled_by_stock(tmp_path / "a.db", 1_200)

    with open_storage(f"sqlite:///{tmp_path}/a.db") as storage:
        assert storage.database.connection.execute("SELECT count(*) FROM lexical_docs").fetchone() == (1_200,)
    assert found(tmp_path / "a.db", "777") == ["k777"]


def test_an_interrupted_indexing_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled_by_stock(tmp_path / "a.db", 1_200)
    monkeypatch.setattr("everthread.storage.sqlite.index.index_words", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        open_storage(f"sqlite:///{tmp_path}/a.db")
    monkeypatch.undo()

    assert len(found(tmp_path / "a.db", "tea")) == 1_200


def test_an_index_of_older_rules_is_built_again_with_the_same_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_storage(f"sqlite:///{tmp_path}/a.db") as storage:
        storage.store.put(SPACE, "k", {"a": "tea", "b": "milk"}, index=["a"])
        storage.store.put(SPACE, "not", {"a": "tea"}, index=False)
    monkeypatch.setattr(index, "VERSION", index.VERSION + 1)

    assert (found(tmp_path / "a.db", "tea"), found(tmp_path / "a.db", "milk")) == (["k"], [])


def test_an_index_of_newer_rules_is_refused(tmp_path: Path) -> None:
    found(tmp_path / "a.db", "tea")
    with closing(sqlite3.connect(tmp_path / "a.db")) as database, database:
        database.execute("UPDATE lexical_meta SET value = 999 WHERE name = 'version'")

    with pytest.raises(StorageError, match="version 999"):
        found(tmp_path / "a.db", "tea")


@pytest.mark.parametrize("count", [0, 1_200])
def test_several_may_open_a_database_at_once(tmp_path: Path, count: int) -> None:
    if count:
        filled_by_stock(tmp_path / "a.db", count)
    else:
        with closing(sqlite3.connect(tmp_path / "a.db")) as database:
            database.execute("PRAGMA journal_mode=WAL")

    with ThreadPoolExecutor(4) as pool:  # each with a connection of its own, as processes have
        counts = list(pool.map(lambda _: len(found(tmp_path / "a.db", "tea")), range(4)))

    assert counts == [count] * 4


def test_everthread_opens_stores_that_search(tmp_path: Path) -> None:
    with open_storage(f"sqlite:///{tmp_path}/a.db") as storage:
        storage.store.put(namespaces.transcript("t"), "m", {"text": "To Porto", "user_id": "ada", "date": "2025-03-04"})

        assert storage.store.search(namespaces.transcript("t"), query="porto")[0].key == "m"
        assert storage.store.search(namespaces.transcript("t"), query="ada zeppelin") == []


async def test_everthread_opens_async_stores_that_search(tmp_path: Path) -> None:
    async with open_storage(f"sqlite:///{tmp_path}/a.db") as storage:
        await storage.store.aput(namespaces.transcript("t"), "m", {"text": "To Porto"})

        assert [item.key for item in await storage.store.asearch(("threads",), query="porto")] == ["m"]


@pytest.mark.parametrize(
    ("namespace", "value", "paths"),
    [
        (namespaces.ledger("t"), {}, False),
        (namespaces.summaries("t"), {}, False),
        (namespaces.removed("t"), {"previous": "m"}, False),
        (namespaces.SESSIONS, {}, False),
        (namespaces.transcript("t"), {"text": "x"}, ["text", "date"]),
        (namespaces.notes("u"), {}, None),
        (("docs", "ledger"), {}, None),
    ],
)
def test_everthread_says_which_of_its_records_are_searched(
    namespace: tuple[str, ...], value: dict[str, str], paths: object
) -> None:
    assert text_fields(namespace, value) == paths


@pytest.mark.parametrize("content", ["To Porto", [{"type": "text", "text": "To Porto"}]])
def test_a_message_without_a_text_field_is_found_by_its_content(tmp_path: Path, content: object) -> None:
    with open_storage("sqlite://") as storage:
        value = {"message": {"type": "human", "data": {"content": content, "id": "zeppelin"}}, "user_id": "ada"}
        storage.store.put(namespaces.transcript("t"), "m", value)

        found = [
            len(storage.store.search(("threads",), query=query)) for query in ("porto", "zeppelin", "ada", "human")
        ]

    assert found == [1, 0, 0, 0]


class Beginning(sqlite3.Connection):
    """Finds another process beginning the log, once."""

    refusals = 1

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        if sql == "PRAGMA journal_mode=WAL" and self.refusals:
            self.refusals -= 1
            error = sqlite3.OperationalError("database is locked")
            error.sqlite_errorcode = sqlite3.SQLITE_BUSY
            raise error
        return super().execute(sql, *values)


def test_a_new_file_that_another_process_opens_at_the_same_moment_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Beginning))
    monkeypatch.setattr("everthread.storage.sqlite.database.time.sleep", waits.append)

    with open_storage(f"sqlite:///{tmp_path}/a.db") as storage:
        mode = storage.database.connection.execute("PRAGMA journal_mode").fetchone()

    assert (mode, len(waits)) == (("wal",), 1)
