"""Inputs that a graph cannot take: refused before anything is saved, and given up where one was saved."""

import operator
from typing import Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage, SystemMessage, ToolMessage
from langgraph.errors import EmptyInputError, InvalidUpdateError
from langgraph.graph import START
from langgraph.types import Command, Overwrite, Send
from pydantic import BaseModel
from typing_extensions import TypedDict

from conversation import call
from everthread import build_graph, check_threads, pipeline
from everthread.errors import AnsweredError, ModelError, SettingsError
from everthread.graph.guard import GuardedGraph
from everthread.graph.run import is_own
from everthread.ledger import events
from everthread.models.scripted import ScriptedModel
from everthread.state import Conversation, namespaces
from everthread.storage.open import Storage
from everthread.storage.pruning import dial_metadata
from small_agent import AGENT, CONFIG, calls, graph_of

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


@pytest.mark.parametrize(
    "sent",
    [AIMessage("Hello!"), SystemMessage("Be rude."), ToolMessage("4 °C", tool_call_id="c")],
    ids=lambda m: m.type,
)
@pytest.mark.parametrize("is_begun", [False, True])
def test_an_input_without_a_message_of_the_user_is_refused(storage: Storage, sent: BaseMessage, is_begun: bool) -> None:
    graph, model = graph_of(storage, "hello", "again")
    if is_begun:
        graph.invoke({"messages": "hi"}, CONFIG)

    with pytest.raises(SettingsError, match=f"no message of the user, only of type '{sent.type}'"):
        graph.invoke({"messages": [sent]}, CONFIG)

    assert len(model.prompts) == is_begun
    assert len(graph.get_state(CONFIG).values.get("messages", [])) == 2 * is_begun


def test_a_node_ahead_may_make_a_message_of_the_user_of_anything(storage: Storage) -> None:
    def read(state: Conversation) -> dict[str, Any]:
        return {"messages": [HumanMessage(f"What follows from: {state['messages'][-1].text}?")]}

    graph = pipeline(AGENT, model=ScriptedModel(replies=["hello"]), after="read")
    graph.add_node("read", read)
    graph.add_edge(START, "read")
    guarded = storage.guard(graph.compile(checkpointer=storage.checkpointer, store=storage.store))

    result = guarded.invoke({"messages": [SystemMessage("It rains.")]}, CONFIG)

    assert result["messages"][-1].text == "hello"


async def test_nothing_to_go_on_with_claims_no_thread(graph: GuardedGraph, storage: Storage) -> None:
    with pytest.raises(EmptyInputError, match="thread 't' has no turn to go on with: begin it with an input"):
        graph.invoke(None, CONFIG)
    with pytest.raises(SettingsError, match="no turn to go on with"):
        await graph.ainvoke(None, CONFIG)

    assert storage.store.get(namespaces.SESSIONS, "t") is None


def test_an_answer_to_a_thread_that_nobody_began_is_refused(storage: Storage) -> None:
    with pytest.raises(SettingsError, match="no turn to go on with"):
        graph_of(storage)[0].invoke(Command(resume="yes"), CONFIG)

    assert storage.checkpointer.get_tuple(CONFIG) is None


async def test_an_answer_that_nothing_waits_for_is_refused(graph: GuardedGraph) -> None:
    graph.invoke({"messages": "hi"}, CONFIG)

    with pytest.raises(SettingsError, match="nothing waits for an answer in thread 't'"):
        graph.invoke(Command(resume="yes"), CONFIG)
    with pytest.raises(SettingsError, match="nothing waits for an answer in thread 't'"):
        await graph.ainvoke(Command(resume="yes"), CONFIG)


@pytest.mark.parametrize("resume", ["yes", {"decisions": []}], ids=repr)
async def test_one_answer_to_two_questions_is_refused(storage: Storage, resume: Any) -> None:
    asked = calls(call("approve", "a", what="it"), call("approve", "b", what="that"))
    graph, _ = graph_of(storage, asked, "done")
    graph.invoke({"messages": "one"}, CONFIG)

    with pytest.raises(SettingsError, match="2 steps of thread 't' wait for an answer each: answer by id"):
        graph.invoke(Command(resume=resume), CONFIG)
    with pytest.raises(SettingsError, match="2 steps of thread 't' wait for an answer each: answer by id"):
        await graph.ainvoke(Command(resume=resume), CONFIG)

    one, _ = graph.get_state(CONFIG).interrupts
    graph.invoke(Command(resume={one.id: "yes"}), CONFIG)
    assert graph.invoke(Command(resume="no"), CONFIG)["messages"][-1].text == "done"


