"""A thread is its first user's from before its first checkpoint, and nothing of anybody else enters it."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.types import Command, interrupt

from conversation import call
from everthread import Context, build_graph, open_storage
from everthread.errors import NotFoundError, SettingsError, UnreadableError
from everthread.graph.agent import pipeline
from everthread.models.scripted import ScriptedModel
from everthread.state import Agent, namespaces
from everthread.storage.erasure import erase
from everthread.storage.open import Storage

CONFIG: Any = {"configurable": {"thread_id": "t"}}
ANN, EVE = Context(user_id="ann"), Context(user_id="eve")
APPROVED: list[str] = []


@tool
def approve(what: str) -> str:
    """Ask the user."""
    APPROVED.append(f"{what}: {interrupt({'what': what})}")
    return APPROVED[-1]


AGENT = Agent(name="test", title="Test", instructions="Be brief.", tools=[approve])


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[Storage]:
    with open_storage(f"sqlite:///{tmp_path}/a.db") as opened:
        yield opened


def graph_of(storage: Storage, *replies: Any) -> tuple[Any, ScriptedModel]:
    model = ScriptedModel(list(replies))
    return build_graph(AGENT, model=model, summarizer="offline", storage=storage), model


def dies(graph: Any, message: Any, steps: int) -> None:
    """Run the first steps of a turn of Ann's: its input is saved, it is applied, a node has run."""
    parts = graph.stream({"messages": [message]}, CONFIG, context=ANN, stream_mode="checkpoints", durability="sync")
    for _ in range(steps):
        next(parts)
    parts.close()


@pytest.mark.parametrize("is_guarded", [True, False])
def test_a_thread_whose_record_does_not_say_whose_it_is_is_run_by_nobody(storage: Storage, is_guarded: bool) -> None:
    model = ScriptedModel([])
    bare = pipeline(AGENT, model=model).compile(checkpointer=storage.checkpointer, store=storage.store)
    graph: Any = storage.guard(bare) if is_guarded else bare
    storage.store.put(namespaces.SESSIONS, "t", {"turns": 1}, index=False)

    with pytest.raises(UnreadableError, match="does not say whose the thread is"):
        graph.invoke({"messages": "hello"}, CONFIG, context=ANN)


@pytest.mark.parametrize(
    ("message", "steps"),
    [("my secret", 1), *((HumanMessage("my secret", id="mine"), steps) for steps in (1, 2, 3))],
    ids=["saved without an id", "saved", "applied", "opened"],
)
def test_a_thread_whose_first_run_died_is_not_taken_over(storage: Storage, message: Any, steps: int) -> None:
    graph, model = graph_of(storage, "hello", "hello")
    dies(graph, message, steps)

    with pytest.raises(SettingsError, match="belongs to another user"):
        graph.invoke({"messages": "and what did she say?"}, CONFIG, context=EVE)

    assert [one.text for one in graph.invoke({"messages": "I am back"}, CONFIG, context=ANN)["messages"][:2]] == [
        "my secret",
        "I am back",
    ]
    assert not any("she say" in one.text for prompt in model.prompts for one in prompt)


def test_what_another_user_says_never_enters_the_thread(storage: Storage) -> None:
    graph, model = graph_of(storage, "one", "two")
    graph.invoke({"messages": "first"}, CONFIG, context=ANN)
    with pytest.raises(SettingsError, match="belongs to another user"):
        graph.invoke({"messages": "planted"}, CONFIG, context=EVE)

    graph.invoke({"messages": "second"}, CONFIG, context=ANN)

    assert [one.text for one in model.prompts[-1][1:]] == ["first", "one", "second"]


@pytest.mark.parametrize("given", [Command(resume="yes"), None])
def test_another_user_cannot_answer_an_approval(storage: Storage, given: Any) -> None:
    APPROVED.clear()
    graph, _ = graph_of(storage, AIMessage("", tool_calls=[call("approve", "c", what="Paris")]), "booked")
    graph.invoke({"messages": "book it"}, CONFIG, context=ANN)

    with pytest.raises(SettingsError, match="belongs to another user"):
        graph.invoke(given, CONFIG, context=EVE)

    assert APPROVED == []
    assert graph.invoke(Command(resume="no"), CONFIG, context=ANN)["messages"][-1].text == "booked"


async def test_the_async_flavour_refuses_too(tmp_path: Path) -> None:
    async with open_storage(f"sqlite:///{tmp_path}/a.db") as storage:
        graph, model = graph_of(storage, "one", "two")
        await graph.ainvoke({"messages": "first"}, CONFIG, context=ANN)
        with pytest.raises(SettingsError, match="belongs to another user"):
            await graph.ainvoke({"messages": "planted"}, CONFIG, context=EVE)
        await graph.ainvoke({"messages": "second"}, CONFIG, context=ANN)

    assert [one.text for one in model.prompts[-1][1:]] == ["first", "one", "second"]


def test_forgetting_a_user_reaches_a_thread_whose_first_run_died(storage: Storage, tmp_path: Path) -> None:
    graph, _ = graph_of(storage, "never")
    dies(graph, "my secret is Marmelade-77", 1)

    assert erase(storage, user_id="ann").is_verified

    assert b"Marmelade-77" not in (tmp_path / "a.db").read_bytes()
    with pytest.raises(NotFoundError):
        erase(storage, user_id="ann")


def test_a_thread_of_a_plain_graph_becomes_the_first_users(storage: Storage) -> None:
    graph, _ = graph_of(storage, "hello")
    graph.update_state(CONFIG, {"messages": "from elsewhere"})
    graph.invoke({"messages": "hi"}, CONFIG, context=ANN)

    with pytest.raises(SettingsError, match="belongs to another user"):
        graph.invoke({"messages": "hi"}, CONFIG, context=EVE)


def test_a_context_of_the_apps_own_names_the_user(storage: Storage) -> None:
    graph, _ = graph_of(storage, "hello")
    graph.invoke({"messages": "hi"}, CONFIG, context=SimpleNamespace(user_id="ann", tenant="acme"))

    with pytest.raises(SettingsError, match="belongs to another user than 'eve'"):
        graph.invoke({"messages": "hi"}, CONFIG, context=SimpleNamespace(user_id="eve"))


@pytest.mark.parametrize("context", ["ann", 5, SimpleNamespace(tenant="acme")], ids=["text", "number", "object"])
def test_a_context_that_names_no_user_is_refused(storage: Storage, context: Any) -> None:
    graph, _ = graph_of(storage, "never")

    with pytest.raises(SettingsError, match="names no user"):
        graph.invoke({"messages": "hi"}, CONFIG, context=context)
    assert storage.store.get(namespaces.SESSIONS, "t") is None
