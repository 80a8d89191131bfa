"""The messages channel: the reducer and everything that knows of `DeltaChannel`, which is beta.

A plain channel writes every message again at every checkpoint, so a thread grows with the square of
its turns. A delta channel stores each write once and replays it, which asks for a reducer that gives
the same result however the writes are batched.
"""

from collections.abc import Iterable, Sequence
from typing import Annotated, Any

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    convert_to_messages,
    message_chunk_to_message,
)
from langchain_core.messages.base import BaseMessageChunk
from langgraph.channels.delta import DeltaChannel

from everthread.errors import SettingsError, UnreadableError
from everthread.state.reducer import reduced

SNAPSHOT_EVERY = 5
"""Writes between two full snapshots: a longer walk back costs time at load, a shorter one bytes."""


def reduce_messages(current: Sequence[Any] | None, writes: Sequence[Any]) -> list[BaseMessage]:
    """Apply writes to the working set, one after the other.

    A message with a known id replaces it in place, a `RemoveMessage` removes it, everything else is
    appended with an id, its place in the thread and its predecessor. What was recalled for a question goes
    ahead of it and takes no place. The result depends only on the sequence of messages, never on how they
    were batched or on a clock, so a replay gives the same ids.

    Args:
        current: the working set, oldest first.

    Returns:
        A new list; the arguments are not touched.
    """
    # A server's snapshot holds JSON throughout; everything else holds messages.
    messages = list(current or [])
    if messages and not isinstance(messages[0], BaseMessage):
        messages = list(map(_revived, messages))
    return reduced(messages, read_messages(writes))


Messages = Annotated[list[AnyMessage], DeltaChannel(reduce_messages, snapshot_frequency=SNAPSHOT_EVERY)]
"""The working set as a state channel."""


def read_messages(writes: Iterable[Any]) -> Iterable[BaseMessage]:
    """Read writes to the channel as messages: each is one, something like one, or a list of these."""
    for write in writes:
        for value in write if isinstance(write, list) else [write]:
            message = _revived(value)
            if isinstance(message, BaseMessageChunk):
                message = message_chunk_to_message(message)
            yield message


_KINDS: dict[object, type[BaseMessage]] = {
    "human": HumanMessage,
    "ai": AIMessage,
    "system": SystemMessage,
    "tool": ToolMessage,
}


_NO_MESSAGE = (ValueError, TypeError, LookupError, NotImplementedError)
"""What LangChain raises for a value that is no message."""


def _revived(value: Any) -> BaseMessage:
    """Return a value as a message: LangGraph's servers keep one as the JSON of its fields."""
    if isinstance(value, BaseMessage):
        return value
    kind = _KINDS.get(value.get("type")) if isinstance(value, dict) and "additional_kwargs" in value else None
    try:
        return kind.model_validate(value) if kind is not None else convert_to_messages([value])[0]
    except _NO_MESSAGE as error:
        raise UnreadableError(f"something given or saved as a message is not one ({reason(error)})") from error


def as_messages(given: Iterable[Any]) -> list[BaseMessage]:
    """Return what a caller gave as messages.

    Raises:
        SettingsError: one of them is nothing that LangChain reads as a message.
    """
    try:
        return convert_to_messages(list(given))
    except _NO_MESSAGE as error:
        raise SettingsError(
            f"`messages` cannot be read: {reason(error)}; send a text, {{'role': 'user', 'content': 'a text'}}, "
            "a message of LangChain, or a list of these"
        ) from error


def reason(error: Exception) -> str:
    """Return the first line of an error; LangChain and LangGraph put links behind it."""
    if isinstance(error, KeyError):
        return f"it has no {error}"
    return (str(error) or type(error).__name__).splitlines()[0]
