"""The state as it is after an update."""

from collections.abc import Sequence
from typing import Any, cast

from langchain_core.messages import BaseMessage, RemoveMessage
from langgraph.types import Command

from everthread.state.messages import reduce_messages
from everthread.state.state import State

__all__ = ["updated"]


def updated(state: State, update: Any) -> State:
    """Return the state as the next node will read it.

    Args:
        state: what a node read.
        update: what it returned: an update, a command, or a list of them.
    """
    parts = update if isinstance(update, list) else [update]
    told = [part.update if isinstance(part, Command) else part for part in parts]
    new = [message for part in told if isinstance(part, dict) for message in part.get("messages", [])]
    messages: Sequence[Any] = state.get("messages", [])
    known = {message.id for message in messages}
    is_plain = all(isinstance(message, BaseMessage) for message in new)
    if is_plain and not any(isinstance(message, RemoveMessage) or message.id in known for message in new):
        messages = [*messages, *new]
    else:
        messages = reduce_messages(messages, [new])
    return cast(State, {**state, **(update if isinstance(update, dict) else {}), "messages": messages})
