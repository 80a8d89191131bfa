"""The reducer of the messages channel."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from conversation import conversation, tool_round
from everthread.state.marks import RECALLED, marked, marks, sequence, synthetic
from everthread.state.messages import reduce_messages
from everthread.state.reducer import clean


def _write() -> st.SearchStrategy[Any]:
    ids = st.sampled_from(["1", "2", "3", "4"])
    texts = st.text(max_size=5)
    return st.one_of(
        st.builds(lambda i, t: HumanMessage(t, id=i), ids, texts),
        st.builds(lambda i, t: AIMessage(t, id=i), ids, texts),
        st.builds(lambda t: {"role": "user", "content": t}, texts),
        st.builds(lambda i: RemoveMessage(id=i), ids),
        st.just(RemoveMessage(id=REMOVE_ALL_MESSAGES)),
    )


@given(st.lists(st.lists(_write(), max_size=3), max_size=6), st.integers(0, 6))
def test_the_result_does_not_depend_on_how_writes_are_batched(writes: list[Any], cut: int) -> None:
    at_once = reduce_messages([], writes)

    in_two = reduce_messages(reduce_messages([], writes[:cut]), writes[cut:])

    assert in_two == at_once


@given(st.lists(_write(), max_size=12))
def test_ids_are_unique_and_places_ascend(writes: list[Any]) -> None:
    messages = reduce_messages([], writes)

    assert len({message.id for message in messages}) == len(messages)
    assert [sequence(m) for m in messages] == sorted({sequence(m) for m in messages})


def test_a_message_without_id_gets_the_same_id_at_every_replay() -> None:
    write = [{"role": "user", "content": "hello"}]

    assert reduce_messages([], [write])[0].id == reduce_messages([], [write])[0].id


def test_remove_all_empties_the_working_set_and_keeps_what_follows() -> None:
    messages = reduce_messages(conversation(2), [[RemoveMessage(id=REMOVE_ALL_MESSAGES), HumanMessage("new", id="n")]])

    assert [message.id for message in messages] == ["n"]


def test_removing_an_unknown_id_changes_nothing() -> None:
    assert reduce_messages(conversation(1), [RemoveMessage(id="nobody")]) == conversation(1)


def test_a_known_id_replaces_in_place_and_keeps_its_place_in_the_thread() -> None:
    messages = reduce_messages(conversation(2), [AIMessage("corrected", id="b0")])

    assert messages[1].text == "corrected"
    assert sequence(messages[1]) == 1


def test_each_message_names_its_predecessor() -> None:
    messages = conversation(1, tool_words=1)

    assert [marks(message)["previous"] for message in messages] == [None, "h0", "a-c0", "t-c0"]


def test_a_retry_of_an_unanswered_message_is_the_same_message_and_new_again() -> None:
    asked = reduce_messages([], [{"role": "user", "content": "hello"}])
    dated = reduce_messages(asked, [marked(asked[0], at="2026-01-01")])

    retried = reduce_messages(dated, [{"role": "user", "content": "hello"}])

    assert len(retried) == 1
    assert "at" not in marks(retried[0])


def test_a_retry_after_a_finished_tool_round_is_the_same_message() -> None:
    messages = reduce_messages([], [[HumanMessage("hello"), *tool_round(["c"])]])

    assert len(reduce_messages(messages, [HumanMessage("hello")])) == 3


def test_the_same_text_after_an_answer_is_a_new_message() -> None:
    messages = reduce_messages([], [[HumanMessage("hello"), AIMessage("hi", id="a")]])

    assert len(reduce_messages(messages, [HumanMessage("hello")])) == 3


def test_two_messages_with_ids_of_their_own_are_two_messages() -> None:
    messages = reduce_messages([], [[HumanMessage("hello", id="x"), HumanMessage("hello", id="y")]])

    assert len(messages) == 2


def test_messages_of_a_plain_channel_get_places_when_the_thread_goes_on() -> None:
    plain = [HumanMessage("a", id="1"), AIMessage("b", id="2")]

    messages = reduce_messages(plain, [HumanMessage("c", id="3")])

    assert [sequence(message) for message in messages] == [0, 1, 2]


def test_a_working_set_that_a_server_kept_as_json_goes_on() -> None:
    used: Any = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    found = ToolMessage("ok", tool_call_id="c", id="t", artifact={"rows": 1}, status="error")
    said = AIMessage("yes", id="b", usage_metadata=used, response_metadata={"model_name": "m"})
    messages = reduce_messages([], [[HumanMessage("a", id="h", name="ann"), tool_round(["c"])[0], found, said]])
    kept = [message.model_dump() for message in messages]

    assert reduce_messages(kept, []) == messages
    assert reduce_messages(kept[:2], kept[2:]) == messages


@given(st.text())
def test_cleaned_text_can_be_stored(text: str) -> None:
    assert "\x00" not in clean(text)
    clean(text).encode("utf-8")


def test_lone_surrogates_and_nul_are_cleaned_at_the_boundary() -> None:
    messages = reduce_messages([], [ToolMessage("a\x00b\ud800c", tool_call_id="x")])

    assert messages[0].text.encode("utf-8") == "a�b�c".encode()


def test_what_was_recalled_goes_ahead_of_its_question_and_takes_no_place() -> None:
    block = synthetic(RECALLED, "<recalled>", before="h1").model_copy(update={"id": "r"})
    messages = [*conversation(1), HumanMessage("and?", id="h1")]

    reduced = reduce_messages([], [messages, block, AIMessage("so", id="b1")])

    assert [message.id for message in reduced] == ["h0", "b0", "r", "h1", "b1"]
    assert [sequence(message) for message in reduced if message.id != "r"] == [0, 1, 2, 3]
    assert [marks(message).get("previous") for message in reduced] == [None, "h0", None, "b0", "h1"]
    assert reduce_messages(reduced, [block]) == reduced


def test_what_was_recalled_for_a_question_that_is_gone_is_left_out() -> None:
    block = synthetic(RECALLED, "<recalled>", before="gone").model_copy(update={"id": "r"})

    assert reduce_messages(conversation(1), [block]) == conversation(1)
