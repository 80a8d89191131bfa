"""What is remembered of a message object."""

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from conversation import call, conversation
from everthread.window.remembered import Remembered


def sizes() -> tuple[Remembered[int], list[BaseMessage]]:
    asked: list[BaseMessage] = []

    def compute(message: BaseMessage) -> int:
        asked.append(message)
        return len(str(message.content)) + sum(len(repr(known)) for known in getattr(message, "tool_calls", []))

    return Remembered(compute), asked


def test_a_message_is_computed_once() -> None:
    remembered, asked = sizes()
    messages = conversation(3)

    assert remembered.all(messages) == remembered.all(messages)
    assert asked == messages


def test_a_message_that_was_changed_in_place_is_computed_again() -> None:
    remembered, _ = sizes()
    message = HumanMessage("short")
    before = remembered(message)

    message.content = "a good deal longer"

    assert remembered(message) > before


def test_calls_that_were_changed_in_place_are_computed_again() -> None:
    remembered, _ = sizes()
    message = AIMessage("", tool_calls=[call("look", "1", n=1)])
    before = remembered(message)

    message.tool_calls[0]["args"]["city"] = "Lyon"

    assert remembered(message) > before


def test_calls_that_came_later_are_computed_again() -> None:
    remembered, _ = sizes()
    message = AIMessage("On it.")
    before = remembered(message)

    message.tool_calls.append(call("look", "1"))  # type: ignore[arg-type]

    assert remembered(message) > before


def test_content_blocks_are_computed_each_time() -> None:
    remembered, asked = sizes()
    message = HumanMessage([{"type": "text", "text": "hello"}])

    remembered.all([message, message])

    assert len(asked) == 2
