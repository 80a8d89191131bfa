"""Search by words on Postgres: how rare a word is comes from a sample, and the ranking is that of SQLite."""

from collections.abc import Iterator
from typing import Any

import pytest
from langgraph.store.base import BaseStore, PutOp

from everthread import open_storage
from everthread.storage import candidates
from everthread.storage.candidates import Spaces
from everthread.storage.open import Storage
from everthread.storage.postgres import index
from everthread.storage.postgres.index import PostgresIndex
from sql import sql

pytestmark = pytest.mark.postgres

SPACE = ("threads", "t", "transcript")
ITEMS = 1_600
QUERY = "alpha beta gamma7 delta3"


@pytest.fixture
def storage(postgres_url: str) -> Iterator[Storage]:
    with open_storage(postgres_url) as opened:
        yield opened


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a namespace be large from 200 items on, and a word frequent from 300."""
    monkeypatch.setattr(index, "_LARGE", 200)
    monkeypatch.setattr(index, "_SAMPLED", 4)
    monkeypatch.setattr(candidates, "PROBE", 40)
    monkeypatch.setattr(candidates, "READ", 300)


def say(store: BaseStore) -> None:
    texts = (f"alpha {'beta' * (n % 8 == 0)} gamma{n % 100} delta{n % 400} {'filler ' * (n % 9)}" for n in range(ITEMS))
    store.batch([PutOp(SPACE, f"m{number:05}", {"text": text}) for number, text in enumerate(texts)])


def answers(store: BaseStore, query: str = QUERY) -> list[tuple[str, Any]]:
    return [(item.key, round(item.score or 0, 9)) for item in store.search(SPACE, query=query, limit=12)]


@pytest.mark.usefixtures("large")
def test_a_sample_tells_how_rare_a_word_is(storage: Storage) -> None:
    say(storage.store)
    words = PostgresIndex(storage.database)
    spaces = Spaces((1,), ITEMS, ITEMS * 8, 1, ITEMS)

    probes = storage.database.read(words.probe, spaces, ["alpha", "beta", "gamma7"])

    for one, holders in zip(probes, (ITEMS, ITEMS // 8, ITEMS // 100), strict=True):
        assert holders / 2 <= one.holders <= holders * 2


@pytest.mark.usefixtures("large")
def test_a_word_of_most_items_is_not_read_whole(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    say(storage.store)
    read: list[int] = []
    items = PostgresIndex.items

    def counting(*args: Any, **more: Any) -> Any:
        answer = items(*args, **more)
        read.extend(map(len, answer))
        return answer

    monkeypatch.setattr(PostgresIndex, "items", counting)
    answers(storage.store)

    assert sum(read) < ITEMS / 2


def test_a_large_namespace_ranks_as_on_sqlite(storage: Storage, request: pytest.FixtureRequest) -> None:
    with open_storage("sqlite://") as lite:
        say(lite.store)
        expected = answers(lite.store)
    request.getfixturevalue("large")
    say(storage.store)

    assert answers(storage.store) == expected


def test_an_index_of_an_older_version_is_built_again(postgres_url: str, storage: Storage) -> None:
    say(storage.store)
    found = answers(storage.store)
    sql(storage.database, "DELETE FROM everthread_docs")
    sql(storage.database, "UPDATE everthread SET value = '1' WHERE key = 'index'")

    with open_storage(postgres_url) as again:
        assert answers(again.store) == found
