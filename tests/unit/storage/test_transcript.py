"""The transcript after a crash."""

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.store.memory import InMemoryStore

from conversation import call
from everthread.state.marks import marked
from everthread.storage.transcript import append_operations, transcript


def ids(working_set: list[BaseMessage], *results: BaseMessage) -> list[str | None]:
    """Return the ids of a transcript whose long results were archived ahead of their step."""
    store = InMemoryStore()
    store.batch(append_operations("t", "u", results, why="offloaded", at=""))
    return [message.id for message in transcript(store, "t", working_set)]


def result(name: str, seq: int, previous: str) -> BaseMessage:
    return marked(ToolMessage("row " * 500, tool_call_id=name, id=name), seq=seq, previous=previous)


QUESTION = marked(HumanMessage("Find it.", id="q"), seq=0)
CALLS: BaseMessage = marked(
    AIMessage("", tool_calls=[call("look", "r0"), call("look", "r1")], id="calls"), seq=1, previous="q"
)
ROUND = (result("r0", 2, "calls"), result("r1", 3, "r0"))


def test_long_results_stand_between_their_calls_and_what_follows() -> None:
    answer = marked(AIMessage("Here.", id="a"), seq=4, previous="r1")

    assert ids([QUESTION, CALLS, answer], *ROUND) == ["q", "calls", "r0", "r1", "a"]


def test_a_result_whose_call_was_never_saved_is_left_out() -> None:
    answer = marked(AIMessage("Here.", id="a"), seq=1, previous="q")

    assert ids([QUESTION, answer], result("lost", 2, "another call")) == ["q", "a"]


def test_results_of_a_round_that_was_never_saved_are_left_out() -> None:
    given_up = marked(HumanMessage("Never mind.", id="q2"), seq=2, previous="calls")

    assert ids([QUESTION, CALLS], *ROUND) == ["q", "calls"]
    assert ids([QUESTION, CALLS, given_up], *ROUND) == ["q", "calls", "q2"]
