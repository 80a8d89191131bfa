"""`preview` says what the next compaction does, and that is what then happens."""

import random
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage
from langchain_core.tools import tool

from everthread import (
    Context,
    EverthreadMiddleware,
    EverthreadState,
    Preview,
    acompact_now,
    apreview,
    aprompt_at,
    build_graph,
    compact_now,
    open_storage,
    pipeline,
    preview,
    prompt_at,
)
from everthread.errors import NotFoundError, SettingsError
from everthread.forks import fork
from everthread.graph.guard import GuardedGraph
from everthread.ledger import events
from everthread.models.scripted import CannedModel, ScriptedModel, Tools
from everthread.state import Agent
from everthread.state.context import POLICIES, changed_dials
from everthread.storage.open import Storage

CONFIG: Any = {"configurable": {"thread_id": "t", "user_id": "local"}}


@tool
def look(n: int) -> str:
    """Look something up."""
    return "\n".join(f"row {number} of table {n} has the reference RT{n}-{number}" for number in range(n))


AGENT = Agent(name="test", title="Test", instructions="Be brief.", tools=[look])


class ByChance(CannedModel):
    """Calls a tool or answers, by chance."""

    rng: Any = None

    @property
    def _llm_type(self) -> str:
        return "chance"

    def next_reply(self, messages: list[Any], tools: Tools) -> AIMessage:
        if messages[-1].type == "human" and self.rng.random() < 0.5:
            return AIMessage("", tool_calls=[{"name": "look", "args": {"n": self.rng.choice([3, 40])}, "id": "c"}])
        return AIMessage("well, " + "fine " * self.rng.choice([1, 80]))


def dials(policy: str) -> Context:
    return Context(policy=policy, window=1_800, max_output_tokens=100, keep_last_turns=1, keep_last_messages=4)  # type: ignore[arg-type]


def talk(graph: Any, context: Context | None, rng: random.Random, turns: int) -> None:
    for turn in range(turns):
        words = f"question {turn}: never book before noon. " + "word " * rng.choice([1, 40, 90])
        graph.invoke({"messages": words}, CONFIG, context=context)
        if graph.get_state(CONFIG).next:
            return


def ids(graph: Any) -> list[str]:
    return [str(message.id) for message in graph.get_state(CONFIG).values["messages"]]


def check(told: Preview, graph: Any, storage: Storage, before: list[str], known: int) -> None:
    """Compare what was said with the events since, and with the state."""
    done = list(events(storage.store, "t"))[known:]
    left = [name for one in done if one.event in ("evicted", "compacted") for name in one.message_ids]
    assert left == list(told.evicted)
    assert {one.message_id: one.tokens_after for one in done if one.event == "masked"} == told.masked
    for one in done:
        if one.event in ("evicted", "compacted"):
            assert (one.tokens_before, one.tokens_after) == (told.tokens_before, told.tokens_after)
    gone = {*told.evicted, *told.recalled}
    assert [name for name in ids(graph) if name in before] == [name for name in before if name not in gone]


def guarded(storage: Storage, rng: random.Random, policy: str, *others: Any) -> GuardedGraph:
    """Return an agent with the middleware, every other one on a channel that holds what is new."""
    schema: Any = {"state_schema": EverthreadState} if rng.random() < 0.5 else {}
    values = {name: one for name, one in changed_dials(dials(policy)).items() if name != "user_id"} | {"window": 2_200}
    middleware = [*others, EverthreadMiddleware(summarizer="offline", **values)]
    saved: Any = {"checkpointer": storage.checkpointer, "store": storage.store}
    return storage.guard(
        create_agent(ByChance(rng=rng), [look], middleware=middleware, system_prompt="Be brief.", **saved, **schema)
    )


def agrees(seed: int, policy: str, turns: int, *, is_own: bool = True) -> Preview:
    """Compact a random thread now, and check what was said of it."""
    rng = random.Random(seed)
    with open_storage("sqlite://") as storage:
        if is_own:
            graph = build_graph(AGENT, model=ByChance(rng=rng), summarizer="offline", storage=storage)
        else:
            graph = guarded(storage, rng, policy)
        context = dials(policy) if is_own else None
        talk(graph, context, rng, turns)
        before, known = ids(graph), len(events(storage.store, "t"))
        told = preview(graph, "t", context=context)
        assert (ids(graph), len(events(storage.store, "t"))) == (before, known)

        assert compact_now(graph, "t", context=context) == told

        check(told, graph, storage, before, known)
        assert preview(graph, "t", context=context).summary_before == told.summary_after
        assert graph.get_state(CONFIG).next == ()
        graph.invoke({"messages": "go on"}, CONFIG, context=context)
        return told


