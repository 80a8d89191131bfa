"""What is remembered of a message object."""

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from conversation import call, conversation
from everthread.state.marks import synthetic
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


def test_a_message_that_another_run_has_read_is_known() -> None:
    remembered, asked = sizes()
    message = AIMessage("On it.", id="m1", tool_calls=[call("look", "1", n=1)])
    remembered(message)

    remembered(message.model_copy(deep=True))

    assert asked == [message]


def test_a_message_of_the_same_id_that_says_something_else_is_computed_again() -> None:
    remembered, asked = sizes()
    message = ToolMessage("short", id="m1", tool_call_id="c")
    others = [
        message.model_copy(update={"content": "a good deal longer"}),
        message.model_copy(update={"tool_call_id": "d"}),
        message.model_copy(update={"name": "look"}),
        HumanMessage("short", id="m1"),
        synthetic("recalled", "short").model_copy(update={"id": "m1"}),
    ]

    remembered.all([message, *others])

    assert len(asked) == 6


def test_a_message_and_its_stand_in_are_both_known() -> None:
    remembered, asked = sizes()
    whole = ToolMessage("a good deal longer", id="m1", tool_call_id="c")
    short = whole.model_copy(update={"content": "short"})

    remembered.all([whole, short, whole, short])

    assert len(asked) == 2


def test_a_value_of_one_object_is_not_that_of_its_copy() -> None:
    asked: list[BaseMessage] = []
    remembered = Remembered(asked.append, across_runs=False)
    message = HumanMessage("short", id="m1")

    remembered.all([message, message, message.model_copy()])

    assert len(asked) == 2


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


def test_arguments_that_json_does_not_know_are_seen_to_change() -> None:
    remembered, _ = sizes()
    message = AIMessage("", tool_calls=[call("look", "1", places={"Paris"})])
    before = remembered(message)

    message.tool_calls[0]["args"]["places"].add("Lyon")

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
