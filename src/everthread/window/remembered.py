"""Remember what was computed for a message while the same message object is looked at again."""

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from langchain_core.messages import AIMessage, BaseMessage

T = TypeVar("T")

_MOST_CHARACTERS = 8_000_000
"""Text that the remembered messages may hold; beyond it everything is forgotten at once."""


class Remembered(Generic[T]):
    """Values by message object: a turn asks the same few things of every message ten times.

    A message is known by its identity, that of its text, and the calls it makes, so a message that was
    changed in place or copied is new. One with content blocks is computed anew each time. Safe to
    share between threads: an entry is written in one step.
    """

    def __init__(self, compute: Callable[[BaseMessage], T]) -> None:
        self._compute = compute
        self._known: dict[int, tuple[BaseMessage, str, str | None, T]] = {}
        self._characters = 0

    def __call__(self, message: BaseMessage) -> T:
        """Return the value of a message."""
        return self.all((message,))[0]

    def all(self, messages: Iterable[BaseMessage]) -> list[T]:
        """Return the values of messages; one pass over a working set costs little more than reading it."""
        known, values = self._known, []
        for message in messages:
            entry = known.get(id(message))
            # The entry holds its message, so no other one can have its identity while it is here.
            if (
                entry is not None
                and entry[0] is message
                and entry[1] is message.content
                and (entry[2] is None or entry[2] == _calls(message))
            ):
                values.append(entry[3])
            else:
                values.append(self._computed(message))
                known = self._known
        return values

    def _computed(self, message: BaseMessage) -> T:
        value, content = self._compute(message), message.content
        if not isinstance(content, str):
            return value
        self._characters += len(content) + 500
        if self._characters > _MOST_CHARACTERS:
            self._known, self._characters = {}, 0
        self._known[id(message)] = (message, content, _calls(message), value)
        return value


def _calls(message: BaseMessage) -> str | None:
    """Return what tells one list of calls from another; None for a message that cannot call."""
    if not isinstance(message, AIMessage):
        return None
    calls = message.tool_calls or message.additional_kwargs.get("tool_calls")
    return repr(calls) if calls else ""
