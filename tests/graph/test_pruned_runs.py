"""Pruning behind real runs: sync and async, with tools, approvals and forks."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.types import Command, interrupt

from conversation import call
from everthread import Context, build_graph, open_storage
from everthread.errors import SettingsError
from everthread.models.scripted import ScriptedModel
from everthread.state import Agent
from everthread.storage.open import Storage
from everthread.storage.transcript import transcript

CONFIG: Any = {"configurable": {"thread_id": "t"}}
KEEP = 3


@tool
def look() -> str:
    """Look something up."""
    return "found " * 40


@tool
def approve() -> str:
    """Ask the user."""
    return f"approved: {interrupt('sure?')}"


AGENT = Agent(name="test", title="Test", instructions="Be brief.", tools=[look, approve])


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[Storage]:
    with open_storage(f"sqlite:///{tmp_path}/a.db") as opened:
        yield opened


def replies(turns: int) -> list[Any]:
    return [
        one for turn in range(turns) for one in (AIMessage("", tool_calls=[call("look", f"c{turn}")]), f"answer {turn}")
    ]


def dials(keep: int | None = KEEP) -> Context:
    return Context(keep_checkpoints=keep, window=2000)


def talk(storage: Storage, *script: Any, turns: int = 0, keep: int | None = KEEP, **options: Any) -> Any:
    graph = build_graph(AGENT, model=ScriptedModel([*replies(turns), *script]), summarizer="offline", storage=storage)
    for turn in range(turns):
        graph.invoke({"messages": f"question {turn}"}, CONFIG, context=dials(keep), **options)
    return graph


@pytest.fixture(scope="module")
def long_talk() -> Iterator[tuple[Storage, Any]]:
    """Return a thread of 24 turns with its storage; tests only read it."""
    with open_storage("sqlite://") as storage:
        yield storage, talk(storage, turns=24)


def rows(storage: Storage) -> int:
    (found,) = storage.database.rows("SELECT count(*) FROM checkpoints")[0]
    return int(found)


def check_ends(graph: Any) -> None:
    """Check that of 24 turns the last ones can be travelled to, and the first ones have gone."""
    ends = {state.values["turns"]: state for state in graph.get_state_history(CONFIG) if not state.next}

    assert {24, 23, 22, 21} <= ends.keys()
    assert min(ends) > 8
    assert all(state.values["messages"][-1].text == f"answer {turn - 1}" for turn, state in ends.items())


def test_the_last_turns_stay_travelable_and_the_first_go(long_talk: tuple[Storage, Any]) -> None:
    check_ends(long_talk[1])


@pytest.mark.parametrize("durability", ["sync", "exit"])
def test_the_last_turns_stay_travelable_with_any_durability(storage: Storage, durability: str) -> None:
    check_ends(talk(storage, turns=24, durability=durability))


def test_no_message_leaves_the_thread(long_talk: tuple[Storage, Any]) -> None:
    storage, graph = long_talk

    messages = transcript(storage.store, "t", graph.get_state(CONFIG).values["messages"])

    asked = [message.text for message in messages if message.type == "human"]
    assert asked == [f"question {turn}" for turn in range(24)]


def test_the_summary_of_every_kept_checkpoint_stays(long_talk: tuple[Storage, Any]) -> None:
    storage, graph = long_talk

    named = {state.values.get("summary_id") for state in graph.get_state_history(CONFIG)}

    left = {item.key for item in storage.store.search(("threads", "t", "summaries"), limit=100)}
    assert None not in named
    assert named <= left
    assert len(left) < 10


def test_none_keeps_every_turn(storage: Storage) -> None:
    graph = talk(storage, turns=6, keep=None)

    turns = {state.values.get("turns", 0) for state in graph.get_state_history(CONFIG)}

    assert turns == set(range(7))


def test_a_mapping_sets_the_dial_too(storage: Storage) -> None:
    graph = talk(storage, "hi", turns=20, keep=None)
    before = rows(storage)

    graph.invoke({"messages": "more"}, CONFIG, context={"keep_checkpoints": 1})

    assert rows(storage) < before / 3


def test_a_fork_from_a_kept_turn_goes_on_from_there(storage: Storage) -> None:
    graph = talk(storage, "another answer", turns=20)
    end = next(state for state in graph.get_state_history(CONFIG) if state.values["turns"] == 18 and not state.next)

    result = graph.invoke({"messages": "another question"}, end.config, context=dials())

    texts = [message.text for message in result["messages"] if message.type != "tool" and message.text]
    assert texts[-4:] == ["question 17", "answer 17", "another question", "another answer"]


@pytest.mark.parametrize("sent", [{"messages": "back"}, None], ids=repr)
async def test_a_run_from_a_checkpoint_that_is_gone_is_refused(storage: Storage, sent: Any) -> None:
    graph = talk(storage, turns=2)
    gone: Any = {"configurable": {"thread_id": "t", "checkpoint_id": "1f000000-0000-6000-8000-000000000000"}}
    before = graph.get_state(CONFIG)

    with pytest.raises(SettingsError, match=r"thread 't' has no checkpoint .* was pruned"):
        graph.invoke(sent, gone, context=dials())
    with pytest.raises(SettingsError, match=r"thread 't' has no checkpoint .* was pruned"):
        await graph.ainvoke(sent, gone, context=dials())

    assert graph.get_state(CONFIG) == before


@pytest.mark.parametrize("thread", ["t", "new"])
def test_an_edit_of_a_checkpoint_of_another_thread_is_refused(storage: Storage, thread: str) -> None:
    graph = talk(storage, "hello", turns=1)
    graph.invoke({"messages": "hi"}, {"configurable": {"thread_id": "other"}}, context=dials())
    there = graph.get_state({"configurable": {"thread_id": "other"}}).config["configurable"]["checkpoint_id"]

    with pytest.raises(SettingsError, match=f"thread '{thread}' has no checkpoint '{there}'"):
        graph.update_state({"configurable": {"thread_id": thread, "checkpoint_id": there}}, {"turns": 7})


def test_an_approval_that_waits_is_answered_after_pruning(storage: Storage) -> None:
    graph = talk(storage, AIMessage("", tool_calls=[call("approve", "a")]), "booked", turns=16)
    graph.invoke({"messages": "book it"}, CONFIG, context=dials(1))

    result = graph.invoke(Command(resume="yes"), CONFIG, context=dials(1))

    assert [message.text for message in result["messages"][-2:]] == ["approved: yes", "booked"]


async def test_async_runs_prune_too(tmp_path: Path) -> None:
    async with open_storage(f"sqlite:///{tmp_path}/a.db") as storage:
        graph = build_graph(AGENT, model=ScriptedModel(replies(24)), summarizer="offline", storage=storage)
        for turn in range(24):
            await graph.ainvoke({"messages": f"question {turn}"}, CONFIG, context=dials())

        ends = {state.values["turns"] async for state in graph.aget_state_history(CONFIG) if not state.next}

    assert {24, 23, 22, 21} <= ends
    assert min(ends) > 8
