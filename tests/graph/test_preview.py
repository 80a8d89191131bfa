"""`preview` says what the next compaction does, and that is what then happens."""

import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage
from langchain_core.tools import tool

from everthread import (
    Context,
    Preview,
    acompact_now,
    apreview,
    build_graph,
    compact_now,
    open_storage,
    pipeline,
    preview,
)
from everthread.errors import NotFoundError, SettingsError
from everthread.graph.guard import GuardedGraph
from everthread.ledger import events
from everthread.models.scripted import CannedModel, Tools
from everthread.state import Agent
from everthread.state.context import POLICIES
from everthread.storage.open import Storage

CONFIG: Any = {"configurable": {"thread_id": "t"}}


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


def talk(graph: Any, context: Context, rng: random.Random, turns: int) -> None:
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


def agrees(seed: int, policy: str, turns: int) -> Preview:
    """Compact a random thread now, and check what was said of it."""
    rng = random.Random(seed)
    with open_storage("sqlite://") as storage:
        graph = build_graph(AGENT, model=ByChance(rng=rng), summarizer="offline", storage=storage)
        context = dials(policy)
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
@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=20)
@given(seed=st.integers(0, 10_000), turns=st.integers(1, 12))
def test_it_agrees_with_the_compaction_that_is_asked_for(policy: str, seed: int, turns: int) -> None:
    agrees(seed, policy, turns)


@pytest.mark.slow
@pytest.mark.parametrize(("policy", "node"), [("summarize", "summarize"), ("token_budget", "trim")])
def test_it_agrees_with_the_compactions_that_come(policy: str, node: str) -> None:
    assert sum(agrees_with_what_comes(seed, policy, node) for seed in range(20)) >= 10


@pytest.mark.parametrize("policy", POLICIES)
def test_a_compaction_does_what_was_said(policy: str) -> None:
    assert any(not agrees(seed, policy, 6).is_empty for seed in (1, 2, 3))


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
