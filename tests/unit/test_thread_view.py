"""What the middleware reads of a thread before a call."""

from collections.abc import Iterable
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.store.base import GetOp, Op, Result
from langgraph.store.memory import InMemoryStore

from everthread.nodes.thread_view import ThreadView
from everthread.state import namespaces


class CountingStore(InMemoryStore):
    """Counts the records of calls that are read."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        ops = list(ops)
        self.reads += sum(isinstance(op, GetOp) and op.namespace == namespaces.calls("t") for op in ops)
        return super().batch(ops)


def talk(store: InMemoryStore, turns: int) -> list[BaseMessage]:
    """Return the messages of a thread, with a record behind each of its replies."""
    messages: list[BaseMessage] = []
    for turn in range(turns):
        messages += [HumanMessage(f"question {turn}", id=f"h{turn}"), AIMessage(f"reply {turn}", id=f"a{turn}")]
        places: list[Any] = [[one.id, place, "2026-11-24"] for place, one in enumerate(messages)]
        record = {"turns": turn + 1, "places": places, "after": f"h{turn}", "shows": [], "stays": False}
        store.put(namespaces.calls("t"), f"a{turn}", record, index=False)
    return messages


def test_a_call_reads_the_newest_record_and_not_one_for_each_reply_in_view() -> None:
    store = CountingStore()
    messages = [*talk(store, turns=30), HumanMessage("now", id="now")]

    view = ThreadView.load(store, "t", messages)

    assert view.state["turns"] == 30
    assert store.reads == 4


def test_the_newest_record_is_found_ahead_of_many_results() -> None:
    store = CountingStore()
    calls = [{"name": "look", "args": {}, "id": f"c{number}", "type": "tool_call"} for number in range(12)]
    results = [ToolMessage("found", tool_call_id=f"c{number}", id=f"r{number}") for number in range(12)]
    messages = [*talk(store, turns=30), HumanMessage("now", id="now"), AIMessage("", id="call", tool_calls=calls)]

    view = ThreadView.load(store, "t", [*messages, *results])

    assert view.state["turns"] == 30


def test_behind_a_question_that_moved_to_the_end_the_newer_record_is_found() -> None:
    store = CountingStore()
    [*first, asked, early, other, reply] = talk(store, turns=3)
    results = [ToolMessage("found", tool_call_id=f"c{number}", id=f"r{number}") for number in range(3)]

    view = ThreadView.load(store, "t", [*first, other, reply, asked, early, *results])

    assert view.state["turns"] == 3, "the record behind `reply` is newer, though `early` stands behind it now"