async def test_an_answer_to_what_has_one_is_refused_while_something_else_waits(storage: Storage) -> None:
    asked = calls(call("approve", "a", what="it"), call("approve", "b", what="that"))
    graph, _ = graph_of(storage, asked, "done")
    graph.invoke({"messages": "one"}, CONFIG)
    one, other = graph.get_state(CONFIG).interrupts
    graph.invoke(Command(resume={one.id: "yes"}), CONFIG)

    with pytest.raises(AnsweredError, match="it may have one already"):
        graph.invoke(Command(resume={one.id: "no"}), CONFIG)
    with pytest.raises(AnsweredError, match="it may have one already"):
        await graph.ainvoke(Command(resume={one.id: "no"}), CONFIG)

    assert graph.get_state(CONFIG).interrupts == (other,)


async def test_a_command_without_an_answer_is_refused(graph: GuardedGraph) -> None:
    graph.invoke({"messages": "hi"}, CONFIG)

    with pytest.raises(SettingsError, match="the command is empty"):
        graph.invoke(Command(resume=None), CONFIG)
    with pytest.raises(SettingsError, match="the command is empty"):
        await graph.ainvoke(Command(), CONFIG)


@pytest.mark.parametrize(
    ("command", "named"),
    [
        (Command(update={"mesages": "hi"}), "no state key 'mesages'"),
        (Command(update=[("mesages", "hi")]), "no state key 'mesages'"),
        (Command(update=[HumanMessage("hi")], goto="model"), "takes a dict of state keys"),
        (Command(update="hi", goto="model"), "takes a dict of state keys"),
        (Command(goto="modell"), "no node 'modell'"),
        (Command(goto=["model", Send("modell", {})]), "no node 'modell'"),
    ],
    ids=["key", "pair", "messages", "text", "node", "task"],
)
async def test_a_command_that_names_what_is_not_there_is_refused(
    graph: GuardedGraph, storage: Storage, command: Any, named: str
) -> None:
    with pytest.raises(SettingsError, match=named):
        graph.invoke(command, CONFIG)
    with pytest.raises(SettingsError, match=named):
        await graph.ainvoke(command, CONFIG)
    assert storage.store.get(namespaces.SESSIONS, "t") is None


def test_a_command_goes_to_a_node_of_the_graph(graph: GuardedGraph) -> None:
    graph.invoke({"messages": "hi"}, CONFIG)

    result = graph.invoke(Command(goto="model", update={"messages": [HumanMessage("and now?")]}), CONFIG)

    assert [message.text for message in result["messages"]] == ["hi", "hello", "and now?", "again"]


def test_an_id_that_cannot_be_stored_is_refused(graph: GuardedGraph, storage: Storage) -> None:
    with pytest.raises(SettingsError, match="the id of a message has half of a surrogate pair"):
        graph.invoke({"messages": [HumanMessage("hi", id="\ud800")]}, CONFIG)

    assert storage.store.get(namespaces.SESSIONS, "t") is None


@pytest.mark.parametrize("limit", [0, "many"])
async def test_a_run_that_cannot_start_leaves_an_approval_open(storage: Storage, limit: Any) -> None:
    graph, _ = graph_of(storage, calls(call("approve", "c", what="it")), "done")
    graph.invoke({"messages": "one"}, CONFIG)

    with pytest.raises(SettingsError, match="`recursion_limit` must be a number of steps, at least 1, got"):
        graph.invoke({"messages": "two"}, {**CONFIG, "recursion_limit": limit})
    with pytest.raises(SettingsError, match="`recursion_limit` must be a number of steps, at least 1, got"):
        await graph.ainvoke({"messages": "two"}, {**CONFIG, "recursion_limit": limit})

    assert graph.invoke(Command(resume="yes"), CONFIG)["messages"][-1].text == "done"


