"""The lexical store: what a search finds, and that the index stays true."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.base import BaseStore, PutOp
from langgraph.store.sqlite import SqliteStore

from everthread import open_storage
from everthread.errors import SettingsError
from everthread.memory.text.words import index_words
from everthread.storage import candidates
from everthread.storage.sqlite.store import SqliteSearchStore

SPACE = ("threads", "t", "transcript")


@pytest.fixture
def store() -> Iterator[SqliteSearchStore]:
    with opened() as store:
        yield store


@contextmanager
def opened(path: Path | None = None) -> Iterator[SqliteSearchStore]:
    with open_storage(f"sqlite:///{path}" if path else "sqlite://") as storage:
        yield storage.store


def say(store: BaseStore, *texts: str, space: tuple[str, ...] = SPACE) -> None:
    store.batch([PutOp(space, f"m{number}", {"text": text}) for number, text in enumerate(texts)])


def keys(store: BaseStore, query: str, space: tuple[str, ...] = SPACE, **more: Any) -> list[str]:
    return [item.key for item in store.search(space, query=query, **more)]


def entries(store: SqliteSearchStore) -> list[str]:
    """Return all words that the index holds, read back from FTS5 itself."""
    store.database.connection.execute(
        "CREATE VIRTUAL TABLE IF NOT EXISTS temp.words USING fts5vocab(main, lexical_index, row)"
    )
    return [row[0] for row in store.database.connection.execute("SELECT term FROM temp.words")]


def test_the_best_match_comes_first_with_the_highest_score(store: SqliteSearchStore) -> None:
    say(store, "The hotel in Lisbon was full.", "Book a hotel in Porto.", "A table for two.")

    found = store.search(SPACE, query="hotel in Porto")

    assert [item.key for item in found] == ["m1", "m0"]
    assert found[0].score is not None
    assert found[1].score is not None
    assert found[0].score > found[1].score > 0
    assert found[0].value == {"text": "Book a hotel in Porto."}


@pytest.mark.parametrize("query", [None, "", "  \n", "?!…", '"', "\x00", "\ud800", "🛫"])
def test_a_query_without_words_is_no_query(store: SqliteSearchStore, query: str | None) -> None:
    say(store, "one", "two", "three")

    assert len(store.search(SPACE, query=query)) == 3


@pytest.mark.parametrize(
    "query", ["*", "a*", "a AND", "NEAR(", "text:fox", "-fox", "^fox", '"fox', "fox) OR (", "a" * 100_000]
)
def test_operators_are_text(store: SqliteSearchStore, query: str) -> None:
    say(store, "the fox", "nothing else")

    found = keys(store, query)

    assert found == (["m0"] if "fox" in query else found)


def test_a_word_with_a_star_is_no_prefix(store: SqliteSearchStore) -> None:
    say(store, "airport", "air")

    assert keys(store, "air*") == ["m1"]


def test_any_string_is_a_legal_query() -> None:
    with opened() as store:
        say(store, "some text", "AND OR NOT")

        @given(st.text(st.characters(), max_size=40) | st.text("\"*()^:-+{}[] ANDORNEAR\x00'_²", max_size=40))
        def search(query: str) -> None:
            assert len(store.search(SPACE, query=query)) <= 2

        search()


@pytest.mark.parametrize("query", ["word " * 20_000, " ".join(f"w{n}" for n in range(20_000)), "東京都" * 30_000])
def test_a_very_long_query_is_legal(store: SqliteSearchStore, query: str) -> None:
    say(store, "word w7 東京", "other")

    assert keys(store, query)[:1] in (["m0"], [])


@pytest.mark.parametrize(
    "query", ["zurich", "ZÜRICH", "tokyo", "東京", "京", "June 5", "2024-06-05", "5 June 2024", "June 2024"]
)
def test_scripts_diacritics_and_dates_are_found(store: SqliteSearchStore, query: str) -> None:
    store.put(SPACE, "a", {"text": "Zürich → Tōkyō 東京駅", "date": "2024-06-05T09:00:00+00:00"})
    store.put(SPACE, "b", {"text": "Berlin", "date": "2023-01-01"})

    assert keys(store, query) == ["a"]


def test_namespaces_match_by_whole_labels(store: SqliteSearchStore) -> None:
    for space in (
        ("users", "1"),
        ("users", "10"),
        ("users", "1x"),
        ("users", "1", "notes"),
        ("users", "1-"),
        ("Users", "1"),
    ):
        store.put(space, ".".join(space), {"text": "tea"})

    assert sorted(keys(store, "tea", ("users", "1"))) == ["users.1", "users.1.notes"]
    assert len(keys(store, "tea", ())) == 6


@pytest.mark.parametrize("prefix", [("users",), ()])
def test_a_prefix_over_many_namespaces_is_searched(store: SqliteSearchStore, prefix: tuple[str, ...]) -> None:
    store.batch([PutOp(("users", f"u{n}"), "k", {"text": f"tea {n}"}) for n in range(60)])
    store.put(("usersx", "u"), "k", {"text": "tea coffee"})

    assert len(keys(store, "tea", ("users",), limit=100)) == 60
    assert store.search(prefix, query="tea 42")[0].namespace == ("users", "u42")


def test_the_weight_of_a_word_is_that_of_its_namespace(store: SqliteSearchStore) -> None:
    say(store, "visa rare", "visa common", "visa common", "visa", space=("a",))
    before = [item.score for item in store.search(("a",), query="visa rare")]

    say(store, *["rare"] * 200, space=("b",))

    assert [item.score for item in store.search(("a",), query="visa rare")] == before


def test_a_filter_counts_before_the_limit(store: SqliteSearchStore) -> None:
    store.batch(
        [PutOp(SPACE, f"k{n:03}", {"text": "tea", "n": n, "who": "eve" if n % 50 else "ada"}) for n in range(500)]
    )

    found = store.search(SPACE, query="tea", filter={"who": "ada", "n": {"$gte": 100}}, limit=5)

    assert sorted(item.value["n"] for item in found) == [250, 300, 350, 400, 450]


def test_a_filter_reaches_items_behind_thousands_of_better_ones(store: SqliteSearchStore) -> None:
    store.put(SPACE, "old", {"text": "tea " + "and so on and on " * 30, "who": "ada"})
    store.batch([PutOp(SPACE, f"k{n}", {"text": "tea"}) for n in range(3_000)])

    assert keys(store, "tea", filter={"who": "ada"}) == ["old"]


def test_a_filter_may_name_a_list(store: SqliteSearchStore) -> None:
    store.put(SPACE, "a", {"text": "tea", "tags": ["x", "y"]})
    store.put(SPACE, "b", {"text": "tea", "tags": ["x"]})

    assert keys(store, "tea", filter={"tags": ["x", "y"]}) == ["a"]


def test_pages_follow_each_other(store: SqliteSearchStore) -> None:
    say(store, *(f"tea {'x ' * (n % 7)}" for n in range(30)))

    whole = keys(store, "tea", limit=100)

    assert [key for page in range(0, 30, 7) for key in keys(store, "tea", limit=7, offset=page)] == whole
    assert keys(store, "tea", limit=7, offset=30) == []
    assert keys(store, "tea", limit=0) == []


def test_frequent_words_do_not_hide_a_rare_one(store: SqliteSearchStore) -> None:
    texts = ["what did you say about it and when"] * 3_000
    texts[17] = "you said it was the zeppelin and that is what it was about " + "and so on " * 40

    say(store, *texts)

    assert keys(store, "what did you say about the zeppelin and when")[0] == "m17"


def test_a_large_namespace_ranks_like_one_that_is_read_whole(
    store: SqliteSearchStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    say(store, *(f"alpha{n % 3} beta{n % 40} gamma{n % 700} {'filler ' * (n % 9)}" for n in range(4_000)))
    query = "alpha1 beta7 gamma47"
    found = keys(store, query, limit=10)
    for name in ("PROBE", "READ", "MOST_RANKED"):
        monkeypatch.setattr(candidates, name, 1 << 40)

    assert found == keys(store, query, limit=10)


@pytest.fixture
def few_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a word be frequent from 50 items on."""
    for name, bound in (("PROBE", 8), ("READ", 50)):
        monkeypatch.setattr(candidates, name, bound)


