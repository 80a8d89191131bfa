"""Postgres: what a URL may say, how it fails, and locks that die with their session."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from langchain_core.messages import HumanMessage
from langgraph.store.postgres import PostgresStore

from everthread import Context, build_graph, open_storage
from everthread.errors import SettingsError, StorageError, ThreadBusyError
from everthread.models.scripted import ScriptedModel
from everthread.state import Agent
from everthread.storage.erasure import erase, held
from everthread.storage.open import Storage
from everthread.storage.postgres import erasing
from everthread.storage.postgres.location import locate_postgres
from everthread.storage.postgres.locks import lock_number
from postgres_server import end_sessions
from sql import sql

pytestmark = pytest.mark.postgres

AGENT = Agent(name="test", title="Test", instructions="Be brief.")
CONFIG: Any = {"configurable": {"thread_id": "t"}}


@pytest.fixture
def storage(postgres_url: str) -> Iterator[Storage]:
    with open_storage(postgres_url, lock_timeout_seconds=0) as opened:
        yield opened


@pytest.fixture
def other(postgres_url: str, storage: Storage) -> Iterator[Storage]:
    """The same database, as another worker opens it."""
    with open_storage(postgres_url, lock_timeout_seconds=0) as opened:
        yield opened


def graph_of(storage: Storage, *replies: str) -> Any:
    return build_graph(AGENT, model=ScriptedModel([*replies]), summarizer="offline", storage=storage)


async def test_a_thread_goes_on_from_sync_to_async_and_in_another_worker(storage: Storage, other: Storage) -> None:
    graph_of(storage, "One.").invoke({"messages": "Hello."}, CONFIG, context=Context(user_id="u"))
    await graph_of(storage, "Two.").ainvoke({"messages": "And?"}, CONFIG, context=Context(user_id="u"))

    state = await graph_of(other).aget_state(CONFIG)

    assert [message.text for message in state.values["messages"]] == ["Hello.", "One.", "And?", "Two."]


async def test_threads_run_side_by_side(storage: Storage) -> None:
    graph = graph_of(storage, *["Yes."] * 24)

    async def talk(thread: int) -> list[str]:
        config: Any = {"configurable": {"thread_id": f"t{thread}"}}
        for turn in range(3):
            await graph.ainvoke({"messages": HumanMessage(f"q{turn}")}, config, context=Context(user_id="u"))
        return [message.text for message in (await graph.aget_state(config)).values["messages"]]

    found = await asyncio.gather(*map(talk, range(8)))

    assert found == [["q0", "Yes.", "q1", "Yes.", "q2", "Yes."]] * 8


@pytest.mark.parametrize("character", ["\x00", "\ufdd0", "\ufdd00", "\\u0000"])
def test_the_store_keeps_characters_that_jsonb_refuses(storage: Storage, character: str) -> None:
    value = {"text": f"tea {character} milk", f"k{character}": [character]}
    storage.store.put(("a",), f"k{character}", value)

    found = storage.store.get(("a",), f"k{character}")

    assert found is not None
    assert found.value == value
    assert [item.value for item in storage.store.search(("a",), query="milk")] == [value]


def test_one_run_of_all_workers_holds_a_thread(storage: Storage, other: Storage) -> None:
    with storage.locks.hold("t"):
        for locks in (storage.locks, other.locks):
            with pytest.raises(ThreadBusyError, match="thread 't' is busy"), locks.hold("t"):
                pass
        with other.locks.hold("another"):
            pass

    with other.locks.hold("t"):
        pass


def test_a_lock_is_free_when_its_session_ends(postgres_url: str, storage: Storage, other: Storage) -> None:
    hold = storage.locks.hold("t")
    with hold:
        end_sessions(postgres_url)

        with other.locks.hold("t"):
            pass


def test_a_run_that_lost_its_lock_saves_nothing_more(postgres_url: str, storage: Storage, other: Storage) -> None:
    storage.store.put(("a",), "k", {"n": 1})
    with storage.locks.hold("t"):
        end_sessions(postgres_url)

        with pytest.raises(StorageError, match="the lock of thread 't' was lost"):
            storage.store.put(("a",), "k", {"n": 2})

    found = other.store.get(("a",), "k")
    assert found is not None
    assert found.value == {"n": 1}


async def test_a_wait_that_is_cancelled_leaves_no_lock(postgres_url: str, storage: Storage, other: Storage) -> None:
    with open_storage(postgres_url, lock_timeout_seconds=60) as patient, storage.locks.hold("t"):

        async def wait() -> None:
            async with patient.locks.hold("t"):
                pass

        task = asyncio.create_task(wait())
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        storage.locks.hold("other")

    with other.locks.hold("t"):
        pass


def test_reads_go_on_after_all_connections_were_cut(postgres_url: str, storage: Storage) -> None:
    storage.store.put(("a",), "k", {"n": 1})
    end_sessions(postgres_url)

    assert storage.store.get(("a",), "k") is not None


def test_transactions_may_each_have_another_connection(postgres_url: str) -> None:
    with open_storage(postgres_url, pgbouncer=True, direct_url=postgres_url) as storage:
        graph_of(storage, "One.").invoke({"messages": "Hello."}, CONFIG, context=Context(user_id="u"))
        storage.store.put(("a",), "k", {"text": "green tea"})
        storage.store.put(("a",), "gone", {"text": "black tea"})
        storage.store.delete(("a",), "gone")

        assert [item.key for item in storage.store.search(("a",), query="tea")] == ["k"]
        assert sql(storage.database, "SELECT count(*) FROM everthread_changes") == [(0,)]
        assert sql(storage.database, "SELECT count(*) FROM pg_prepared_statements") == [(0,)]


def test_what_another_store_writes_is_found(postgres_url: str, storage: Storage) -> None:
    storage.store.put(("a",), "k", {"text": "green tea"})
    with PostgresStore.from_conn_string(stock_url(postgres_url)) as stock:
        stock.put(("a",), "k", {"text": "black coffee"})
        stock.put(("a",), "new", {"text": "coffee cake"})

    assert [item.key for item in storage.store.search(("a",), query="tea")] == []
    assert {item.key for item in storage.store.search(("a",), query="coffee")} == {"k", "new"}


def stock_url(url: str) -> str:
    """Return the same database for LangGraph's own store, which knows no `schema`."""
    return f"{url.partition('?')[0]}?options=-c%20search_path%3D{locate_postgres(url).schema}"


