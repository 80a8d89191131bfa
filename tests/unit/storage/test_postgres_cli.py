"""Commands on Postgres: what they show, erase and give back."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from typer.testing import CliRunner

from everthread import Context, build_graph, open_storage
from everthread.agents import travel
from everthread.cli.app import app
from everthread.models.scripted import ScriptedModel
from everthread.state import Note, Source, namespaces
from everthread.storage.erasure import erase
from everthread.storage.open import Storage
from sql import sql

pytestmark = pytest.mark.postgres

CONFIG: Any = {"configurable": {"thread_id": "t"}}


@pytest.fixture
def url(postgres_tables: str) -> Iterator[str]:
    """A database in which two people have talked, and one note of Ada's is left."""
    with open_storage(postgres_tables) as storage:
        for user, thread, said in (("ada", "t", "My code is Zebra-4711."), ("bob", "b", "I like tea.")):
            graph = build_graph(travel, model=ScriptedModel(["Noted.", "Yes."]), summarizer="offline", storage=storage)
            config: Any = {"configurable": {"thread_id": thread}}
            for number, text in enumerate((said, "Really?")):
                message = HumanMessage(text, id=f"{thread}{number}")
                graph.invoke({"messages": [message]}, config, context=Context(user_id=user))
        note = Note(id="n-1", text="The code is Zebra-4711.", date="2026-01-01", sources=(Source(thread_id="t"),))
        storage.store.put(namespaces.notes("ada"), "n-1", note.value())
    return postgres_tables


def run(url: str, *arguments: str) -> str:
    done = CliRunner().invoke(app, [*arguments, "--database", url])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_threads_are_listed(url: str) -> None:
    found = json.loads(run(url, "threads", "--json"))

    assert {one["thread_id"]: one["user_id"] for one in found} == {"t": "ada", "b": "bob"}


def test_a_thread_is_shown(url: str) -> None:
    found = json.loads(run(url, "show", "t", "--json"))

    assert [one["content"] for one in found["messages"]] == ["My code is Zebra-4711.", "Noted.", "Really?", "Yes."]


@pytest.mark.parametrize(
    ("command", "shows"),
    [
        (("why", "code", "--thread", "t"), ""),
        (("threads",), '"ada"'),
        (("notes", "ada"), "The code is Zebra-4711."),
        (("ledger", "t"), ""),
        (("doctor",), "every row can be read"),
        (("sweep", "--idle", "30d"), ""),
    ],
)
def test_commands_work(url: str, command: tuple[str, ...], shows: str) -> None:
    assert shows in run(url, *command, "--json")


def test_a_user_is_exported(url: str) -> None:
    found = json.loads(run(url, "export", "--user", "ada"))

    assert [note["text"] for note in found["notes"]] == ["The code is Zebra-4711."]
    assert [thread["messages_total"] for thread in found["threads"]] == [4]


def test_the_doctor_tells_sizes_and_dead_rows(url: str) -> None:
    checks = {one["name"]: one for one in json.loads(run(url, "doctor", "--json"))["checks"]}

    assert checks["database"]["status"] == "ok"
    assert "dead ones" in checks["table checkpoints"]["detail"]
    assert "sqlite" not in checks


def test_compacting_prunes_and_vacuums(url: str) -> None:
    with open_storage(url) as storage:
        graph = build_graph(travel, model=ScriptedModel(["Yes."] * 4), summarizer="offline", storage=storage)
        for _ in range(4):
            graph.invoke({"messages": "And?"}, CONFIG, context=Context(user_id="ada", keep_checkpoints=None))
    found = json.loads(run(url, "compact", "--yes", "--keep-checkpoints", "1", "--json"))

    assert found["threads"] == 2
    assert found["checkpoints"] > 0
    assert len(json.loads(run(url, "show", "t", "--json"))["messages"]) == 12


def test_a_user_who_is_erased_is_gone_and_nobody_else(url: str) -> None:
    with open_storage(url) as storage:
        receipt = erase(storage, user_id="ada")

        assert receipt.is_verified
        assert receipt.erased["notes"] == 1
        assert receipt.texts > 0
        assert everything(storage, "Zebra-4711") == []
        assert everything(storage, "I like tea.") != []
        assert [item.key for item in storage.store.search((), query="zebra")] == []
    assert len(json.loads(run(url, "show", "b", "--json"))["messages"]) == 4


def test_an_erased_thread_takes_the_notes_that_came_only_from_it(url: str) -> None:
    with open_storage(url) as storage:
        receipt = erase(storage, thread_id="t")

        assert receipt.is_verified
        assert storage.store.get(namespaces.notes("ada"), "n-1") is None


def everything(storage: Storage, text: str) -> list[str]:
    """Return the tables that hold a text, as Postgres itself sees them."""
    tables = sql(storage.database, "SELECT relname FROM pg_stat_user_tables WHERE schemaname = current_schema()")
    like = (f"%{text}%", f"%{text.encode().hex()}%")
    holds = "SELECT 1 FROM {} t WHERE t::text LIKE ? OR t::text LIKE ?"
    return [name for (name,) in tables if sql(storage.database, holds.format(name), *like)]
