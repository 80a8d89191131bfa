"""The messages channel: the reducer and everything that knows of `DeltaChannel`, which is beta.

A plain channel writes every message again at every checkpoint, so a thread grows with the square of
its turns. A delta channel stores each write once and replays it, which asks for a reducer that gives
the same result however the writes are batched.
"""

import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
    convert_to_messages,
    message_chunk_to_message,
)
from langchain_core.messages.base import BaseMessageChunk
from langgraph.channels.delta import DeltaChannel
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from everthread.state.marks import MARK, is_answer, is_recalled, marks, sequence

SNAPSHOT_EVERY = 5
"""Writes between two full snapshots: a longer walk back costs time at load, a shorter one bytes."""


_RANDOM_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def reduce_messages(current: Sequence[Any] | None, writes: Sequence[Any]) -> list[BaseMessage]:
    """Apply writes to the working set, one after the other.

    A message with a known id replaces it in place, a `RemoveMessage` removes it, everything else is
    appended with an id, its place in the thread and its predecessor. What was recalled for a question goes
    ahead of it and takes no place. The result depends only on the sequence of messages, never on how they
    were batched or on a clock, so a replay gives the same ids.

    Args:
        current: the working set, oldest first.
        writes: messages, message-like values, or lists of them.

    Returns:
        A new list; the arguments are not touched.
    """
    # A server's snapshot holds JSON throughout; everything else holds messages.
    messages = list(current or [])
    if messages and not isinstance(messages[0], BaseMessage):
        messages = list(map(_revived, messages))
    # The state may come from a plain `add_messages` channel, whose messages have no place yet.
    last = _last_own(messages)
    if last is not None and sequence(last) < 0:
        messages = _stamped(messages)
    indexes = _indexes(messages)
    for message in _flatten(writes):
        if isinstance(message, RemoveMessage):
            if message.id == REMOVE_ALL_MESSAGES:
                messages, indexes = [], {}
            elif message.id in indexes:
                del messages[indexes[message.id]]
                indexes = _indexes(messages)
        elif is_recalled(message):
            messages = [kept for kept in messages if kept.id != message.id]
            question = _indexes(messages).get(marks(message).get("before"))
            if question is not None:
                messages.insert(question, message)
            indexes = _indexes(messages)
        elif message.id not in indexes and (asked := _retried(message, messages)) is not None:
            # Without its date the message counts as new again, and the run answers it.
            messages[indexes[asked.id]] = _undated(asked)
        elif message.id is not None and message.id in indexes:
            index = indexes[message.id]
            messages[index] = _replacing(message, messages[index])
        else:
            appended = _appended(message, _last_own(messages))
            indexes[appended.id] = len(messages)
            messages.append(appended)
    return messages


def _indexes(messages: Sequence[BaseMessage]) -> dict[str | None, int]:
    return {message.id: index for index, message in enumerate(messages)}


Messages = Annotated[list[AnyMessage], DeltaChannel(reduce_messages, snapshot_frequency=SNAPSHOT_EVERY)]
"""The working set as a state channel."""


def clean(text: str) -> str:
    """Replace what breaks stores and providers: NUL characters and lone surrogates."""
    if "\x00" in text:
        text = text.replace("\x00", "\N{REPLACEMENT CHARACTER}")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _flatten(writes: Iterable[Any]) -> Iterable[BaseMessage]:
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


def _revived(value: Any) -> BaseMessage:
    """Return a value as a message: LangGraph's servers keep one as the JSON of its fields."""
    if isinstance(value, BaseMessage):
        return value
    kind = _KINDS.get(value.get("type")) if isinstance(value, dict) and "additional_kwargs" in value else None
    return kind.model_validate(value) if kind is not None else convert_to_messages([value])[0]


def _last_own(messages: Sequence[BaseMessage]) -> BaseMessage | None:
    """Return the last message that has a place in the thread."""
    return next((message for message in reversed(messages) if not is_recalled(message)), None)


def _stamped(messages: list[BaseMessage]) -> list[BaseMessage]:
    stamped: list[BaseMessage] = []
    for message in messages:
        stamped.append(_appended(message, stamped[-1] if stamped else None))
    return stamped


def _retried(message: BaseMessage, messages: Sequence[BaseMessage]) -> BaseMessage | None:
    """Return the unanswered question that a message repeats word for word, as when a client sends it again.

    Only messages whose id the client did not choose count: none, or the random one that LangGraph
    stamps. Two messages with ids of their own are two messages.
    """
    if not isinstance(message, HumanMessage) or not (message.id is None or _RANDOM_ID.fullmatch(message.id)):
        return None
    if not messages or is_answer(messages[-1]):
        return None
    asked = next((earlier for earlier in reversed(messages) if isinstance(earlier, HumanMessage)), None)
    if asked is None or clean_content(message.content) != asked.content or message.name != asked.name:
        return None
    return asked


def _undated(message: BaseMessage) -> BaseMessage:
    kept = {key: value for key, value in marks(message).items() if key != "at"}
    return message.model_copy(update={"additional_kwargs": {**message.additional_kwargs, MARK: kept}})


def _appended(message: BaseMessage, last: BaseMessage | None) -> BaseMessage:
    seq = sequence(last) + 1 if last is not None else 0
    if isinstance(message, ToolMessage):
        # Of parallel calls whose turn was given up, a later result may be there without an earlier one, and the
        # transcript may have it already, at its place among them all.
        seq = max(seq, sequence(message))
    previous = last.id if last is not None else None
    content = clean_content(message.content)
    kwargs = {**message.additional_kwargs, MARK: {**marks(message), "seq": seq, "previous": previous}}
    name = _identifier(message.type, content, seq, previous) if message.id is None else message.id
    return message.model_copy(update={"content": content, "additional_kwargs": kwargs, "id": name})


def _replacing(message: BaseMessage, old: BaseMessage) -> BaseMessage:
    content = clean_content(message.content)
    # Other words under a known id are a new question; the same words are the one that has its answer.
    kept = ("seq", "previous", "at") if content == old.content else ("seq", "previous")
    merged = {**{key: value for key, value in marks(old).items() if key in kept}, **marks(message)}
    kwargs = {**message.additional_kwargs, MARK: merged}
    return message.model_copy(update={"content": content, "additional_kwargs": kwargs})


def _identifier(kind: str, content: Any, seq: int, previous: str | None) -> str:
    identity = f"{previous}\x00{seq}\x00{kind}\x00{content!r}"
    return "m-" + hashlib.sha256(identity.encode("utf-8", "replace")).hexdigest()[:24]


def clean_content(content: Any) -> Any:
    """Clean the text inside any content: a text, blocks, or nested values."""
    if isinstance(content, str):
        return clean(content)
    if isinstance(content, list):
        return [clean_content(block) for block in content]
    if isinstance(content, dict):
        return {key: clean_content(value) for key, value in content.items()}
    return content
