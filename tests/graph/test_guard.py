"""Any compiled graph under a guard: one run at a time, by the owner, and each message answered once."""

import asyncio
import gc
import operator
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph, add_messages
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command, Send, interrupt
from typing_extensions import TypedDict

from everthread import Context, open_storage
from everthread.errors import SettingsError, ThreadBusyError
from everthread.graph.guard import GuardedGraph
from everthread.middleware import EverthreadMiddleware
from everthread.models.scripted import ScriptedModel
from everthread.storage.open import Storage

CONFIG: Any = {"configurable": {"thread_id": "t", "user_id": "ann"}}


class Chat(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    seen: Annotated[list[str], operator.add]


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[Storage]:
    with open_storage(f"sqlite:///{tmp_path}/a.db", lock_timeout_seconds=0) as opened:
        yield opened


def answer(state: Chat) -> Chat:
    return {"messages": [AIMessage(f"re: {state['messages'][-1].text}")], "seen": ["answer"]}


def chat(storage: Storage, node: Any = answer) -> GuardedGraph:
    """Guard a graph that knows nothing of Everthread."""
    graph = StateGraph(Chat)
    graph.add_node("answer", node)
    graph.add_edge(START, "answer")
    return storage.guard(graph.compile(checkpointer=storage.checkpointer, store=storage.store, name="chat"))


def say(graph: Any, text: str, name: str | None = None, config: Any = CONFIG) -> list[str]:
    result = graph.invoke({"messages": [HumanMessage(text, id=name)]}, config)
    return [message.text for message in result["messages"]]


def test_a_plain_graph_keeps_its_thread(storage: Storage) -> None:
    graph = chat(storage)
    say(graph, "one")

    assert say(graph, "two") == ["one", "re: one", "two", "re: two"]


def test_what_is_no_compiled_graph_is_refused(storage: Storage) -> None:
    not_compiled: Any = StateGraph(Chat)

    with pytest.raises(SettingsError, match="takes a compiled graph, got StateGraph"):
        storage.guard(not_compiled)


def test_a_graph_that_is_guarded_already_is_refused(storage: Storage) -> None:
    guarded: Any = chat(storage)

    with pytest.raises(SettingsError, match="guarded already"):
        storage.guard(guarded)


def test_a_graph_with_another_checkpointer_is_refused(storage: Storage) -> None:
    with open_storage("sqlite://") as other:
        foreign = chat(other).graph
        with pytest.raises(SettingsError, match="another checkpointer"):
            storage.guard(foreign)


@pytest.mark.parametrize("middleware", [[], [EverthreadMiddleware()]], ids=["bare", "ours"])
def test_a_graph_whose_messages_would_go_to_another_store_is_refused(storage: Storage, middleware: Any) -> None:
    model = ScriptedModel(["hello"])
    agent: Any = create_agent(
        model, [], middleware=middleware, checkpointer=storage.checkpointer, store=InMemoryStore()
    )

    with pytest.raises(SettingsError, match="in another store") if middleware else nullcontext():
        storage.guard(agent)


@pytest.mark.parametrize(
    "named",
    [
        {"config": {"configurable": {"thread_id": "t", "user_id": "eve"}}},
        {"config": {"configurable": {"thread_id": "t"}}, "context": {"user_id": "eve"}},
        {"config": {"configurable": {"thread_id": "t"}}, "context": Context(user_id="eve")},
    ],
    ids=["configurable", "mapping", "object"],
)
def test_another_user_is_refused_however_named(storage: Storage, named: Any) -> None:
    graph = chat(storage)
    say(graph, "one")

    with pytest.raises(SettingsError, match="belongs to another user than 'eve'"):
        graph.invoke({"messages": "planted"}, **named)
    assert [one.text for one in graph.get_state(CONFIG).values["messages"]] == ["one", "re: one"]


async def test_a_namespace_in_the_config_gets_nobody_past_the_guard(storage: Storage) -> None:
    graph = chat(storage)
    say(graph, "one")
    named: Any = {"configurable": {"thread_id": "t", "user_id": "eve", "checkpoint_ns": "chat:1"}}

    with pytest.raises(SettingsError, match="belongs to another user than 'eve'"):
        graph.invoke({"messages": "planted"}, named)
    with pytest.raises(SettingsError, match="belongs to another user than 'eve'"):
        await graph.ainvoke({"messages": "planted"}, named)
    with storage.locks.hold("t"), pytest.raises(ThreadBusyError):
        graph.update_state(named, {"messages": "planted"})
    assert [one.text for one in graph.get_state(CONFIG).values["messages"]] == ["one", "re: one"]


@pytest.mark.parametrize("namespace", ["chat:1", 5])
async def test_a_message_sent_again_under_a_namespace_gets_the_answer_it_has(storage: Storage, namespace: Any) -> None:
    say(chat(storage), "one", "q")
    named: Any = {"configurable": {**CONFIG["configurable"], "checkpoint_ns": namespace}}

    assert say(chat(storage), "one", "q", config=named) == ["one", "re: one"]
    assert (await chat(storage).ainvoke({"messages": "two"}, named))["messages"][-2].text == "two"


def test_a_missing_user_is_named_as_missing(storage: Storage) -> None:
    graph = chat(storage)
    say(graph, "one")

    with pytest.raises(SettingsError, match="this run names none"):
        graph.invoke({"messages": "planted"}, {"configurable": {"thread_id": "t"}})


def test_the_first_user_who_names_himself_owns_a_thread_without_a_user(storage: Storage) -> None:
    graph = chat(storage)
    say(graph, "one", config={"configurable": {"thread_id": "t"}})
    say(graph, "two")

    with pytest.raises(SettingsError, match="another user"):
        say(graph, "three", config={"configurable": {"thread_id": "t", "user_id": "eve"}})


def test_an_unknown_input_is_named(storage: Storage) -> None:
    with pytest.raises(SettingsError, match="no input 'mesages'; send `messages` or `seen`"):
        chat(storage).invoke({"mesages": "hi"}, CONFIG)


def test_a_run_without_a_thread_says_how_to_name_one(storage: Storage) -> None:
    with pytest.raises(SettingsError, match="thread_id"):
        chat(storage).invoke({"messages": "hi"})


def test_a_thread_may_have_the_number_zero(storage: Storage) -> None:
    config: Any = {"configurable": {"thread_id": 0, "user_id": "ann"}}

    assert say(chat(storage), "hi", config=config) == ["hi", "re: hi"]


def test_a_message_that_is_sent_again_gets_its_own_answer_and_runs_nothing(storage: Storage) -> None:
    graph = chat(storage)
    for name in "abc":
        say(graph, name, name)

    assert say(graph, "b", "b") == ["a", "re: a", "b", "re: b"]
    assert graph.get_state(CONFIG).values["seen"] == ["answer"] * 3


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"stream_mode": "values"}, lambda part: part["messages"][-1].text),
        ({"stream_mode": ["values", "updates"]}, lambda part: part[1]["messages"][-1].text),
        ({"stream_mode": "values", "subgraphs": True}, lambda part: part[1]["messages"][-1].text),
        ({"stream_mode": "values", "version": "v2"}, lambda part: part["data"]["messages"][-1].text),
    ],
    ids=["values", "list", "subgraphs", "v2"],
)
def test_the_answer_of_a_message_sent_again_is_streamed_like_any_other(
    storage: Storage, options: Any, expected: Any
) -> None:
    graph = chat(storage)
    for name in "ab":
        say(graph, name, name)

    again = {"messages": [HumanMessage("a", id="a")]}
    (part,) = graph.stream(again, CONFIG, **options)

    assert expected(part) == "re: a"


