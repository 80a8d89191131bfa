"""The transcript after a crash."""

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.store.memory import InMemoryStore

from conversation import call
from everthread.state.marks import marked
from everthread.storage.transcript import append_operations, transcript


def test_a_result_whose_call_was_never_saved_is_left_out() -> None:
    question, answer = HumanMessage("Find it.", id="q"), AIMessage("Here.", id="a")
    result = ToolMessage("row " * 500, tool_call_id="c", id="r")
    store = InMemoryStore()
    store.batch(append_operations("t", "u", [marked(result, seq=2, call="lost")], why="offloaded", at=""))

    messages = transcript(store, "t", [marked(question, seq=0), marked(answer, seq=1)])

    assert [message.id for message in messages] == ["q", "a"]


def test_an_archived_result_stays_behind_its_call() -> None:
    calls: BaseMessage = AIMessage("", tool_calls=[call("look", "c")], id="a")
    result = ToolMessage("row " * 500, tool_call_id="c", id="r")
    store = InMemoryStore()
    store.batch(append_operations("t", "u", [marked(result, seq=1, call="a")], why="offloaded", at=""))

    assert [message.id for message in transcript(store, "t", [marked(calls, seq=0)])] == ["a", "r"]