def answers(store: SqliteSearchStore, query: str) -> list[tuple[str, float | None]]:
    return [(item.key, item.score) for item in store.search(SPACE, query=query, limit=5)]


@pytest.mark.usefixtures("few_entries")
def test_a_frequent_word_tells_apart_the_items_of_a_rare_one(store: SqliteSearchStore) -> None:
    texts = ["tea and cake"] * 400
    texts[10:40:10] = ["zeppelin and cake", "zeppelin and tea", "zeppelin and cake"]

    say(store, *texts)

    assert keys(store, "zeppelin tea")[0] == "m20"


@pytest.mark.usefixtures("few_entries")
def test_a_rare_word_of_long_ago_is_read_whole(store: SqliteSearchStore) -> None:
    say(store, *("tea and porto" if number < 20 else "tea and cake" for number in range(400)))

    assert set(keys(store, "tea porto", limit=20)) == {f"m{number}" for number in range(20)}


def test_a_long_query_over_many_items_is_answered(store: SqliteSearchStore) -> None:
    say(store, *(f"word{number % 90} tea" for number in range(5_000)))

    assert keys(store, "tea " + " ".join(f"word{number}" for number in range(60)), limit=3)


@pytest.mark.parametrize(
    ("index", "found"), [(None, {"one", "two"}), (False, set()), (["a"], {"one"}), (["b.c"], {"two"}), ([], set())]
)
def test_put_says_which_text_is_indexed(store: SqliteSearchStore, index: Any, found: set[str]) -> None:
    store.put(("docs",), "k", {"a": "one", "b": {"c": "two"}}, index=index)

    assert {word for word in ("one", "two") if keys(store, word, ("docs",))} == found