@pytest.mark.parametrize("mode", ["updates", ["updates", "custom"], None])
@pytest.mark.parametrize("version", ["v1", "v2"])
def test_a_message_sent_again_is_no_update(storage: Storage, version: Any, mode: Any) -> None:
    graph = chat(storage)
    say(graph, "a", "a")

    again = {"messages": [HumanMessage("a", id="a")]}

    assert [*graph.stream(again, CONFIG, stream_mode=mode, version=version)] == []


def test_a_message_sent_again_returns_the_output_that_is_asked_for(storage: Storage) -> None:
    graph = chat(storage)
    say(graph, "a", "a")

    again = {"messages": [HumanMessage("a", id="a")]}
    messages = graph.invoke(again, CONFIG, output_keys="messages")

    assert [one.text for one in messages] == ["a", "re: a"]
    assert graph.invoke(again, CONFIG, output_keys=["seen"]) == {"seen": ["answer"]}


async def test_a_message_sent_again_returns_parts_where_they_are_asked_for(storage: Storage) -> None:
    graph = chat(storage)
    say(graph, "a", "a")

    again = {"messages": [HumanMessage("a", id="a")]}
    (part,) = await graph.ainvoke(again, CONFIG, stream_mode=["values"])

    assert part[1]["messages"][-1].text == "re: a"


