"""Inputs that a graph cannot take: refused before anything is saved, and given up where one was saved."""

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage, RemoveMessage
from langgraph.errors import InvalidUpdateError
from langgraph.types import Overwrite
from pydantic import BaseModel

from everthread import check_threads
from everthread.errors import SettingsError
from everthread.graph.guard import GuardedGraph
from everthread.graph.run import is_own
from everthread.ledger import events
from everthread.models.scripted import ScriptedModel
from everthread.state import namespaces
from everthread.storage.open import Storage
from everthread.storage.pruning import dial_metadata
from small_agent import CONFIG, graph_of

NO_INPUTS = ["hi", "", [], [HumanMessage("hi")], HumanMessage("hi"), [("user", "hi")], ("user", "hi"), 42, b"hi"]


def stock_agent(storage: Storage, *replies: str) -> GuardedGraph:
    model = ScriptedModel(replies=[*replies])
    agent: Any = create_agent(model, [], checkpointer=storage.checkpointer, store=storage.store)
    return storage.guard(agent)


def keep(graph: GuardedGraph, sent: Any) -> None:
    """Save an input as the guard once did, before it read what it was given."""
    metadata = dial_metadata(None, is_own=is_own(graph.graph))
    with pytest.raises(InvalidUpdateError):
        graph.graph.invoke(sent, {**CONFIG, "metadata": metadata})


@pytest.fixture(params=["build_graph", "create_agent"])
def graph(request: pytest.FixtureRequest, storage: Storage) -> GuardedGraph:
    if request.param == "build_graph":
        return graph_of(storage, "hello", "again")[0]
    return stock_agent(storage, "hello", "again")


@pytest.mark.parametrize("sent", NO_INPUTS, ids=repr)
def test_what_is_no_dict_is_refused_before_anything_is_saved(graph: GuardedGraph, storage: Storage, sent: Any) -> None:
    with pytest.raises(SettingsError, match=r'must be a dict such as \{"messages": "a text"\}, got'):
        graph.invoke(sent, CONFIG)

    assert storage.store.get(namespaces.SESSIONS, "t") is None
    assert storage.checkpointer.get_tuple(CONFIG) is None


async def test_every_kind_of_run_refuses_it(graph: GuardedGraph) -> None:
    with pytest.raises(SettingsError, match="got the text 'hi'"):
        list(graph.stream("hi", CONFIG))
    with pytest.raises(SettingsError, match="got the text 'hi'"):
        await graph.ainvoke("hi", CONFIG)
    with pytest.raises(SettingsError, match="got the text 'hi'"):
        [part async for part in graph.astream("hi", CONFIG)]


@pytest.mark.parametrize("sent", ["yes", 1, None])
def test_a_wish_to_end_the_session_is_true_or_false(storage: Storage, sent: Any) -> None:
    with pytest.raises(SettingsError, match="`end_session` must be True or False"):
        graph_of(storage)[0].invoke({"end_session": sent}, CONFIG)


def test_what_a_reducer_refuses_is_refused_before_it_is_saved(storage: Storage) -> None:
    graph = stock_agent(storage, "hello")

    with pytest.raises(SettingsError, match=r"`messages` of the input cannot be added to the state: .*doesn't exist"):
        graph.invoke({"messages": [RemoveMessage(id="nobody")]}, CONFIG)

    assert storage.store.get(namespaces.SESSIONS, "t") is None


def test_an_object_with_the_keys_of_the_state_is_read_like_a_dict(storage: Storage) -> None:
    class Sent(BaseModel):
        messages: list[Any]

    result = stock_agent(storage, "hello").invoke(Sent(messages=["hi"]), CONFIG)

    assert [message.text for message in result["messages"]] == ["hi", "hello"]
    assert all(message.id for message in result["messages"])


@pytest.mark.parametrize("was_run", [False, True])
@pytest.mark.parametrize("later", [{"messages": "next"}, None, {"end_session": True}], ids=repr)
def test_a_thread_that_kept_such_an_input_goes_on(storage: Storage, later: Any, was_run: bool) -> None:
    graph, _ = graph_of(storage, "one", "two", "three")
    if was_run:
        graph.invoke({"messages": "hi"}, CONFIG)
    keep(graph, "hi")

    graph.invoke(later, CONFIG)
    result = graph.invoke({"messages": "next"}, CONFIG)

    assert result["messages"][-1].text in {"one", "two", "three"}
    assert [one.event for one in events(storage.store, "t")].count("fallback_used") == 1


async def test_it_goes_on_under_asyncio_too_and_says_so(storage: Storage, caplog: pytest.LogCaptureFixture) -> None:
    graph = stock_agent(storage, "hello")
    keep(graph, [("user", "hi")])

    result = await graph.ainvoke({"messages": "next"}, CONFIG)

    assert [message.text for message in result["messages"]] == ["next", "hello"]
    assert "left out: the input that thread 't' was left with" in caplog.text


@pytest.mark.parametrize("saved", ["first", Overwrite([HumanMessage("first")])], ids=repr)
def test_a_saved_input_that_the_graph_can_take_is_not_given_up(storage: Storage, saved: Any) -> None:
    graph = stock_agent(storage, "hello")
    next(graph.graph.stream({"messages": saved}, CONFIG, stream_mode="checkpoints", durability="sync"))

    result = graph.invoke({"messages": "second"}, CONFIG)

    assert [message.text for message in result["messages"]] == ["first", "second", "hello"]


def test_a_check_of_threads_says_what_would_be_left_out(storage: Storage) -> None:
    graph, _ = graph_of(storage, "hello")
    graph.invoke({"messages": "hi"}, CONFIG)
    keep(graph, "hi")

    checked = check_threads(storage, [graph]).checked[0]

    assert checked.can_continue
    assert [one.kind for one in checked.problems] == ["input"]
