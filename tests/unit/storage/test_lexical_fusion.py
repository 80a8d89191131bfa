"""Words and embeddings together."""

import sqlite3
from contextlib import closing
from typing import Any

import pytest
from langgraph.store.base import SearchItem, SearchOp

from everthread.storage.lexical import LexicalSqliteStore
from everthread.storage.lexical.stores import _fused, _widened

_MEANINGS = (("tea", "beverage"), ("hotel", "lodging"), ("car", "vehicle"))


def embed(texts: list[str]) -> list[list[float]]:
    """Give words of one meaning one dimension."""
    return [[0.01 + sum(word in text for word in words) for words in _MEANINGS] for text in texts]


def items(names: str) -> list[SearchItem]:
    return [SearchItem(("n",), name, {}, "2025-01-01", "2025-01-01", score=9.0) for name in names]


def test_a_page_of_two_rankings_follows_the_fusion() -> None:
    op = SearchOp(("n",), query="x", limit=2, offset=1)

    page = _fused(op, items("abc"), [items("dca")])  # a: 1/61 + 1/63, c: 1/63 + 1/62, d: 1/61, b: 1/62

    assert [item.key for item in page] == ["c", "d"]
    assert page[0].score == pytest.approx(1 / 63 + 1 / 62)


def test_both_rankings_are_asked_for_more_than_a_page() -> None:
    wide = _widened(SearchOp(("n",), query="x", limit=80, offset=30))

    assert (wide.limit, wide.offset, wide.query) == (220, 0, "x")


@pytest.mark.skipif(
    not hasattr(sqlite3.Connection, "enable_load_extension"), reason="this Python cannot load the sqlite-vec extension"
)
def test_a_store_with_embeddings_finds_by_words_and_by_meaning() -> None:
    index: Any = {"dims": 3, "embed": embed, "text_fields": ["text"]}
    with closing(sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)) as connection:
        store = LexicalSqliteStore(connection, index=index)
        for key, text in {"a": "tea please", "b": "a beverage", "c": "a hotel in Porto"}.items():
            store.put(("n",), key, {"text": text})

        assert [item.key for item in store.search(("n",), query="tea", limit=2)] == ["a", "b"]
