"""Sessions end and threads are pruned as jobs on Postgres."""

import asyncio
from collections.abc import Iterator

import psycopg
import pytest
from langchain_core.messages import AIMessage

from everthread import Agent, Context, Retention, build_graph, jobs, open_storage
from everthread.cli import main
from everthread.errors import SettingsError, StorageError
from everthread.ledger import events
from everthread.models.scripted import ScriptedModel
from everthread.state import namespaces
from everthread.storage.open import Storage
from everthread.storage.postgres.timers import RETAIN
from everthread.storage.reading import record_of, user_notes

pytestmark = pytest.mark.postgres

AGENT = Agent(name="shop", title="Shop", instructions="Help.")
RULE = "Remember that I am vegetarian."


@pytest.fixture
def storage(postgres_url: str) -> Iterator[Storage]:
    """Open a database whose sessions end at once."""
    with open_storage(postgres_url, end_idle_seconds=0) as opened:
        yield opened


def talk(storage: Storage, thread_id: str = "t-1", user_id: str = "u-1") -> None:
    """Let a user say something lasting."""
    graph = build_graph(AGENT, model=ScriptedModel([AIMessage("Noted.")]), summarizer="offline", storage=storage)
    graph.invoke(
        {"messages": RULE},
        {"configurable": {"thread_id": thread_id}},
        context=Context(user_id=user_id, distillation="turn"),
    )


def is_ended(storage: Storage, thread_id: str = "t-1") -> bool:
    """Tell whether all turns of a thread are consolidated."""
    record = record_of(storage.store, thread_id) or {}
    return bool(record.get("consolidated_turns") == record.get("turns"))


def waiting(storage: Storage) -> set[str]:
    """Return the threads whose timer is set."""
    assert storage.timers is not None
    return storage.timers.waiting()


async def work(storage: Storage) -> None:
    """Do what is due."""
    await jobs.work(storage, is_once=True)


async def test_an_idle_session_ends_and_its_notes_last(storage: Storage) -> None:
    await asyncio.to_thread(talk, storage)
    await work(storage)
    long_term, session = user_notes(storage.store, "u-1")
    assert is_ended(storage)
    assert [len(long_term), len(session)] == [1, 0]
    assert not waiting(storage)


async def test_a_session_that_goes_on_has_its_timer_set_again(postgres_url: str) -> None:
    with open_storage(postgres_url, end_idle_seconds=3_600) as storage:
        await asyncio.to_thread(talk, storage)
        with psycopg.connect(storage.timers.conninfo, autocommit=True) as database:  # type: ignore[union-attr]
            database.execute("UPDATE procrastinate_jobs SET scheduled_at = now()")
        await work(storage)
        assert not is_ended(storage)
        assert waiting(storage) == {"t-1"}


def test_a_session_has_one_timer_however_many_turns_it_has(storage: Storage) -> None:
    for _ in range(3):
        talk(storage)
    assert waiting(storage) == {"t-1"}


async def test_a_session_that_has_ended_begins_again_with_a_timer(storage: Storage) -> None:
    await asyncio.to_thread(talk, storage)
    await work(storage)
    await asyncio.to_thread(talk, storage)
    assert waiting(storage) == {"t-1"}


async def test_the_timer_of_an_erased_thread_does_nothing(storage: Storage) -> None:
    await asyncio.to_thread(talk, storage)
    storage.store.delete(namespaces.SESSIONS, "t-1")
    await work(storage)
    assert record_of(storage.store, "t-1") is None
    assert not waiting(storage)


async def test_a_worker_sets_the_timers_that_an_app_did_not_set(postgres_url: str, storage: Storage) -> None:
    with open_storage(postgres_url) as without:
        await asyncio.to_thread(talk, without)
    assert not waiting(storage)
    await work(storage)
    assert is_ended(storage)


async def test_workers_at_once_end_each_session_once(postgres_url: str, storage: Storage) -> None:
    threads = [f"t-{number}" for number in range(6)]
    for thread_id in threads:
        await asyncio.to_thread(talk, storage, thread_id)
    with open_storage(postgres_url, end_idle_seconds=0) as other:
        await asyncio.gather(work(storage), work(other))
    ends = [[one.event for one in events(storage.store, thread)].count("consolidated") for thread in threads]
    assert ends == [1] * 6


