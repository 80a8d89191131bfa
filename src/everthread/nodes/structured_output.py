"""Ask a model for data and read its reply, whatever its client makes of it."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import Runnable
from pydantic import BaseModel

from everthread.models.calls import ModelCall, ModelCalls
from everthread.models.wrapped import ChatModel, rewrapped
from everthread.nodes.failures import check_complete

T = TypeVar("T")


def asked(
    model: ChatModel,
    schema: type[BaseModel],
    request: str,
    read: Callable[[object], T],
    *,
    seconds: float | None = None,
) -> ModelCalls[tuple[T | None, str]]:
    """Ask a model for data, and read what it replies.

    Args:
        read: reads the content of a reply; a plain `ValueError` says what is wrong with it.
        seconds: how long the request may take.

    Returns:
        What was read, None when the model or the reading failed; and why it failed.
    """
    try:
        reply = yield ModelCall(structured(model, schema), [HumanMessage(request)], seconds=seconds)
    except Exception as error:  # noqa: BLE001 - whatever fails, the rules can do without it
        # Not its words, which may repeat those of a note.
        return None, type(error).__name__
    try:
        return read(content(reply)), ""
    except Exception as error:  # noqa: BLE001 - whatever a model sends, too
        return None, str(error) if type(error) is ValueError else type(error).__name__


def structured(model: ChatModel, schema: type[BaseModel]) -> Runnable[Any, Any]:
    """Return the model with a schema; one that has no structured output is asked for JSON in words."""

    def with_schema(chat: Any) -> Runnable[Any, Any]:
        try:
            # As JSON Schema: with the class, some clients raise on fenced JSON before anybody can read it.
            with_schema: Runnable[Any, Any] = chat.with_structured_output(schema.model_json_schema(), include_raw=True)
        except NotImplementedError:
            return cast("Runnable[Any, Any]", chat)
        return with_schema

    return rewrapped(model, with_schema)


def content(reply: object) -> object:
    """Return what a model replied: the arguments of a call, else its text, else what the client has parsed.

    The text goes first because clients complete JSON that was cut, and half of a sentence is another one.

    Raises:
        ModelError: the reply ended before it was complete.
    """
    raw = reply.get("raw") if isinstance(reply, dict) else reply
    if isinstance(raw, AIMessage):
        check_complete(raw)
        if raw.tool_calls:
            return raw.tool_calls[0]["args"]
    text = str(raw.text) if isinstance(raw, BaseMessage) else str(raw or "")
    if not text.strip() and isinstance(reply, dict) and reply.get("parsed") is not None:
        return reply["parsed"]
    return text
