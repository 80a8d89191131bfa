"""Messages are made again as LangGraph makes them."""

from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot

from conversation import call
from everthread.storage.reviving import MessageSerializer

STOCK, OURS = JsonPlusSerializer(allowed_msgpack_modules=None), MessageSerializer()

DETAILED: Any = {
    "input_tokens": 1,
    "output_tokens": 2,
    "total_tokens": 3,
    "input_token_details": {"cache_read": 1},
    "output_token_details": {"reasoning": 2},
}

MESSAGES = [
    HumanMessage("hi", id="1", name="ann", additional_kwargs={"everthread": {"seq": 0, "previous": None}}),
    HumanMessage([{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "https://a.b/c"}}]),
    SystemMessage("Be brief."),
    AIMessage(
        "",
        id="2",
        tool_calls=[call("look", "c", n=2)],
        usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
        response_metadata={"model_name": "m"},
    ),
    AIMessage("", invalid_tool_calls=[{"name": "f", "args": "{", "id": "c", "error": "no JSON"}]),
    ToolMessage("row", tool_call_id="c", artifact={"rows": [1, 2]}, status="error"),
    ToolMessage("row", tool_call_id="c", artifact=Document("text", id="d")),
    AIMessage("", additional_kwargs={"reasoning": Document("text"), "seen": {1, 2}}),
    AIMessage("hi", usage_metadata=DETAILED, response_metadata={"logprobs": None, "at": 1.5}),
    HumanMessage("hi", mood="gay"),
    AIMessageChunk("part"),
]


@pytest.mark.parametrize("message", MESSAGES, ids=repr)
def test_a_message_is_what_langgraph_makes_of_it(message: BaseMessage) -> None:
    saved = OURS.dumps_typed([message])

    (made,), (known,) = OURS.loads_typed(saved), STOCK.loads_typed(saved)

    assert type(made) is type(known)
    assert vars(made) == vars(known)
    assert made == known
    assert made.model_extra == known.model_extra
    assert made.model_fields_set == known.model_fields_set


@pytest.mark.parametrize("message", MESSAGES, ids=repr)
def test_a_message_is_saved_as_langgraph_does(message: BaseMessage) -> None:
    snapshot = _DeltaSnapshot([message])

    assert OURS.dumps_typed([message]) == STOCK.dumps_typed([message])
    assert OURS.dumps_typed({"messages": snapshot}) == STOCK.dumps_typed({"messages": snapshot})


@pytest.mark.parametrize("value", [None, b"ab", bytearray(b"ab"), [1, "a"], {"a": (1, 2)}], ids=repr)
def test_a_value_without_messages_is_saved_as_langgraph_does(value: Any) -> None:
    assert OURS.dumps_typed(value) == STOCK.dumps_typed(value)


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.parametrize(
    ("message", "changed"),
    [
        (ToolMessage("row", tool_call_id="7"), {"tool_call_id": 7}),
        (ToolMessage("row", tool_call_id="7"), {"content": {"rows": 1}}),
        (AIMessage(""), {"tool_calls": [{"name": "look", "args": {}, "id": "7"}]}),
    ],
    ids=["call id", "content", "calls"],
)
def test_what_was_set_on_a_message_later_is_mended_as_langgraph_does(
    message: BaseMessage, changed: dict[str, Any]
) -> None:
    saved = OURS.dumps_typed([message.model_copy(update=changed)])

    assert vars(OURS.loads_typed(saved)[0]) == vars(STOCK.loads_typed(saved)[0])


def test_messages_of_a_snapshot_are_messages() -> None:
    saved = OURS.dumps_typed({"messages": _DeltaSnapshot(MESSAGES[:2])})

    assert OURS.loads_typed(saved) == STOCK.loads_typed(saved)
    assert OURS.loads_typed(saved)["messages"].value == MESSAGES[:2]


def test_a_message_can_be_copied_and_changed() -> None:
    (made,) = OURS.loads_typed(OURS.dumps_typed([MESSAGES[0]]))

    changed = made.model_copy(update={"content": "bye"})

    assert (made.text, changed.text) == ("hi", "bye")


def test_two_readings_share_nothing() -> None:
    saved = OURS.dumps_typed([MESSAGES[3]])
    (first,), (second,) = OURS.loads_typed(saved), OURS.loads_typed(saved)

    first.tool_calls[0]["args"]["n"] = 3

    assert second.tool_calls[0]["args"] == {"n": 2}


@pytest.mark.parametrize("value", [Document("page"), {"a": (1, {2})}, b"raw", None], ids=repr)
def test_everything_else_is_read_by_langgraph(value: Any) -> None:
    saved = STOCK.dumps_typed(value)

    assert OURS.loads_typed(saved) == STOCK.loads_typed(saved)


def test_a_type_that_is_not_allowed_stays_what_it_was_saved_as() -> None:
    saved = STOCK.dumps_typed(_Secret())

    assert not isinstance(OURS.loads_typed(saved), _Secret)


def test_a_list_of_more_types_keeps_the_short_way() -> None:
    wider = OURS.with_msgpack_allowlist([(_Secret.__module__, _Secret.__name__)])

    assert wider.loads_typed(OURS.dumps_typed(MESSAGES[:1])) == MESSAGES[:1]
    assert wider is not OURS


class _Secret(Document):
    def __init__(self, **told: Any) -> None:
        super().__init__(page_content="secret", **told)