async def test_the_job_of_a_killed_worker_is_taken_over(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    await asyncio.to_thread(talk, storage)
    with psycopg.connect(storage.timers.conninfo, autocommit=True) as database:  # type: ignore[union-attr]
        database.execute("INSERT INTO procrastinate_workers DEFAULT VALUES")
        database.execute(
            "UPDATE procrastinate_jobs SET status = 'doing', worker_id = (SELECT max(id) FROM procrastinate_workers)"
        )
        database.execute("UPDATE procrastinate_workers SET last_heartbeat = now() - interval '1 hour'")
    await work(storage)
    assert is_ended(storage)


async def test_a_thread_that_is_in_use_is_looked_at_later(postgres_url: str, storage: Storage) -> None:
    await asyncio.to_thread(talk, storage)
    with open_storage(postgres_url) as other, other.locks.hold("t-1"):
        await work(storage)
    assert not is_ended(storage)
    assert waiting(storage) == {"t-1"}


def test_a_turn_does_not_fail_when_no_timer_can_be_set(storage: Storage, caplog: pytest.LogCaptureFixture) -> None:
    with psycopg.connect(storage.timers.conninfo, autocommit=True) as database:  # type: ignore[union-attr]
        database.execute("DROP TABLE procrastinate_jobs CASCADE")
    talk(storage)
    assert "no timer was set for the session of thread 't-1'" in caplog.text


def test_no_user_is_named_in_a_job(storage: Storage) -> None:
    talk(storage, user_id="somebody@example.com")
    assert storage.timers is not None
    storage.timers.ask_for_end("t-1", "somebody@example.com", 0)
    with psycopg.connect(storage.timers.conninfo) as database:
        rows = database.execute("SELECT j::text FROM procrastinate_jobs j").fetchall()
    assert len(rows) == 2
    assert "somebody" not in str(rows)


@pytest.mark.parametrize("comment", ["", "jobs of billing, version 1.2", "print jobs"])
def test_a_schema_of_another_program_is_left_alone(postgres_url: str, comment: str) -> None:
    schema = postgres_url.partition("schema=")[2].partition("&")[0] + "_jobs"
    with psycopg.connect(postgres_url.partition("?")[0], autocommit=True) as database:
        database.execute(f'CREATE SCHEMA "{schema}"'.encode())
        database.execute(f'CREATE TABLE "{schema}".theirs ()'.encode())
        database.execute(f"COMMENT ON SCHEMA \"{schema}\" IS '{comment}'".encode())
        with pytest.raises(StorageError, match="belongs to another program"):
            open_storage(postgres_url, end_idle_seconds=1)
        assert database.execute("SELECT to_regclass(%s)", (f"{schema}.theirs",)).fetchone() != (None,)


def test_the_command_does_what_is_due(postgres_url: str, storage: Storage, capsys: pytest.CaptureFixture[str]) -> None:
    talk(storage)
    assert main(["worker", "--database", postgres_url, "--idle", "1s", "--once"]) == 0
    assert "sessions end after 1s" in capsys.readouterr().err


def test_jobs_are_refused_on_sqlite(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["worker", "--database", "sqlite:///a.db"]) == 2
    assert "use `everthread sweep" in capsys.readouterr().err
    with pytest.raises(SettingsError, match="end_idle_seconds"):
        open_storage("sqlite://", end_idle_seconds=1)


async def test_a_worker_deletes_what_is_kept_no_longer(postgres_url: str) -> None:
    with open_storage(postgres_url, end_idle_seconds=3_600, retention=Retention(idle_days=30)) as storage:
        await asyncio.to_thread(talk, storage)
        record = record_of(storage.store, "t-1") or {}
        long_ago = {**record, "last_activity": "2020-01-01T00:00:00+00:00"}
        storage.store.put(namespaces.SESSIONS, "t-1", long_ago, index=False)
        await work(storage)
        assert record_of(storage.store, "t-1") is None
        assert len(user_notes(storage.store, "u-1")[0]) == 1


async def test_retention_is_seen_to_once_a_day(postgres_url: str) -> None:
    with open_storage(postgres_url, end_idle_seconds=3_600, retention=Retention(idle_days=30)) as storage:
        for _ in range(2):
            await work(storage)
        with psycopg.connect(storage.timers.conninfo) as database:  # type: ignore[union-attr]
            rows = database.execute(
                "SELECT status::text, scheduled_at > now() + interval '22 hours' FROM procrastinate_jobs"
            ).fetchall()
        assert rows == [("todo", True)]


async def test_retention_comes_again_soon_for_a_thread_that_was_in_use(postgres_url: str) -> None:
    with open_storage(postgres_url, end_idle_seconds=3_600, retention=Retention(idle_days=30)) as storage:
        await asyncio.to_thread(talk, storage)
        record = record_of(storage.store, "t-1") or {}
        long_ago = {**record, "last_activity": "2020-01-01T00:00:00+00:00"}
        storage.store.put(namespaces.SESSIONS, "t-1", long_ago, index=False)
        with storage.locks.hold("t-1"):
            await work(storage)
        assert record_of(storage.store, "t-1") is not None
        with psycopg.connect(storage.timers.conninfo) as database:  # type: ignore[union-attr]
            soon = database.execute(
                "SELECT scheduled_at < now() + interval '2 minutes' FROM procrastinate_jobs WHERE task_name = %s",
                (RETAIN,),
            ).fetchall()
        assert soon == [(True,)]