def test_many_workers_may_open_an_empty_database_at_once(postgres_url: str) -> None:
    def opened(_: int) -> str:
        with open_storage(postgres_url) as storage:
            return type(storage).__name__

    with ThreadPoolExecutor(6) as pool:
        assert [*pool.map(opened, range(6))] == ["Storage"] * 6


def test_a_worker_waits_while_another_one_makes_the_tables(postgres_url: str) -> None:
    location = locate_postgres(postgres_url)
    with ThreadPoolExecutor(1) as pool, psycopg.connect(postgres_url.partition("?")[0], autocommit=True) as other:
        other.execute(f"CREATE SCHEMA {location.schema}".encode())
        other.execute("SELECT pg_advisory_lock(%s)", (lock_number(str(location.schema), "\x00set-up"),))
        other.execute(f"CREATE TABLE {location.schema}.checkpoints (half text)".encode())
        opening = pool.submit(lambda: open_storage(postgres_url).close())
        waits = "SELECT 1 FROM pg_stat_activity WHERE query LIKE 'SELECT pg_try_advisory_lock%%' AND pid <> %s"
        while not opening.done() and not other.execute(waits, (other.info.backend_pid,)).fetchone():
            pass
        other.execute(f"DROP TABLE {location.schema}.checkpoints".encode())
        other.execute("SELECT pg_advisory_unlock_all()")
        opening.result()


def test_a_database_of_a_newer_version_is_refused(postgres_url: str, storage: Storage) -> None:
    sql(storage.database, "UPDATE everthread SET value = '99' WHERE key = 'format'")

    with pytest.raises(StorageError, match="made by a newer everthread"):
        open_storage(postgres_url)


