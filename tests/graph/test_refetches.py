"""Refetches in whole runs: what left the prompt and was needed again."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import tool

from conversation import call, conversation
from everthread import Context, build_graph
from everthread.ledger import events
from everthread.ledger.events import Refetch
from everthread.models.scripted import ScriptedModel
from everthread.state import Agent, namespaces
from everthread.state.marks import marked, was_refetched
from everthread.storage.open import Storage
from everthread.tools.save_memory_note import save_memory_note
from everthread.window.eviction import plan_fold, plan_trim
from everthread.window.masking import handle_of
from everthread.window.tokens import counter_for

COUNTER = counter_for("gpt-4o")
ONE_TURN = {"policy": "sliding_window", "keep_last_turns": 1}
STATED = "My budget for the hotel in Lyon is 900 euros."


@tool
def look(n: int) -> str:
    """Look something up."""
    return "\n".join(f"row {number} of the table" for number in range(n))


AGENT = Agent(name="test", title="Test", instructions="Be brief.", tools=[save_memory_note, look])


def looks(n: int, call_id: str, name: str = "look") -> AIMessage:
    return AIMessage("", tool_calls=[call(name, call_id, n=n)])


def talk(storage: Storage, *turns: tuple[str, list[Any]], **dials: Any) -> dict[str, Any]:
    replies = [reply for _, told in turns for reply in told]
    graph = build_graph(AGENT, model=ScriptedModel(replies), summarizer="offline", storage=storage)
    result: dict[str, Any] = {}
    for text, _ in turns:
        result = graph.invoke({"messages": text}, {"configurable": {"thread_id": "t"}}, context=Context(**dials))
    return result


def refetches(storage: Storage) -> list[Refetch]:
    return [event for event in events(storage.store, "t") if isinstance(event, Refetch)]


def test_a_call_made_again_after_its_result_was_evicted_is_a_refetch(storage: Storage) -> None:
    talk(
        storage,
        ("hello", ["Hi."]),
        ("look", [looks(3, "a"), "done"]),
        ("next", ["ok"]),
        ("again", [looks(3, "b"), "done"]),
        **ONE_TURN,
    )

    (refetch,) = refetches(storage)
    assert (refetch.why, refetch.left, refetch.left_turn, refetch.by) == ("repeated_call", "evicted", 3, "b")


def test_a_call_made_again_while_its_result_is_in_view_is_no_refetch(storage: Storage) -> None:
    talk(storage, ("look", [looks(3, "a"), looks(3, "b"), "done"]))

    assert refetches(storage) == []


def test_what_was_fetched_again_and_is_in_view_is_one_refetch(storage: Storage) -> None:
    twice = [looks(3, "b"), looks(3, "c"), "done"]
    talk(
        storage,
        ("hello", ["Hi."]),
        ("look", [looks(3, "a"), "done"]),
        ("next", ["ok"]),
        ("again", twice),
        **ONE_TURN,
    )

    assert len(refetches(storage)) == 1


def test_another_call_is_no_refetch(storage: Storage) -> None:
    turns: list[tuple[str, list[Any]]] = [("hello", ["Hi."]), ("look", [looks(3, "a"), "done"]), ("next", ["ok"])]
    talk(storage, *turns, ("again", [looks(4, "b"), "done"]), **ONE_TURN)

    assert refetches(storage) == []


def test_reading_a_masked_result_back_is_one_refetch_for_all_its_parts(storage: Storage) -> None:
    talk(storage, ("look", [looks(400, "a"), "done"]), tool_output_tokens=100)
    (handle,) = storage.store.search(namespaces.thread("t", "handles"))
    reads = [
        AIMessage("", tool_calls=[call("read_tool_output", f"r{offset}", handle=handle.key, offset=offset)])
        for offset in (0, 40)
    ]
    talk(storage, ("read", [*reads, "done"]), tool_output_tokens=100)

    (refetch,) = refetches(storage)
    assert (refetch.why, handle_of(refetch.message_ids[0])) == ("read_back", handle.key)


def test_a_search_by_the_model_is_a_refetch_and_a_recall(storage: Storage) -> None:
    asks = AIMessage("", tool_calls=[call("recall_history", "q", query="locker code")])
    turns = [("hello", ["Hi."]), ("My locker code is 4711.", ["Fine."]), ("next", ["ok"]), ("what was it", [asks, "x"])]
    talk(storage, *turns, recall_tokens=0, **ONE_TURN)

    (refetch,) = refetches(storage)
    told = [event for event in events(storage.store, "t") if event.event == "recalled"]
    assert refetch.why == "recall"
    assert [event.by for event in told] == ["tool"]


def test_a_user_who_says_again_what_was_evicted_is_a_refetch(storage: Storage) -> None:
    again = "The hotel in Lyon: my budget is 900 euros"
    talk(storage, ("hello", ["Hi."]), (STATED, ["ok"]), ("next", ["ok"]), (again, ["ok"]), **ONE_TURN)

    (refetch,) = refetches(storage)
    assert (refetch.why, refetch.left) == ("restated", "evicted")


def test_a_user_who_repeats_what_is_still_in_view_is_no_refetch(storage: Storage) -> None:
    talk(storage, (STATED, ["ok"]), (STATED, ["ok"]))

    assert refetches(storage) == []


def test_a_user_who_says_again_what_was_blocked_is_a_refetch(storage: Storage) -> None:
    card = "Please remember my credit card number 4111 1111 1111 1111"
    save = call("save_memory_note", "s", text="Card 4111 1111 1111 1111.", keywords=["card"])
    turn = [AIMessage("", tool_calls=[save]), "no"]
    talk(storage, (card, turn), (card, [AIMessage("", tool_calls=[{**save, "id": "s2"}]), "no"]))

    (refetch,) = refetches(storage)
    assert (refetch.why, refetch.left, refetch.left_turn) == ("restated", "blocked", 1)


@pytest.mark.parametrize("learns", [False, True])
def test_the_dial_marks_what_had_to_be_fetched_twice(storage: Storage, learns: bool) -> None:
    turns: list[tuple[str, list[Any]]] = [("hello", ["Hi."]), ("look", [looks(3, "a"), "done"]), ("next", ["ok"])]

    last = talk(storage, *turns, ("again", [looks(3, "b"), "done"]), learn_from_refetches=learns, **ONE_TURN)

    result = next(message for message in last["messages"] if getattr(message, "tool_call_id", "") == "b")
    assert was_refetched(result) is learns


@pytest.mark.parametrize("missed", [None, "t-c1"])
def test_what_had_to_be_fetched_twice_is_masked_last(missed: str | None) -> None:
    messages = [marked(one, kept=True) if one.id == missed else one for one in conversation(4, words=5, tool_words=400)]
    size = sum(map(COUNTER.message, messages))
    context = Context(low_watermark=0.7)

    plan = plan_trim(messages, room=size - 10, context=context, counter=COUNTER)
    fold = plan_fold(messages, target=int(0.7 * size), kept=size, context=context, counter=COUNTER)

    assert set(plan.masked) == {"t-c0", "t-c1"} - {missed} | ({"t-c2"} if missed else set())
    assert set(fold.masked) == set(plan.masked)