def test_a_changed_item_is_found_by_its_new_text_only(store: SqliteSearchStore) -> None:
    store.put(SPACE, "k", {"text": "coffee"})
    store.put(SPACE, "k", {"text": "tea"})

    assert (keys(store, "coffee"), keys(store, "tea")) == ([], ["k"])


def test_a_deleted_item_leaves_no_word(store: SqliteSearchStore) -> None:
    store.put(SPACE, "k", {"text": "my secret tea tea", "date": "2025-01-02"})
    store.delete(SPACE, "k")
    store.settle()

    assert entries(store) == []
    assert [
        store.database.connection.execute(f"SELECT count(*) FROM lexical_{t}").fetchone()[0]
        for t in ("docs", "spaces", "changes")
    ] == [0] * 3


def test_expired_items_leave_the_index() -> None:
    with opened() as store:
        store.put(SPACE, "k", {"text": "tea"}, ttl=1)
        store.database.connection.execute("UPDATE store SET expires_at = '2001-01-01'")

        assert store.sweep_ttl() == 1
        assert store.database.connection.execute("SELECT count(*) FROM lexical_docs").fetchone()[0] == 0


@pytest.mark.parametrize(("operator", "found"), [("$lt", ["k"]), ("$gt", []), ("$eq", [])])
def test_a_filter_may_name_a_number_too_large_for_a_float(
    store: SqliteSearchStore, operator: str, found: list[str]
) -> None:
    store.put(SPACE, "k", {"n": 1})

    assert [item.key for item in store.search(SPACE, filter={"n": {operator: 10**400}})] == found


@pytest.mark.parametrize(("asked", "found"), [({"limit": 2**63}, ["k"]), ({"offset": 2**63}, [])])
def test_a_search_takes_numbers_over_64_bits(store: SqliteSearchStore, asked: dict[str, int], found: list[str]) -> None:
    store.put(SPACE, "k", {"n": 1})

    assert [item.key for item in store.search(SPACE, **asked)] == found  # type: ignore[arg-type] # one of them