def test_messages_get_ids_before_the_graph_has_them(storage: Storage) -> None:
    graph = chat(storage)
    graph.invoke({"messages": ("user", "hi")}, CONFIG)

    assert all(message.id for message in graph.get_state(CONFIG).values["messages"])


def test_a_turn_that_failed_goes_on_when_its_message_is_sent_again(storage: Storage) -> None:
    calls: list[str] = []

    def fails_once(state: Chat) -> Chat:
        calls.append("call")
        if len(calls) == 1:
            raise ConnectionError("down")
        return answer(state)

    graph = chat(storage, fails_once)
    with pytest.raises(ConnectionError):
        say(graph, "a", "a")

    assert say(graph, "a", "a") == ["a", "re: a"]


async def test_a_question_without_an_answer_moves_to_the_end_and_is_answered_once(storage: Storage) -> None:
    def fails_first(state: Chat) -> Chat:
        if len(state["messages"]) == 1:
            raise ConnectionError("down")
        return answer(state)

    graph = chat(storage, fails_first)
    with pytest.raises(ConnectionError):
        say(graph, "a", "a")
    say(graph, "b", "b")

    assert say(graph, "a", "a") == ["b", "re: b", "a", "re: a"]
    again = await graph.ainvoke({"messages": [HumanMessage("a", id="a")]}, CONFIG)

    assert again["messages"][-1].text == "re: a"
    assert len(graph.get_state(CONFIG).values["messages"]) == 4


def test_a_message_that_is_sent_again_passes_no_breakpoint(storage: Storage) -> None:
    builder = StateGraph(Chat)
    builder.add_node("answer", answer)
    builder.add_node("publish", lambda state: {"seen": ["published"]})
    builder.add_edge(START, "answer")
    builder.add_edge("answer", "publish")
    graph = storage.guard(builder.compile(checkpointer=storage.checkpointer, interrupt_before=["publish"]))
    say(graph, "one", "1")

    assert say(graph, "one", "1") == ["one", "re: one"]
    assert graph.get_state(CONFIG).next == ("publish",)


@pytest.mark.parametrize("breakpoint", [{"interrupt_before": ["publish"]}, {"interrupt_after": "*"}], ids=str)
async def test_nor_one_of_its_own_run(storage: Storage, breakpoint: Any) -> None:
    builder = StateGraph(Chat)
    builder.add_node("answer", answer)
    builder.add_node("publish", lambda state: {"seen": ["published"]})
    builder.add_edge(START, "answer")
    builder.add_edge("answer", "publish")
    graph = storage.guard(builder.compile(checkpointer=storage.checkpointer))
    sent = {"messages": [HumanMessage("one", id="1")]}
    graph.invoke(sent, CONFIG, **breakpoint)

    graph.invoke(sent, CONFIG, **breakpoint)
    await graph.ainvoke(sent, CONFIG, **breakpoint)

    assert graph.get_state(CONFIG).next == ("publish",)


def test_breakpoints_of_a_run_do_not_hide_those_of_the_graph(storage: Storage) -> None:
    builder = StateGraph(Chat)
    builder.add_sequence([("answer", answer), ("publish", lambda state: {"seen": ["published"]}), ("end", answer)])
    builder.add_edge(START, "answer")
    graph = storage.guard(builder.compile(checkpointer=storage.checkpointer, interrupt_before=["publish"]))
    sent = {"messages": [HumanMessage("one", id="1")]}
    graph.invoke(sent, CONFIG)

    graph.invoke(sent, CONFIG, interrupt_before=["end"])

    assert graph.get_state(CONFIG).next == ("publish",)