def agrees_with_what_comes(seed: int, policy: str, node: str) -> bool:
    """Stop ahead of a compaction that comes by itself, and check what was said of it; False when none came."""
    rng = random.Random(seed)
    with open_storage("sqlite://") as storage:
        builder = pipeline(AGENT, model=ByChance(rng=rng), summarizer="offline")
        saved: Any = {"checkpointer": storage.checkpointer, "store": storage.store}
        graph = GuardedGraph(builder.compile(interrupt_before=[node], **saved), storage)
        context = dials(policy)
        for _ in range(12):
            talk(graph, context, rng, 12)
            if graph.get_state(CONFIG).next != (node,):
                return False
            told = preview(graph, "t", context=context)
            if told.is_due:
                break
            graph.invoke(None, CONFIG, context=context)
        else:
            return False
        before, known = ids(graph), len(events(storage.store, "t"))
        graph.graph.invoke(None, CONFIG, context=context)
        done = [one.event for one in list(events(storage.store, "t"))[known:]]
        assert told.put_off == ("deferred" in done)
        if not told.put_off:
            check(told, graph, storage, before, known)
        return not told.put_off


@pytest.mark.slow
@pytest.mark.parametrize("is_own", [True, False], ids=["graph", "middleware"])
@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=2)
@given(seed=st.integers(0, 10_000), turns=st.integers(1, 10))
def test_it_agrees_with_the_compaction_that_is_asked_for(is_own: bool, policy: str, seed: int, turns: int) -> None:
    agrees(seed, policy, turns, is_own=is_own)


@pytest.mark.slow
@pytest.mark.parametrize(("policy", "node"), [("summarize", "summarize"), ("token_budget", "trim")])
def test_it_agrees_with_the_compactions_that_come(policy: str, node: str) -> None:
    assert sum(agrees_with_what_comes(seed, policy, node) for seed in range(4)) >= 2


@pytest.mark.parametrize("is_own", [True, False], ids=["graph", "middleware"])
@pytest.mark.parametrize("policy", POLICIES)
def test_a_compaction_does_what_was_said(is_own: bool, policy: str) -> None:
    assert any(not agrees(seed, policy, 6, is_own=is_own).is_empty for seed in (1, 2, 3))


@pytest.fixture
def graph() -> Iterator[GuardedGraph]:
    with open_storage("sqlite://") as storage:
        yield build_graph(AGENT, model=ByChance(rng=random.Random(1)), summarizer="offline", storage=storage)


async def test_the_async_twins_do_the_same(graph: GuardedGraph) -> None:
    context = dials("summarize")
    talk(graph, context, random.Random(1), 6)
    told = preview(graph, "t", context=context)

    assert await apreview(graph, "t", context=context) == told
    assert await acompact_now(graph, "t", context=context) == told
    assert not set(told.evicted) & set(ids(graph))


def test_a_thread_that_nobody_has_named_dials_for_has_the_window_of_its_last_call(graph: GuardedGraph) -> None:
    talk(graph, dials("summarize"), random.Random(1), 6)

    assert preview(graph, "t").budget == preview(graph, "t", context=Context(window=1_800)).budget


def test_another_user_is_told_nothing(graph: GuardedGraph) -> None:
    talk(graph, dials("summarize"), random.Random(1), 1)

    with pytest.raises(SettingsError, match="belongs to another user"):
        preview(graph, "t", context=Context(user_id="bob"))


def test_a_thread_that_is_not_there_is_named(graph: GuardedGraph) -> None:
    with pytest.raises(NotFoundError, match="no thread 'other'"):
        compact_now(graph, "other")


def test_a_turn_without_an_answer_is_not_compacted(graph: GuardedGraph) -> None:
    talk(graph, dials("summarize"), random.Random(1), 1)
    graph.graph.update_state(CONFIG, {"messages": [("user", "and now?")]}, as_node="inject_memory")

    with pytest.raises(SettingsError, match="has no answer yet"):
        compact_now(graph, "t", context=dials("summarize"))


class NeedsContext(AgentMiddleware):
    """Knows what to do from the context of a run alone."""

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        return handler(request) if request.runtime.context["role"] else None


class Retrying(AgentMiddleware):
    """Makes a call that failed again."""

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        try:
            return handler(request)
        except Exception:  # noqa: BLE001 - as retries do
            return handler(request)


def test_no_model_is_asked_behind_other_middlewares() -> None:
    with open_storage("sqlite://") as storage:
        graph = guarded(storage, random.Random(1), "summarize", Retrying())
        talk(graph, None, random.Random(1), 4)
        rng_before, known = graph.get_state(CONFIG).values["messages"], len(events(storage.store, "t"))

        told = preview(graph, "t")

        assert not told.is_empty
        assert graph.get_state(CONFIG).values["messages"] == rng_before
        assert len(events(storage.store, "t")) == known