def test_a_table_of_another_program_is_left_alone(postgres_url: str) -> None:
    schema = locate_postgres(postgres_url).schema
    with psycopg.connect(postgres_url.partition("?")[0], autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}".encode())
        connection.execute(f"CREATE TABLE {schema}.store (goods text)".encode())

    with pytest.raises(StorageError, match=r"`store` at .* belongs to another program"):
        open_storage(postgres_url)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("postgresql://u:se@cret@127.0.0.1:port/d", "is not understood"),
        ("postgresql://u:s3cret@127.0.0.1:1/d", "Connection refused"),
        ("postgresql://u:s3cret@127.0.0.1:1/d?schema=a-b", "`schema` is 'a-b'"),
        ("postgresql://u:s3cret@127.0.0.1:1/d?pool_size=no", "`pool_size` is 'no'"),
        ("postgresql://u:s3cret@127.0.0.1:1/d?pgbouncer=1", "add `direct_url"),
        ("postgresql://u:s3cret@127.0.0.1:1/d?nonsense=1", "unknown parameter 'nonsense'"),
        ("postgresql://u:my?s3cret=1@127.0.0.1:1/d", "is not understood"),
        ("postgresql://u:my?s3cret=1&more=2@127.0.0.1:1/d", "is not understood"),
    ],
)
def test_a_url_that_does_not_work_is_refused_without_its_password(url: str, reason: str) -> None:
    with pytest.raises((SettingsError, StorageError), match=reason) as raised:
        open_storage(url)

    assert "cret" not in str(raised.value)


@pytest.mark.parametrize("name", ["pool_size", "statement_timeout"])
def test_a_number_too_large_for_a_float_is_refused(name: str) -> None:
    with pytest.raises(SettingsError, match=f"`{name}` is 1000.*; use a number of at least"):
        open_storage("postgresql://127.0.0.1:1/d", **{name: 10**400})  # type: ignore[arg-type] # one of them


def test_a_password_is_in_no_text_of_a_storage(postgres: str) -> None:
    location = locate_postgres(postgres.replace("postgres@", "postgres:s3cret@"))

    assert "s3cret" not in repr(location)
    assert "s3cret" in location.conninfo()


def test_an_item_that_is_put_without_words_leaves_the_index(storage: Storage) -> None:
    space = ("notes",)
    storage.store.put(space, "k", {"text": "harbour"})

    storage.store.put(space, "k", {"text": "harbour, at night"}, index=False)

    assert storage.store.search(space, query="harbour") == []
    assert sql(storage.database, "SELECT count(*) FROM everthread_spaces") == [(0,)]


def test_a_vacuum_may_take_longer_than_a_statement(postgres_url: str) -> None:
    with open_storage(postgres_url, statement_timeout=1) as storage:
        database: Any = storage.database
        database.outside("DO $$ BEGIN ASSERT current_setting('statement_timeout') = '0'; END $$")


@pytest.mark.parametrize("name", ["everthread_words_ccnew", "everthread_words_ccnew1", "everthread_words_ccold"])
def test_an_erasure_removes_an_index_that_another_one_left_half_built(name: str, storage: Storage) -> None:
    graph_of(storage, "Noted.").invoke({"messages": "I am vegan."}, CONFIG, context=Context(user_id="u"))
    sql(storage.database, f"CREATE INDEX {name} ON everthread_docs USING gin (words)")

    erase(storage, user_id="u")

    assert sql(storage.database, f"SELECT to_regclass('{name}')") == [(None,)]


def test_users_may_be_erased_at_once(storage: Storage, other: Storage) -> None:
    users = [f"u{number}" for number in range(4)]
    for user in users:
        config: Any = {"configurable": {"thread_id": f"t-{user}"}}
        graph_of(storage, "Noted.").invoke({"messages": "I am vegan."}, config, context=Context(user_id=user))

    with ThreadPoolExecutor(4) as workers:
        done = [*workers.map(lambda user: erase(other if user == "u0" else storage, user_id=user), users)]

    assert [receipt.left for receipt in done] == [()] * 4


def test_what_an_erasure_would_take_is_counted_during_another_one(
    storage: Storage, other: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph_of(storage, "Noted.").invoke({"messages": "I am vegan."}, CONFIG, context=Context(user_id="u"))
    monkeypatch.setattr(erasing, "_WAIT_SECONDS", 0)

    with storage.eraser.alone():
        assert held(other, user_id="u")["sessions"] == 1


def test_an_erasure_that_waits_in_vain_says_for_what(
    storage: Storage, other: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph_of(storage, "Noted.").invoke({"messages": "I am vegan."}, CONFIG, context=Context(user_id="u"))
    monkeypatch.setattr(erasing, "_WAIT_SECONDS", 0)

    with storage.eraser.alone(), pytest.raises(ThreadBusyError, match="another erasure in this database"):
        erase(other, user_id="u")
