"""Remember what was computed for a message while it is looked at again."""

import copy
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from langchain_core.messages import AIMessage, BaseMessage, ChatMessage, ToolCall, ToolMessage

from everthread.state.marks import marks

T = TypeVar("T")

_Key = int | tuple[str, int]

_MOST_CHARACTERS = 3_000_000
"""Text that the remembered messages may hold; beyond it everything is forgotten at once."""


class Remembered(Generic[T]):
    """Values by message: a turn asks the same few things of every message ten times, and so does the next run.

    A message is known by its identity, that of its text, and the calls it makes. Each run reads its messages
    anew, so one that has the id and says word for word the same is the same message, unless that is turned off.
    One with content blocks or raw calls is computed anew each time. Safe to share between threads: an entry is
    written in one step.
    """

    def __init__(self, compute: Callable[[BaseMessage], T], *, across_runs: bool = True) -> None:
        """Remember what is computed.

        Args:
            compute: depends on type, name, text, calls, the call that is answered and the kind of a message alone.
            across_runs: off, it may depend on everything, and the value is that of one message object.
        """
        self._compute = compute
        self._across_runs = across_runs
        self._known: dict[_Key, tuple[BaseMessage, str, list[ToolCall] | None, T]] = {}
        self._characters = 0

    def __call__(self, message: BaseMessage) -> T:
        """Return the value of a message."""
        return self.all((message,))[0]

    def all(self, messages: Iterable[BaseMessage]) -> list[T]:
        """Return the values of messages; one pass over a working set costs little more than reading it."""
        known, values, across_runs = self._known, [], self._across_runs
        for message in messages:
            # A stand-in has the id of the whole message, and both are asked for by turns.
            key = (message.id, len(message.content)) if across_runs and message.id else id(message)
            entry = known.get(key)
            # The entry holds its message, so no other one can have its identity while it is here.
            if (
                entry is not None
                and (entry[0] is message or (across_runs and _is_copy(message, entry[0])))
                and (entry[1] is message.content or entry[1] == message.content)
                and (entry[2] is None or entry[2] == message.tool_calls)  # type: ignore[attr-defined]
            ):
                values.append(entry[3])
                if entry[0] is not message:
                    known[key] = (message, *entry[1:])
            else:
                values.append(self._computed(key, message))
                known = self._known
        return values

    def _computed(self, key: _Key, message: BaseMessage) -> T:
        value, content = self._compute(message), message.content
        if not isinstance(content, str) or _has_raw_calls(message):
            return value
        self._characters += len(content) + 500
        if self._characters > _MOST_CHARACTERS:
            self._known, self._characters = {}, 0
        # A copy, to see it when the calls are changed in place.
        calls = copy.deepcopy(message.tool_calls) if isinstance(message, AIMessage) else None
        self._known[key] = (message, content, calls, value)
        return value


def _is_copy(message: BaseMessage, known: BaseMessage) -> bool:
    """Tell whether two messages of one id differ in their text and calls at the most."""
    if type(message) is not type(known) or message.name != known.name or isinstance(message, ChatMessage):
        return False
    if isinstance(message, ToolMessage) and message.tool_call_id != known.tool_call_id:  # type: ignore[attr-defined]
        return False
    return marks(message).get("kind") == marks(known).get("kind")


def _has_raw_calls(message: BaseMessage) -> bool:
    """Tell whether a message has calls as some provider wrote them; it is seldom, and computed anew each time."""
    if not isinstance(message, AIMessage):
        return False
    raw = message.additional_kwargs
    return bool(message.invalid_tool_calls or "tool_calls" in raw or "function_call" in raw)