async def test_the_async_twins_do_the_same_for_an_agent() -> None:
    with open_storage("sqlite://") as storage:
        graph = guarded(storage, random.Random(1), "summarize")
        for number in range(4):
            await graph.ainvoke({"messages": f"question {number} " + "word " * 90}, CONFIG)
        told = preview(graph, "t")

        assert await apreview(graph, "t") == told
        assert await acompact_now(graph, "t") == told
        assert not set(told.evicted) & set(ids(graph))


class AsyncOnly(AgentMiddleware):
    """Has no synchronous flavour."""

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        return await handler(request)


async def test_an_agent_with_a_middleware_that_is_async_alone_tells_by_the_async_twins() -> None:
    with open_storage("sqlite://") as storage:
        graph = guarded(storage, random.Random(1), "summarize", AsyncOnly())
        for number in range(4):
            await graph.ainvoke({"messages": f"question {number} " + "word " * 90}, CONFIG)

        told = await apreview(graph, "t")

        assert await acompact_now(graph, "t") == told


def test_a_middleware_that_fails_outside_a_run_is_named() -> None:
    with open_storage("sqlite://") as storage:
        agent = create_agent(
            ByChance(rng=random.Random(1)),
            [],
            middleware=[NeedsContext(), EverthreadMiddleware(summarizer="offline")],
            checkpointer=storage.checkpointer,
            store=storage.store,
        )
        graph = storage.guard(agent)
        graph.invoke({"messages": "hello"}, CONFIG, context={"role": "admin"})

        with pytest.raises(SettingsError, match="another middleware of it fails there with TypeError"):
            preview(graph, "t")


@pytest.mark.parametrize("value", [True, "yes", {"a": 1}])
def test_a_client_cannot_ask_for_a_call_that_is_not_made(value: Any) -> None:
    agent = create_agent(ScriptedModel(["Hello."]), [look], middleware=[EverthreadMiddleware()])

    done = agent.invoke({"messages": "Hi."}, {"configurable": {"__everthread_ahead": value}})

    assert done["messages"][-1].text == "Hello."


def test_an_agent_without_the_middleware_tells_nothing() -> None:
    with open_storage("sqlite://") as storage:
        saved: Any = {"checkpointer": storage.checkpointer, "store": storage.store}
        graph = storage.guard(create_agent(ByChance(rng=random.Random(1)), [], **saved))

        with pytest.raises(SettingsError, match="is neither"):
            preview(graph, "t")


@pytest.mark.parametrize("use", [preview, compact_now, lambda graph, thread: fork(graph, thread, 1)])
def test_a_graph_without_a_guard_is_told_so(use: Any) -> None:
    with open_storage("sqlite://") as storage:
        bare = pipeline(AGENT, model="offline").compile(checkpointer=storage.checkpointer, store=storage.store)

        with pytest.raises(SettingsError, match="is to be under a guard"):
            use(bare, "t")


@pytest.mark.parametrize("use", [apreview, acompact_now])
async def test_a_graph_without_a_guard_is_told_so_asynchronously(use: Any) -> None:
    with pytest.raises(SettingsError, match="is to be under a guard"):
        await use(pipeline(AGENT, model="offline").compile(), "t")


def killed(*_: Any) -> None:
    raise RuntimeError("killed")


def test_a_crash_before_the_state_is_cut_loses_and_repeats_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with open_storage("sqlite://") as storage:
        graph = guarded(storage, random.Random(1), "token_budget")
        talk(graph, None, random.Random(1), 6)
        said = [str(one.id) for one in storage.thread("t").messages]
        with monkeypatch.context() as patch:
            patch.setattr(type(graph.graph), "update_state", killed)
            with pytest.raises(RuntimeError, match="killed"):
                compact_now(graph, "t")

        assert [str(one.id) for one in storage.thread("t").messages] == said
        graph.invoke({"messages": "and now?"}, CONFIG)

        every = [str(one.id) for one in storage.thread("t").messages]
        assert every[: len(said)] == said
        assert len(every) == len({*every})


async def test_a_thread_id_of_another_type_is_taken_by_its_text_as_in_a_run() -> None:
    thread_id: Any = UUID("12345678-1234-5678-1234-567812345678")
    with open_storage("sqlite://") as storage:
        graph = build_graph(AGENT, model=ScriptedModel(["hello"]), summarizer="offline", storage=storage)
        graph.invoke({"messages": "hi"}, {"configurable": {"thread_id": thread_id}})

        plans = [preview(graph, thread_id), await apreview(graph, thread_id)]
        done = [compact_now(graph, thread_id), await acompact_now(graph, thread_id)]
        prompts = [prompt_at(storage, thread_id), await aprompt_at(storage, thread_id)]

        assert {one.thread_id for one in (*plans, *done, storage.thread(thread_id))} == {str(thread_id)}
        assert [one.messages[-1].text for one in prompts] == ["hi", "hi"]
        assert fork(graph, thread_id, 1).thread_id == str(thread_id)
