"""A run reads the state before it begins, unless nothing has happened on its thread since the last run ended."""

import operator
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command

from conversation import call
from everthread.errors import SettingsError, StorageError
from everthread.graph.guard import GuardedGraph
from everthread.storage.checkpointer import Checkpointer
from everthread.storage.open import Storage
from small_agent import CONFIG, ask, calls, graph_of


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Callable[[GuardedGraph], list[str]]:
    """Return what lists the threads whose state a guard reads."""

    def watched(graph: GuardedGraph) -> list[str]:
        threads: list[str] = []
        read = graph.graph.get_state

        def get_state(config: Any, **options: Any) -> Any:
            threads.append(config["configurable"]["thread_id"])
            return read(config, **options)

        monkeypatch.setattr(graph.graph, "get_state", get_state)
        return threads

    return watched


def test_a_turn_behind_a_finished_one_reads_no_state_first(storage: Storage, looks: Any) -> None:
    graph, model = graph_of(storage, "one", "two")
    ask(graph, "hi")
    seen = looks(graph)

    result = ask(graph, "and again")

    assert seen == []
    assert [message.text for message in result["messages"]] == ["hi", "one", "and again", "two"]
    assert [message.text for message in model.prompts[1][1:]] == ["hi", "one", "and again"]


async def test_neither_does_an_async_one(storage: Storage, looks: Any) -> None:
    graph, _ = graph_of(storage, "one", "two")
    await graph.ainvoke({"messages": "hi"}, CONFIG)
    seen = looks(graph)

    result = await graph.ainvoke({"messages": "and again"}, CONFIG)

    assert seen == []
    assert [message.text for message in result["messages"]] == ["hi", "one", "and again", "two"]


def test_a_message_with_an_id_of_its_senders_is_looked_for(storage: Storage, looks: Any) -> None:
    graph, model = graph_of(storage, "one")
    sent = {"messages": [HumanMessage("hi", id="x")]}
    graph.invoke(sent, CONFIG)
    seen = looks(graph)

    again = graph.invoke(sent, CONFIG)

    assert seen == ["t"]
    assert again["messages"][-1].text == "one"
    assert len(model.prompts) == 1


@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_turn_that_waits_for_an_approval_is_no_rest(storage: Storage, looks: Any, is_streamed: bool) -> None:
    graph, _ = graph_of(storage, "one", calls(call("approve", "c", what="a")), "not bought", "done")
    ask(graph, "hi")
    if is_streamed:
        list(graph.stream({"messages": "buy it"}, CONFIG, stream_mode="messages"))
    else:
        ask(graph, "buy it")
    seen = looks(graph)

    ask(graph, "rather not")

    assert seen
    assert graph.get_state(CONFIG).tasks == ()


def test_a_thread_is_at_rest_again_when_the_approval_is_given(storage: Storage, looks: Any) -> None:
    graph, _ = graph_of(storage, calls(call("approve", "c", what="a")), "bought", "bye")
    ask(graph, "buy it")
    graph.invoke(Command(resume=True), CONFIG)
    seen = looks(graph)

    assert ask(graph, "thanks")["messages"][-1].text == "bye"
    assert seen == []


def test_an_edit_between_two_turns_is_seen(storage: Storage, looks: Any) -> None:
    graph, model = graph_of(storage, "one", "two")
    ask(graph, "hi")
    graph.update_state(CONFIG, {"messages": [AIMessage("edited", id="e")]}, as_node="model")
    seen = looks(graph)

    ask(graph, "and again")

    assert seen
    assert "edited" in [message.text for message in model.prompts[1]]


def test_a_turn_of_another_guard_that_failed_is_seen(storage: Storage) -> None:
    ours, _ = graph_of(storage, "one", "three")
    theirs, _ = graph_of(storage, calls(call("look", "c", n=1)), ValueError("down"))
    ask(ours, "hi")
    with pytest.raises(Exception, match="down"):
        ask(theirs, "look it up")

    result = ask(ours, "look it up")

    texts = [message.text for message in result["messages"]]
    assert texts.count("look it up") == 1, "the turn goes on where the other run left it"
    assert texts[-1] == "three"


def test_a_run_that_stops_at_a_breakpoint_is_no_rest(storage: Storage, looks: Any) -> None:
    graph, _ = graph_of(storage, "one", "two", "three")
    ask(graph, "hi")
    graph.invoke({"messages": "and again"}, CONFIG, interrupt_before=["model"])
    seen = looks(graph)

    ask(graph, "hello?")

    assert seen
    assert graph.get_state(CONFIG).tasks == ()


def test_an_answer_from_the_record_says_nothing_of_a_turn_that_was_cut_off(storage: Storage, looks: Any) -> None:
    graph, _ = graph_of(storage, "one", calls(call("look", "c", n=1)), "three", "four")
    graph.invoke({"messages": [HumanMessage("hi", id="a")]}, CONFIG)
    stream = graph.stream({"messages": [HumanMessage("look", id="b")]}, CONFIG, stream_mode="updates")
    next(part for part in stream if "model" in part)
    stream.close()
    assert graph.invoke({"messages": [HumanMessage("hi", id="a")]}, CONFIG)["messages"][-1].text == "one"
    seen = looks(graph)

    ask(graph, "other")

    assert seen
    again = graph.invoke({"messages": [HumanMessage("look", id="b")]}, CONFIG)
    assert again["messages"][-1].text == "four", "the question that was left is asked anew"


def test_a_breakpoint_inside_a_subgraph_is_no_rest(storage: Storage, looks: Any) -> None:
    def say(state: MessagesState) -> Any:
        return {"messages": [AIMessage("said")]}

    inner = StateGraph(MessagesState)
    inner.add_sequence([("first", say), ("second", say)]).add_edge(START, "first")
    outer = StateGraph(MessagesState)
    outer.add_node("inner", inner.compile(interrupt_before=["second"])).add_edge(START, "inner")
    graph = storage.guard(outer.compile(checkpointer=storage.checkpointer, store=storage.store))
    config: Any = {"configurable": {"thread_id": "t", "user_id": "u"}}
    graph.invoke({"messages": "hi"}, config)
    assert graph.get_state(config).next == ("inner",)
    seen = looks(graph)

    graph.invoke({"messages": "and again"}, config)

    assert seen


def test_a_key_of_another_graph_is_tried_on_its_reducer_first(storage: Storage) -> None:
    class Counting(MessagesState):
        end_session: Annotated[int, operator.add]

    graph = StateGraph(Counting).add_node("say", lambda state: {"messages": [AIMessage("said")]})
    graph.add_edge(START, "say")
    guarded = storage.guard(graph.compile(checkpointer=storage.checkpointer, store=storage.store))
    config: Any = {"configurable": {"thread_id": "t", "user_id": "u"}}
    guarded.invoke({"messages": "hi", "end_session": 1}, config)

    with pytest.raises(SettingsError, match="`end_session` of the input cannot be added"):
        guarded.invoke({"messages": "again", "end_session": "x"}, config)


def test_a_database_that_fails_behind_a_reply_costs_no_reply(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: object, thread_id: str) -> None:
        raise StorageError("database is locked")

    graph, _ = graph_of(storage, "one")
    monkeypatch.setattr(Checkpointer, "head", fails)

    assert ask(graph, "hi")["messages"][-1].text == "one"