def failing_once(error: Exception, name: str) -> Callable[[Chat], Chat]:
    """Return a node that fails when it is tried first."""
    failures = [error]

    def node(state: Chat) -> Chat:
        if failures:
            raise failures.pop()
        return {"seen": [name]}

    return node


def test_a_turn_that_failed_goes_on_beside_a_breakpoint_behind_a_later_node(storage: Storage) -> None:
    builder = StateGraph(Chat)
    builder.add_sequence([("publish", failing_once(ConnectionError("down"), "published")), ("answer", answer)])
    builder.add_edge(START, "publish")
    graph = storage.guard(builder.compile(checkpointer=storage.checkpointer))
    sent = {"messages": [HumanMessage("one", id="1")]}
    with pytest.raises(ConnectionError):
        graph.invoke(sent, CONFIG, interrupt_after=["answer"])

    graph.invoke(sent, CONFIG, interrupt_after=["answer"])

    assert graph.get_state(CONFIG).next == ()


def test_a_turn_that_failed_elsewhere_goes_on_beside_a_breakpoint(storage: Storage) -> None:
    builder = StateGraph(Chat)
    builder.add_sequence([("answer", answer), ("publish", failing_once(ConnectionError("down"), "published"))])
    builder.add_edge(START, "answer")
    graph = storage.guard(builder.compile(checkpointer=storage.checkpointer, interrupt_before=["answer"]))
    sent = {"messages": [HumanMessage("one", id="1")]}
    graph.invoke(sent, CONFIG)
    with pytest.raises(ConnectionError):
        graph.invoke(None, CONFIG)

    assert graph.invoke(sent, CONFIG)["seen"] == ["answer", "published"]


def fan_out(state: Chat) -> list[Send]:
    return [Send("tool", {"seen": [name]}) for name in ("quick", "asks")]


def tool(state: Chat) -> Chat:
    (name,) = state["seen"]
    result = interrupt("may I?") if name == "asks" else "done"
    return {"messages": [ToolMessage(f"{name}: {result}", tool_call_id=name)], "seen": [name]}


def test_what_comes_after_a_reply_is_done_when_its_message_is_sent_again(storage: Storage) -> None:
    builder = StateGraph(Chat)
    builder.add_sequence([("answer", answer), ("note", failing_once(OSError("killed"), "noted"))])
    builder.add_edge(START, "answer")
    graph = storage.guard(builder.compile(checkpointer=storage.checkpointer))
    with pytest.raises(OSError, match="killed"):
        say(graph, "one", "1")

    assert say(graph, "one", "1") == ["one", "re: one"]
    assert graph.get_state(CONFIG).values["seen"] == ["answer", "noted"]
    assert not graph.get_state(CONFIG).tasks


def test_what_finished_beside_a_pending_approval_survives_a_new_message(storage: Storage) -> None:
    graph = StateGraph(Chat)
    graph.add_node("plan", lambda state: {"seen": ["plan"]})
    graph.add_node("tool", tool)
    graph.add_edge(START, "plan")
    graph.add_conditional_edges("plan", fan_out, ["tool"])
    graph.add_edge("tool", END)
    guarded = storage.guard(graph.compile(checkpointer=storage.checkpointer, store=storage.store))
    guarded.invoke({"messages": "go"}, CONFIG)

    guarded.invoke({"messages": "never mind"}, CONFIG)

    texts = [message.text for message in guarded.get_state(CONFIG).values["messages"]]
    assert texts[:3] == ["go", "quick: done", "never mind"]


def test_a_run_on_a_thread_that_another_one_holds_finds_it_busy(storage: Storage) -> None:
    graph = chat(storage)
    with storage.locks.hold("t"), pytest.raises(ThreadBusyError, match="another run of this process"):
        say(graph, "one")

    assert say(graph, "two") == ["two", "re: two"]


def test_a_run_beside_an_unfinished_stream_of_its_thread_does_not_wait_for_it(storage: Storage) -> None:
    graph = chat(storage)
    first = graph.stream({"messages": "one"}, CONFIG)
    next(first)

    with pytest.raises(SettingsError, match="finish the stream"):
        say(graph, "two")
    first.close()
    assert say(graph, "three")[-1] == "re: three"