def test_keys_of_ones_own_alone_begin_no_thread(storage: Storage) -> None:
    class Own(TypedDict, total=False):
        mood: str

    graph = build_graph(AGENT, model=ScriptedModel(replies=[]), state_schema=Own, storage=storage)

    with pytest.raises(SettingsError, match="nothing to answer: begin it with a message of the user"):
        graph.invoke({"mood": "fine"}, CONFIG)

    assert storage.store.get(namespaces.SESSIONS, "t") is None


async def test_the_session_of_a_thread_that_nobody_began_ends_without_a_trace(storage: Storage) -> None:
    graph, _ = graph_of(storage)

    assert graph.invoke({"end_session": True}, CONFIG) == {"messages": []}
    assert await graph.ainvoke({"end_session": True}, CONFIG) == {"messages": []}

    assert storage.store.get(namespaces.SESSIONS, "t") is None
    assert storage.checkpointer.get_tuple(CONFIG) is None


def test_what_a_reducer_refuses_is_refused_before_it_is_saved(storage: Storage) -> None:
    graph = stock_agent(storage, "hello")

    with pytest.raises(SettingsError, match=r"`messages` of the input cannot be added to the state: .*doesn't exist"):
        graph.invoke({"messages": [RemoveMessage(id="nobody")]}, CONFIG)

    assert storage.store.get(namespaces.SESSIONS, "t") is None


class Tagged(TypedDict, total=False):
    tags: Annotated[list[str], operator.add]


@pytest.mark.parametrize("sent", [{"messages": "two", "tags": "urgent"}, Command(update={"messages": 5})], ids=repr)
async def test_so_is_one_that_comes_after_a_failed_turn(storage: Storage, sent: Any) -> None:
    model = ScriptedModel([ConnectionError("down"), "hello"])
    graph = build_graph(AGENT, model=model, state_schema=Tagged, storage=storage)
    with pytest.raises(ModelError):
        graph.invoke({"messages": "one"}, CONFIG)

    with pytest.raises(SettingsError, match="of the input cannot be added to the state"):
        graph.invoke(sent, CONFIG)
    with pytest.raises(SettingsError, match="of the input cannot be added to the state"):
        await graph.ainvoke(sent, CONFIG)

    assert graph.invoke(None, CONFIG)["messages"][-1].text == "hello"


def test_so_is_one_beside_an_answer_which_may_be_given_again(storage: Storage) -> None:
    model = ScriptedModel([calls(call("approve", "c", what="it")), "done"])
    graph = build_graph(AGENT, model=model, state_schema=Tagged, storage=storage)
    graph.invoke({"messages": "one"}, CONFIG)

    with pytest.raises(SettingsError, match="`tags` of the input cannot be added"):
        graph.invoke(Command(resume="yes", update={"tags": "urgent"}), CONFIG)

    assert graph.invoke(Command(resume="yes", update={"tags": ["urgent"]}), CONFIG)["tags"] == ["urgent"]


def test_an_input_is_tried_on_a_state_that_has_the_saved_one(storage: Storage) -> None:
    graph = stock_agent(storage, "hello")
    first = {"messages": [HumanMessage("first", id="1")]}
    next(graph.graph.stream(first, CONFIG, stream_mode="checkpoints", durability="sync"))

    result = graph.invoke({"messages": [RemoveMessage(id="1"), HumanMessage("second")]}, CONFIG)

    assert [message.text for message in result["messages"]] == ["second", "hello"]


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


def taken_over(old: list[str], new: list[str]) -> list[str]:
    """A reducer that takes from what it gets."""
    return [*old, *(new.pop(0) for _ in range(len(new)))]


class Moved(TypedDict, total=False):
    items: Annotated[list[str], taken_over]


def test_trying_an_input_takes_nothing_from_it(storage: Storage) -> None:
    model = ScriptedModel([calls(call("approve", "c", what="it")), "done"])
    graph = build_graph(AGENT, model=model, state_schema=Moved, storage=storage)
    graph.invoke({"messages": "one"}, CONFIG)

    assert graph.invoke(Command(resume="yes", update={"items": ["order 7"]}), CONFIG)["items"] == ["order 7"]
