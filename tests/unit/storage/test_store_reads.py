"""Reads by name answer what LangGraph's own store answers."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langgraph.store.base import GetOp, InvalidNamespaceError, Op, PutOp, SearchOp
from langgraph.store.sqlite import SqliteStore

from everthread import open_storage
from everthread.storage.sqlite.store import SqliteSearchStore

LABELS = st.sampled_from(["a", "ab", "a*", "[a]", "a?", "a-b", "a!", "A", "ä"])
NAMESPACES = st.lists(LABELS, min_size=1, max_size=2).map(tuple)
KEYS = st.sampled_from(["1", "2", "x*"])
GETS = st.tuples(NAMESPACES, KEYS).map(lambda told: GetOp(*told))
SEARCHES = st.tuples(st.just(()) | NAMESPACES, st.integers(0, 4), st.integers(0, 2)).map(
    lambda told: SearchOp(told[0], limit=told[1], offset=told[2])
)
READS: st.SearchStrategy[Op] = st.one_of(GETS, SEARCHES)


@pytest.fixture
def stores() -> Iterator[tuple[SqliteSearchStore, SqliteStore]]:
    with open_storage("sqlite://") as storage:
        yield storage.store, SqliteStore(storage.database.connection)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(written=st.lists(st.tuples(NAMESPACES, KEYS), max_size=12), asked=st.lists(READS, min_size=1, max_size=6))
def test_a_batch_of_reads_is_answered_as_langgraph_does(
    stores: tuple[SqliteSearchStore, SqliteStore],
    written: list[tuple[tuple[str, ...], str]],
    asked: list[Op],
) -> None:
    ours, stock = stores
    ours.database.connection.execute("DELETE FROM store")
    ours.batch([PutOp(namespace, key, {"of": [*namespace, key]}) for namespace, key in written])
    for number, (rowid,) in enumerate(ours.database.connection.execute("SELECT rowid FROM store").fetchall()):
        # Each at another time: of one time any order is right.
        ours.database.connection.execute(
            "UPDATE store SET updated_at = ? WHERE rowid = ?", (f"2026-01-01 00:00:{number % 60:02d}", rowid)
        )

    assert ours.batch(asked) == stock.batch(asked)


def test_an_item_asked_for_twice_is_there_twice(stores: tuple[SqliteSearchStore, SqliteStore]) -> None:
    ours, _ = stores
    ours.put(("a",), "1", {"n": 1})

    first, second, other = ours.batch([GetOp(("a",), "1"), GetOp(("a",), "1"), GetOp(("a",), "2")])

    assert first == second
    assert other is None


def test_reads_of_more_namespaces_than_a_statement_takes_are_answered(
    stores: tuple[SqliteSearchStore, SqliteStore],
) -> None:
    ours, _ = stores
    namespaces = [("n", str(number)) for number in range(600)]
    ours.batch([PutOp(namespace, "1", {"n": 1}) for namespace in namespaces])

    assert None not in ours.batch([GetOp(namespace, "1") for namespace in namespaces])


def test_more_items_than_a_statement_takes_are_answered(stores: tuple[SqliteSearchStore, SqliteStore]) -> None:
    ours, _ = stores

    assert ours.batch([GetOp(("a",), str(number)) for number in range(40_000)]) == [None] * 40_000


@pytest.mark.parametrize("read", [GetOp(("a.b",), "1"), SearchOp(("a.b",))], ids=["item", "search"])
def test_a_namespace_with_a_period_in_a_label_is_refused(
    stores: tuple[SqliteSearchStore, SqliteStore], read: Op
) -> None:
    ours, _ = stores

    with pytest.raises(InvalidNamespaceError):
        ours.batch([read])


def test_nothing_asked_is_nothing_answered(stores: tuple[SqliteSearchStore, SqliteStore]) -> None:
    ours, _ = stores

    assert ours.batch([]) == []