async def test_an_abandoned_stream_leaves_its_thread_free(storage: Storage) -> None:
    graph = chat(storage)
    first = graph.astream({"messages": "one"}, CONFIG)
    await anext(first)
    await asyncio.create_task(first.aclose())  # in another context, as the event loop closes what nobody reads

    assert (await graph.ainvoke({"messages": "two"}, CONFIG))["messages"][-1].text == "re: two"


@pytest.mark.parametrize("mode", ["messages", "updates", "values"])
async def test_a_run_right_after_a_stream_was_broken_off_waits_until_it_is_closed(tmp_path: Path, mode: Any) -> None:
    with open_storage(f"sqlite:///{tmp_path}/a.db") as waiting:
        graph = chat(waiting)
        for text in ("one", "two"):
            async for _ in graph.astream({"messages": text}, CONFIG, stream_mode=mode):
                break

        assert (await graph.ainvoke({"messages": "three"}, CONFIG))["messages"][-1].text == "re: three"


async def test_what_a_reader_of_a_stream_does_is_not_of_its_run(storage: Storage) -> None:
    graph = chat(storage)
    async for _ in graph.astream({"messages": "one"}, CONFIG):
        break
    await asyncio.sleep(0)
    gc.collect()
    # The event loop closes what nobody reads in a task of its own.
    while others := asyncio.all_tasks() - {asyncio.current_task()}:
        await asyncio.wait(others)

    await storage.store.aput(("notes",), "a", {"text": "written by the reader"})
    assert (await graph.aget_state(CONFIG)).values["messages"][0].text == "one"


async def test_streams_that_are_read_in_turn_may_end_in_any_order(storage: Storage) -> None:
    graph = chat(storage)
    configs: Any = [{"configurable": {"thread_id": name, "user_id": "ann"}} for name in "ab"]
    streams = [graph.astream({"messages": "one"}, config, stream_mode="values") for config in configs]
    for stream in streams:
        await anext(stream)
    async for _ in streams[0]:
        pass
    with pytest.raises(SettingsError, match="unfinished stream"):
        await graph.ainvoke({"messages": "two"}, configs[1])
    async for _ in streams[1]:
        pass

    assert [len((await graph.aget_state(config)).values["messages"]) for config in configs] == [2, 2]


async def test_nothing_of_a_stream_goes_on_after_it_was_closed(storage: Storage) -> None:
    began, ended = asyncio.Event(), list[str]()

    async def slow(state: Chat) -> Chat:
        began.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("node")
        return {}

    stream = chat(storage, slow).astream({"messages": "one"}, CONFIG, stream_mode="values")
    await anext(stream)
    reading = asyncio.ensure_future(anext(stream))
    await began.wait()
    await asyncio.sleep(0)  # the reader is under way, too
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading

    assert ended == ["node"]
    assert storage.locks.are_free()


def test_a_run_that_asks_for_its_own_thread_is_told_so(storage: Storage) -> None:
    def calls_itself(state: Chat) -> Chat:
        graph.invoke({"messages": "again"}, {"configurable": {"thread_id": "t", "user_id": "ann"}})
        return {}

    graph = chat(storage, calls_itself)

    with pytest.raises(SettingsError, match="being run by the run"):
        say(graph, "one")


def test_an_edit_waits_for_the_lock(storage: Storage) -> None:
    graph = chat(storage)
    with storage.locks.hold("t"), pytest.raises(ThreadBusyError):
        graph.update_state(CONFIG, {"seen": ["edited"]})

    graph.update_state(CONFIG, {"seen": ["edited"]})
    assert graph.get_state(CONFIG).values["seen"] == ["edited"]


def test_each_run_has_an_id_in_its_checkpoints_that_no_other_run_has(storage: Storage) -> None:
    graph = chat(storage)
    for name in "ab":
        say(graph, name)

    runs = {(state.metadata or {}).get("run_id") for state in graph.get_state_history(CONFIG)}
    assert len(runs) == 2
    assert None not in runs