@pytest.mark.parametrize("minutes", [10**400, 2**63, float("inf"), float("nan")])
def test_a_ttl_beyond_every_date_is_refused(store: SqliteSearchStore, minutes: float) -> None:
    with pytest.raises(SettingsError, match="leave it out to keep the item"):
        store.put(SPACE, "k", {"n": 1}, ttl=minutes)


def test_what_a_stock_store_writes_is_found_and_what_it_deletes_is_gone(tmp_path: Path) -> None:
    with opened(tmp_path / "a.db") as store, SqliteStore.from_conn_string(str(tmp_path / "a.db")) as stock:
        say(store, "coffee", "cake", "milk")
        stock.put(SPACE, "m0", {"text": "tea"})
        stock.delete(SPACE, "m1")
        stock.put(SPACE, "new", {"text": "tea and jam"})

        assert sorted(keys(store, "tea")) == ["m0", "new"]
        assert keys(store, "coffee cake") == []
        assert {word.partition("_")[0] for word in entries(store)} == {"tea", "and", "jam", "milk"}


def test_a_stock_store_that_writes_again_and_again_leaves_nothing_behind(tmp_path: Path) -> None:
    with opened(tmp_path / "a.db") as store, SqliteStore.from_conn_string(str(tmp_path / "a.db")) as stock:
        say(store, "first")
        for text in ("second", "third"):
            stock.put(SPACE, "m0", {"text": text})
        stock.delete(SPACE, "m0")
        stock.put(SPACE, "m0", {"text": "fourth"})

        assert [keys(store, word) for word in ("first", "second", "third", "fourth")] == [[], [], [], ["m0"]]
        assert {word.partition("_")[0] for word in entries(store)} == {"fourth"}


def test_rewriting_by_a_stock_store_keeps_the_paths_of_an_item(tmp_path: Path) -> None:
    with opened(tmp_path / "a.db") as store, SqliteStore.from_conn_string(str(tmp_path / "a.db")) as stock:
        store.put(SPACE, "k", {"a": "one", "b": "two"}, index=["a"])
        stock.put(SPACE, "k", {"a": "three", "b": "four"})

        assert (keys(store, "three"), keys(store, "four")) == (["k"], [])


_STEPS = st.lists(
    st.tuples(st.booleans(), st.sampled_from("ab"), st.sampled_from([None, "tea", "tea milk milk", "東京 2025-03-04"])),
    max_size=12,
)


@given(_STEPS)
def test_the_index_is_what_the_items_say_whoever_wrote_them(steps: list[tuple[bool, str, str | None]]) -> None:
    with opened() as store:
        stock = SqliteStore(store.database.connection)
        for is_ours, key, text in steps:
            writer = store if is_ours else stock
            writer.delete(SPACE, key) if text is None else writer.put(SPACE, key, {"text": text})
        store.search(SPACE, query="anything")

        said = [Counter(index_words([item.value["text"]])) for item in store.search(SPACE)]
        often = {f"{word}²" for words in said for word, count in words.items() if count > 1}
        assert {word.partition("_")[0] for word in entries(store)} == often.union(*said)
        counted = store.database.connection.execute("SELECT sum(docs), sum(words) FROM lexical_spaces").fetchone()
        assert counted == ((len(said), sum(sum(words.values()) for words in said)) if said else (None, None))


def test_a_failed_batch_leaves_the_index_true(store: SqliteSearchStore, monkeypatch: pytest.MonkeyPatch) -> None:
    say(store, "coffee")
    monkeypatch.setattr("everthread.storage.sqlite.index.index_words", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        say(store, "tea")  # LangGraph's store would commit what it did before the error; ours takes it back

    assert (keys(store, "tea"), keys(store, "coffee")) == ([], ["m0"])


def test_a_value_that_is_no_json_has_no_text(store: SqliteSearchStore) -> None:
    say(store, "tea")
    store.database.connection.execute(
        "INSERT INTO store (prefix, key, value) VALUES ('threads.t.transcript', 'x', 'broken')"
    )

    assert keys(store, "tea broken") == ["m0"]
