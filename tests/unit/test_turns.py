"""Legal cut points."""

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from conversation import call, conversation, tool_round
from everthread.state.marks import synthetic
from everthread.window.turns import UNKNOWN_OUTCOME, anchor_of, legal, newest_turn, question_of, split


def _messages() -> st.SearchStrategy[list[BaseMessage]]:
    ids = st.sampled_from(["1", "2", "3"])
    one = st.one_of(
        st.just(HumanMessage("q")),
        st.just(AIMessage("a")),
        st.builds(lambda ids: AIMessage("", tool_calls=[call("look", i) for i in ids]), st.lists(ids, unique=True)),
        st.builds(lambda i: ToolMessage("r", tool_call_id=i), ids),
    )
    return st.lists(one, max_size=12)


def assert_legal(messages: list[BaseMessage]) -> None:
    """Check what a provider checks: every call answered right after it, no result without its call."""
    open_calls: list[str] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            assert message.tool_call_id in open_calls
            open_calls.remove(message.tool_call_id)
        else:
            assert not open_calls
            if isinstance(message, AIMessage):
                open_calls = [str(known["id"]) for known in message.tool_calls]
    assert not open_calls


@given(_messages())
def test_any_messages_become_legal(messages: list[BaseMessage]) -> None:
    assert_legal(legal(messages))


@given(_messages().filter(bool))
def test_the_last_turn_begins_with_the_newest_message_of_the_user(messages: list[BaseMessage]) -> None:
    newest = max((place for place, message in enumerate(messages) if message.type == "human"), default=0)

    assert newest_turn(messages)[0] is messages[newest]


@given(_messages())
def test_splitting_keeps_every_message_once(messages: list[BaseMessage]) -> None:
    found = [id(message) for turn in split(messages) for message in turn.messages]

    assert sorted(found) == sorted(map(id, messages))


def test_parallel_results_travel_with_their_call() -> None:
    (turn,) = split([HumanMessage("q"), *tool_round(["1", "2"]), AIMessage("done")])

    assert [len(group.messages) for group in turn.groups] == [1, 3, 1]


def test_a_result_that_comes_after_other_messages_joins_its_call() -> None:
    asked, result = tool_round(["1"])

    assert legal([HumanMessage("q"), asked, HumanMessage("hurry"), result])[1:3] == [asked, result]


def test_a_call_that_was_cut_off_says_that_its_outcome_is_unknown() -> None:
    asked, _ = tool_round(["1"])

    assert legal([HumanMessage("q"), asked, HumanMessage("and?")])[2].text == UNKNOWN_OUTCOME


def test_of_two_calls_of_one_id_one_is_missing() -> None:
    calls = AIMessage("", tool_calls=[call("look", "1"), call("look", "1")])
    (turn,) = split([HumanMessage("q"), calls, ToolMessage("r", tool_call_id="1")])

    assert [group.missing for group in turn.groups] == [0, 1]


def test_a_conversation_may_begin_with_the_assistant() -> None:
    turns = split([AIMessage("welcome"), HumanMessage("q"), AIMessage("a")])

    assert [turn.question is None for turn in turns] == [True, False]


def test_a_synthetic_message_never_starts_a_turn() -> None:
    assert len(split([HumanMessage("q"), synthetic("recalled", "old"), AIMessage("a")])) == 1


def test_anchor_and_question_are_the_first_and_the_newest_message_of_the_user() -> None:
    messages = conversation(3)

    assert (anchor_of(messages), question_of(messages)) == (messages[0], messages[4])
