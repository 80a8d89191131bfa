"""Batches of writes and reads: what was written is in the index at once, beside whatever others changed."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.base import BaseStore, GetOp, InvalidNamespaceError, PutOp
from langgraph.store.sqlite import SqliteStore

from everthread import open_storage
from everthread.storage.sqlite.store import SqliteSearchStore

SPACE = ("docs", "t")


@pytest.fixture
def store() -> Iterator[SqliteSearchStore]:
    with opened() as store:
        yield store


@contextmanager
def opened(path: Path | None = None) -> Iterator[SqliteSearchStore]:
    with open_storage(f"sqlite:///{path}" if path else "sqlite://") as storage:
        yield storage.store


def put(key: str, text: str | None, index: Any = None, space: tuple[str, ...] = SPACE) -> PutOp:
    return PutOp(space, key, None if text is None else {"a": text, "b": "other"}, index=index)


def keys(store: BaseStore, query: str, space: tuple[str, ...] = SPACE) -> list[str]:
    return sorted(item.key for item in store.search(space, query=query))


def entries(store: SqliteSearchStore) -> set[str]:
    """Return all words that the index holds without their namespace, read back from FTS5 itself."""
    store.settle()
    execute = store.database.connection.execute
    execute("CREATE VIRTUAL TABLE IF NOT EXISTS temp.words USING fts5vocab(main, lexical_index, row)")
    return {row[0].partition("_")[0] for row in execute("SELECT term FROM temp.words")}


def counts(store: SqliteSearchStore, *tables: str) -> list[int]:
    execute = store.database.connection.execute
    return [execute(f"SELECT count(*) FROM lexical_{table}").fetchone()[0] for table in tables]


def test_a_batch_carries_over_what_others_changed_before_it(tmp_path: Path) -> None:
    with opened(tmp_path / "a.db") as store, SqliteStore.from_conn_string(str(tmp_path / "a.db")) as stock:
        store.batch([put("m0", "coffee"), put("m1", "cake")])
        stock.batch([put("m0", "cocoa"), put("m1", None), put("new", "jam")])
        store.batch([put("m2", "tea")])

        assert counts(store, "changes") == [0]
        assert entries(store) == {"cocoa", "jam", "tea", "other"}


def test_writing_over_what_another_one_just_changed_leaves_only_the_last(tmp_path: Path) -> None:
    with opened(tmp_path / "a.db") as store, SqliteStore.from_conn_string(str(tmp_path / "a.db")) as stock:
        store.batch([put("m0", "coffee")])
        stock.batch([put("m0", "cocoa")])
        store.batch([put("m0", "tea")])

        assert entries(store) == {"tea", "other"}
        assert counts(store, "docs", "changes") == [1, 0]


def test_an_item_that_another_one_made_is_indexed_once(tmp_path: Path) -> None:
    with opened(tmp_path / "a.db") as store, SqliteStore.from_conn_string(str(tmp_path / "a.db")) as stock:
        stock.batch([put("m0", "cocoa")])
        store.batch([put("m0", "tea")])

        assert (keys(store, "tea"), keys(store, "cocoa")) == (["m0"], [])


@pytest.mark.parametrize(
    ("index", "found"), [(None, {"tea", "other"}), (["b"], {"other"}), (False, set()), ([], set())]
)
def test_the_last_put_says_which_text_is_indexed(store: SqliteSearchStore, index: Any, found: set[str]) -> None:
    store.batch([put("k", "tea", ["a"])])
    store.batch([put("k", "tea", index)])

    assert entries(store) == found


def test_of_several_writes_of_a_key_the_last_counts(store: SqliteSearchStore) -> None:
    store.batch([put("k", "coffee"), put("gone", "cake"), put("k", "tea"), put("gone", None)])

    assert entries(store) == {"tea", "other"}
    assert [item.value["a"] for item in store.search(SPACE)] == ["tea"]


def test_deleting_what_never_was_hides_nothing_of_others(tmp_path: Path) -> None:
    with opened(tmp_path / "a.db") as store, SqliteStore.from_conn_string(str(tmp_path / "a.db")) as stock:
        stock.batch([put("m0", "cocoa")])
        store.batch([put("never", None), put("m1", "tea")])

        assert counts(store, "docs", "changes") == [2, 0]


def test_what_is_not_searched_leaves_no_trace_in_the_index(store: SqliteSearchStore) -> None:
    store.batch([put("1", "tea", False, ("threads", "t", "ledger")), put("t", "tea", None, ("sessions",))])

    assert counts(store, "docs", "spaces", "changes") == [0, 0, 0]
    assert len(store.search(("sessions",))) == 1


def test_a_batch_that_fails_leaves_items_and_index_as_they_were(
    store: SqliteSearchStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.batch([put("m0", "coffee")])
    with monkeypatch.context() as broken:
        broken.setattr("everthread.storage.sqlite.index.index_words", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            store.batch([put("m0", None), put("m1", "tea")])

    assert [item.key for item in store.search(SPACE)] == ["m0"]
    assert counts(store, "changes") == [0]
    store.batch([put("m2", "milk")])
    assert entries(store) == {"coffee", "milk", "other"}


def test_a_namespace_that_langgraph_refuses_is_refused_before_anything_is_written(store: SqliteSearchStore) -> None:
    with pytest.raises(InvalidNamespaceError):
        store.batch([put("a", "tea"), put("b", "tea", None, ("a.b",))])

    assert store.search(()) == []


def test_rows_are_those_of_langgraphs_store(store: SqliteSearchStore) -> None:
    columns = (
        "SELECT prefix, key, value, typeof(value), length(expires_at) > 19, expires_at > '2026', ttl_minutes,"
        " length(created_at), length(updated_at) FROM store ORDER BY key"
    )
    rows = []
    with SqliteStore.from_conn_string(":memory:") as stock:
        stock.setup()
        for one, connection in ((store, store.database.connection), (stock, stock.conn)):
            one.batch([put("k", "tea"), PutOp(SPACE, "short", {"a": "東京"}, ttl=30)])
            rows.append(connection.execute(columns).fetchall())

    assert rows[0] == rows[1]


@pytest.mark.parametrize("names", [["m1"], ["m1", "missing", "m0", "m1"], ["missing"]])
def test_reading_by_key_answers_as_langgraphs_store(store: SqliteSearchStore, names: list[str]) -> None:
    store.batch([put("m0", "coffee"), put("m1", "tea")])
    asked = [GetOp(SPACE, name) for name in names]

    assert store.batch(asked) == SqliteStore(store.database.connection).batch(asked)


def test_reading_from_two_namespaces_answers_as_langgraphs_store(store: SqliteSearchStore) -> None:
    store.batch([put("m0", "coffee"), put("m0", "tea", None, ("other",))])
    asked = [GetOp(SPACE, "m0"), GetOp(("other",), "m0")]

    assert store.batch(asked) == SqliteStore(store.database.connection).batch(asked)


_OPERATIONS = st.lists(
    st.builds(
        put,
        st.sampled_from("abc"),
        st.sampled_from([None, "tea", "tea milk milk", "2025-03-04"]),
        st.sampled_from([None, False, ["a"], ["b"]]),
        st.sampled_from([SPACE, ("other",)]),
    ),
    max_size=8,
)


@given(st.lists(_OPERATIONS, max_size=4))
def test_a_batch_leaves_the_same_index_as_its_operations_one_by_one(batches: list[list[PutOp]]) -> None:
    said = []
    for is_together in (True, False):
        with opened() as store:
            for batch in batches:
                for part in [batch] if is_together else [[op] for op in batch]:
                    store.batch(part)
            listed = "SELECT prefix, docs, words FROM lexical_spaces ORDER BY prefix"
            spaces = store.database.connection.execute(listed).fetchall()
            said.append((entries(store), spaces, counts(store, "docs", "changes")))

    assert said[0] == said[1]