@pytest.mark.parametrize("place", ["configurable", "metadata"])
async def test_a_run_id_that_is_used_again_loses_no_message(storage: Storage, place: str) -> None:
    graph = chat(storage)
    config: Any = {**CONFIG, place: {**CONFIG["configurable"], "run_id": "job-7"}}
    say(graph, "one", config=config)

    assert say(graph, "two", "2", config=config)[2:] == ["two", "re: two"]
    result = await graph.ainvoke({"messages": "three"}, config)

    assert [message.text for message in result["messages"]][4:] == ["three", "re: three"]


def test_a_new_run_id_loses_no_message_that_gives_up_a_turn(storage: Storage) -> None:
    def asks_first(state: Chat) -> Chat:
        return {"seen": [interrupt("sure?")]} if len(state["messages"]) == 1 else answer(state)

    graph = chat(storage, asks_first)
    say(graph, "one")
    config: Any = {"configurable": {**CONFIG["configurable"], "run_id": "job-7"}}

    assert say(graph, "two", config=config) == ["one", "two", "re: two"]
    assert (graph.get_state(CONFIG).metadata or {}).get("run_id") == "job-7"


def test_with_config_returns_a_guard(storage: Storage) -> None:
    graph = chat(storage).with_config({"configurable": {"thread_id": "t", "user_id": "ann"}})

    assert isinstance(graph, GuardedGraph)
    assert graph.invoke({"messages": "hi"})["messages"][-1].text == "re: hi"


async def test_one_graph_answers_sync_and_async_calls(storage: Storage) -> None:
    graph = chat(storage)
    say(graph, "one")
    await graph.ainvoke({"messages": "two"}, CONFIG)
    parts = [part async for part in graph.astream({"messages": "three"}, CONFIG, stream_mode="values")]
    events = [event async for event in graph.astream_events({"messages": "four"}, CONFIG, version="v2")]

    assert [one.text for one in parts[-1]["messages"]][-2:] == ["three", "re: three"]
    assert events[-1]["event"] == "on_chain_end"
    assert len(say(graph, "five")) == 10


def test_a_copy_is_a_guard_too(storage: Storage) -> None:
    assert isinstance(chat(storage).copy({"name": "other"}), GuardedGraph)


@pytest.mark.filterwarnings("ignore:The v3 streaming protocol")
def test_events_of_version_3_hold_the_lock_and_answer_a_message_sent_again(storage: Storage) -> None:
    graph = chat(storage)
    sent = {"messages": [HumanMessage("hi", id="q")]}
    run = graph.stream_events(sent, CONFIG, version="v3")
    next(iter(run.values))

    with pytest.raises(ThreadBusyError), ThreadPoolExecutor(1) as other:
        other.submit(graph.invoke, sent, CONFIG).result()

    answered, again = (one.output["messages"] for one in (run, graph.stream_events(sent, CONFIG, version="v3")))
    assert [one.text for one in answered] == ["hi", "re: hi"]
    assert [one.id for one in again] == [one.id for one in answered]


@pytest.mark.filterwarnings("ignore:The v3 streaming protocol")
async def test_async_events_of_version_3_are_the_owners(storage: Storage) -> None:
    graph = chat(storage)
    stranger: Any = {"configurable": {"thread_id": "t", "user_id": "eve"}}
    run = await graph.astream_events({"messages": "hi"}, CONFIG, version="v3")
    output = await run.output()

    assert [one.text for one in output["messages"]] == ["hi", "re: hi"]
    with pytest.raises(SettingsError, match="belongs to another user"):
        await (await graph.astream_events({"messages": "ho"}, stranger, version="v3")).output()


@pytest.mark.filterwarnings("ignore:The v3 streaming protocol")
async def test_async_events_of_version_3_that_are_left_early_give_the_lock_back(storage: Storage) -> None:
    graph = chat(storage)
    async with await graph.astream_events({"messages": "hi"}, CONFIG, version="v3") as run:
        await anext(aiter(run.values))

    with storage.locks.hold("t", timeout_seconds=0):
        pass


# Inside another graph, as a node, a subgraph or a tool: the parent owns thread and context.

NESTED = ["node", "subgraph", "tool"]


