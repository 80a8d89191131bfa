"""Where a prompt is marked for a provider's cache."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from everthread.state.marks import RECALLED, synthetic
from everthread.window.assembly import summary_pair
from everthread.window.prompt_cache import SLOTS, mark_cache

SYSTEM, ANCHOR = SystemMessage("be brief"), HumanMessage("my task")


def places(messages: list[BaseMessage]) -> list[int]:
    return [place for place, message in enumerate(mark_cache(messages)) if is_marked(message)]


def is_marked(message: BaseMessage) -> bool:
    return any(isinstance(block, dict) and "cache_control" in block for block in message.content)


def call(name: str) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": name}])


def test_a_first_prompt_is_marked_at_the_system_message_and_the_question() -> None:
    assert places([SYSTEM, ANCHOR]) == [0, 1]


def test_a_later_prompt_is_marked_at_system_head_last_turn_and_end() -> None:
    head = [SYSTEM, ANCHOR, *summary_pair("they met"), synthetic("session_notes", "likes tea")]
    turns = [
        HumanMessage("two"),
        AIMessage("second"),
        HumanMessage("three"),
        call("c"),
        ToolMessage("3", tool_call_id="c"),
    ]

    assert places([*head, AIMessage("first"), *turns]) == [0, 4, 7, 10]


def test_what_was_recalled_belongs_to_its_question() -> None:
    recalled = synthetic(RECALLED, "long ago", before="q")

    assert places([SYSTEM, ANCHOR, recalled, HumanMessage("two", id="q")]) == [0, 1, 2, 3]


def test_the_mark_is_on_the_last_text_of_a_message() -> None:
    image = {"type": "image", "url": "http://127.0.0.1/x.png"}
    message = HumanMessage([{"type": "text", "text": "look"}, image])

    assert mark_cache([message])[0].content == [
        {"type": "text", "text": "look", "cache_control": {"type": "ephemeral"}},
        image,
    ]


def test_a_message_without_text_leaves_its_mark_to_the_one_before() -> None:
    assert places([SYSTEM, ANCHOR, call("c"), ToolMessage("", tool_call_id="c")]) == [0, 1]


def test_the_messages_themselves_stay_as_they_are() -> None:
    messages = [SYSTEM, ANCHOR]

    mark_cache(messages)

    assert [message.content for message in messages] == ["be brief", "my task"]


def test_marks_that_are_there_already_count() -> None:
    own: list[Any] = [{"type": "text", "text": "mine", "cache_control": {"type": "ephemeral"}}]
    messages = [SystemMessage(own), HumanMessage(own), AIMessage(own), HumanMessage("two")]

    assert places(messages) == [0, 1, 2, 3]
    assert mark_cache(messages, slots=3) == messages


def test_fewer_slots_keep_the_end_and_the_system_message() -> None:
    messages = [SYSTEM, ANCHOR, AIMessage("one"), HumanMessage("two")]

    assert [place for place, one in enumerate(mark_cache(messages, slots=2)) if is_marked(one)] == [0, 3]
    assert mark_cache(messages, slots=0) == messages


TEXTS = st.sampled_from(["", " ", "a", "some words"])
MESSAGES = st.lists(
    st.one_of(
        st.builds(HumanMessage, TEXTS),
        st.builds(AIMessage, TEXTS),
        st.builds(SystemMessage, TEXTS),
        st.builds(lambda text: synthetic("session_notes", text), TEXTS),
    )
)


@given(MESSAGES)
def test_no_prompt_has_more_marks_than_allowed_nor_another_text(messages: list[BaseMessage]) -> None:
    marked = mark_cache(messages)

    assert sum(map(is_marked, marked)) <= SLOTS
    assert [message.text for message in marked] == [message.text for message in messages]
    assert mark_cache(marked) == marked or sum(map(is_marked, marked)) < SLOTS
