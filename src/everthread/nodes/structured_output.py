"""Read a model's structured reply, whatever its client makes of it."""

from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import Runnable
from pydantic import BaseModel

from everthread.models.wrapped import ChatModel, rewrapped
from everthread.nodes.failures import check_complete

__all__ = ["content", "structured"]


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