def parent_of(child: Any, kind: str, checkpointer: Any, *, is_async: bool) -> Any:
    """Build a graph that runs another one, in each of the ways in which people do it."""

    def call(state: Chat, config: RunnableConfig) -> Chat:
        done = child.invoke({"messages": state["messages"][-1:]}, config)
        return {"messages": done["messages"][-1:], "seen": ["node"]}

    async def acall(state: Chat, config: RunnableConfig) -> Chat:
        done = await child.ainvoke({"messages": state["messages"][-1:]}, config)
        return {"messages": done["messages"][-1:], "seen": ["node"]}

    def as_tool(state: Chat) -> Chat:
        done = child.invoke({"messages": state["messages"][-1:]})  # no config: LangChain passes it on
        return {"messages": done["messages"][-1:], "seen": ["tool"]}

    async def as_atool(state: Chat) -> Chat:
        done = await child.ainvoke({"messages": state["messages"][-1:]})
        return {"messages": done["messages"][-1:], "seen": ["tool"]}

    nodes = {"subgraph": child, "node": acall if is_async else call, "tool": as_atool if is_async else as_tool}
    graph = StateGraph(Chat)
    graph.add_node("child", nodes[kind])
    graph.add_edge(START, "child")
    return graph.compile(checkpointer=checkpointer)


@pytest.mark.parametrize("kind", NESTED)
@pytest.mark.parametrize("has_checkpointer", [True, False])
def test_inside_another_graph_it_runs_as_part_of_that(storage: Storage, kind: str, has_checkpointer: bool) -> None:
    child = chat(storage)
    parent = parent_of(child, kind, storage.checkpointer if has_checkpointer else None, is_async=False)

    done = parent.invoke({"messages": "hi"}, {"configurable": {"thread_id": "p"}})

    assert [message.text for message in done["messages"]] == ["hi", "re: hi"]
    assert storage.store.search(("sessions",)) == []


@pytest.mark.parametrize("kind", NESTED)
@pytest.mark.parametrize("has_checkpointer", [True, False])
async def test_inside_another_async_graph_too(storage: Storage, kind: str, has_checkpointer: bool) -> None:
    child = chat(storage)
    parent = parent_of(child, kind, storage.checkpointer if has_checkpointer else None, is_async=True)

    done = await parent.ainvoke({"messages": "hi"}, {"configurable": {"thread_id": "p"}})

    assert [message.text for message in done["messages"]] == ["hi", "re: hi"]
    assert storage.store.search(("sessions",)) == []


def test_an_approval_inside_another_graph_is_the_parents(storage: Storage) -> None:
    child = chat(storage, lambda state: {"messages": [AIMessage(f"you said {interrupt('sure?')}")]})
    parent = parent_of(child, "subgraph", storage.checkpointer, is_async=False)
    config: Any = {"configurable": {"thread_id": "p"}}
    parent.invoke({"messages": "hi"}, config)

    assert [one.value for one in parent.get_state(config).interrupts] == ["sure?"]
    assert parent.invoke(Command(resume="yes"), config)["messages"][-1].text == "you said yes"


def test_a_stream_of_subgraphs_shows_its_steps(storage: Storage) -> None:
    parent = parent_of(chat(storage), "subgraph", None, is_async=False)

    spaces = [space for space, _ in parent.stream({"messages": "hi"}, subgraphs=True, stream_mode="updates")]

    assert any(space and space[0].startswith("child:") for space in spaces)


def test_a_drawing_of_the_parent_looks_inside(storage: Storage) -> None:
    parent = parent_of(chat(storage), "subgraph", None, is_async=False)

    assert "child:answer" in parent.get_graph(xray=True).nodes


def test_a_thread_of_its_own_inside_another_graph_is_guarded(storage: Storage) -> None:
    child = chat(storage)
    own = {"configurable": {"thread_id": "own", "user_id": "ann"}}
    graph = StateGraph(Chat)
    graph.add_node("child", lambda state: {"seen": [child.invoke({"messages": "hi"}, own)["messages"][-1].text]})
    graph.add_edge(START, "child")

    done = graph.compile(checkpointer=storage.checkpointer).invoke({}, {"configurable": {"thread_id": "p"}})

    assert done["seen"] == ["re: hi"]
    assert [item.key for item in storage.store.search(("sessions",))] == ["own"]


def extended(old: list[str], new: list[str]) -> list[str]:
    """Add in place, as a reducer should not and many do."""
    old.extend(new)
    return old


class Steps(TypedDict):
    done: Annotated[list[str], extended]


def two_branches(storage: Storage) -> GuardedGraph:
    """Guard a graph of which one branch asks while the other one has finished."""
    graph = StateGraph(Steps)
    graph.add_node("tool", lambda _: {"done": ["tool"]})
    graph.add_node("ask", lambda _: {"done": [interrupt("?")]})
    graph.add_edge(START, "tool")
    graph.add_edge(START, "ask")
    return storage.guard(graph.compile(checkpointer=storage.checkpointer, store=storage.store))


def test_what_a_guard_reads_changes_no_value_that_is_saved(storage: Storage) -> None:
    graph = two_branches(storage)
    graph.invoke({"done": ["in"]}, CONFIG)
    graph.invoke(Command(resume="asked"), CONFIG)

    assert sorted(graph.get_state(CONFIG).values["done"]) == ["asked", "in", "tool"]


async def test_what_a_guard_reads_changes_no_value_that_is_saved_asynchronously(storage: Storage) -> None:
    graph = two_branches(storage)
    await graph.ainvoke({"done": ["in"]}, CONFIG)
    await graph.ainvoke(Command(resume="asked"), CONFIG)

    assert sorted((await graph.aget_state(CONFIG)).values["done"]) == ["asked", "in", "tool"]


class Texts(TypedDict):
    """A state that has texts where others have messages."""

    messages: Annotated[list[str], operator.add]


def texts(storage: Storage) -> GuardedGraph:
    graph = StateGraph(Texts)
    graph.add_node("echo", lambda state: {"messages": [f"re: {state['messages'][-1]}"]})
    graph.add_edge(START, "echo")
    return storage.guard(graph.compile(checkpointer=storage.checkpointer, store=storage.store))


@pytest.mark.parametrize("api", ["invoke", "ainvoke"])
async def test_messages_that_are_none_of_langchains_stay_as_they_are(storage: Storage, api: str) -> None:
    graph = texts(storage)

    for text in ("hello", "hello"):
        sent = {"messages": [text]}
        done = await graph.ainvoke(sent, CONFIG) if api == "ainvoke" else graph.invoke(sent, CONFIG)

    assert done["messages"] == ["hello", "re: hello", "hello", "re: hello"]


def test_a_state_without_langchains_messages_is_edited_and_forked(storage: Storage) -> None:
    graph = texts(storage)
    graph.invoke({"messages": ["hello"]}, CONFIG)
    first = graph.get_state(CONFIG).config
    graph.update_state(CONFIG, {"messages": ["more"]})

    done = graph.invoke({"messages": ["other"]}, {"configurable": {**CONFIG["configurable"], **first["configurable"]}})

    assert done["messages"] == ["hello", "re: hello", "other", "re: other"]


@pytest.mark.parametrize("kind", [list, list[Any], list[AnyMessage]])
def test_a_list_that_may_hold_messages_gets_messages(storage: Storage, kind: Any) -> None:
    graph = StateGraph(TypedDict("Added", {"messages": Annotated[kind, operator.add]}))  # type: ignore[misc]
    graph.add_node("echo", lambda state: {"messages": [AIMessage("yes")]})
    graph.add_edge(START, "echo")
    guarded = storage.guard(graph.compile(checkpointer=storage.checkpointer, store=storage.store))

    done = guarded.invoke({"messages": "hello"}, CONFIG)

    assert [message.text for message in done["messages"]] == ["hello", "yes"]


class Loose(TypedDict):
    messages: Annotated[list[dict[str, Any]], lambda old, new: add_messages(old, new)]


def test_a_message_of_a_loosely_typed_channel_is_answered_once(storage: Storage) -> None:
    calls: list[int] = []
    builder = StateGraph(Loose)
    builder.add_node("say", lambda state: calls.append(1) or {"messages": [{"role": "assistant", "content": "paid"}]})
    builder.add_edge(START, "say")
    graph = storage.guard(builder.compile(checkpointer=storage.checkpointer))

    for _ in range(2):
        graph.invoke({"messages": [{"role": "user", "content": "pay", "id": "m1"}]}, CONFIG)

    assert calls == [1]
