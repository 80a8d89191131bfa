"""Remember what was computed for a message while the same message object is looked at again."""

from collections.abc import Callable
from typing import Generic, TypeVar

from langchain_core.messages import BaseMessage

T = TypeVar("T")

_MOST_CHARACTERS = 8_000_000
"""Text that the remembered messages may hold; beyond it everything is forgotten at once."""


class Remembered(Generic[T]):
    """Values by message object: a turn asks the same few things of every message ten times.

    A message is known by its identity and by that of its content, so a message that was changed or
    copied is new. Safe to share between threads: an entry is written in one step.
    """

    def __init__(self, compute: Callable[[BaseMessage], T]) -> None:
        self._compute = compute
        self._known: dict[int, tuple[BaseMessage, object, T]] = {}
        self._characters = 0

    def __call__(self, message: BaseMessage) -> T:
        """Return the value of a message."""
        entry = self._known.get(id(message))
        # The entry holds its message, so no other one can have its identity while it is here.
        if entry is not None and entry[0] is message and entry[1] is message.content:
            return entry[2]
        value = self._compute(message)
        content = message.content
        self._characters += (len(content) if isinstance(content, str) else 4_000) + 500
        if self._characters > _MOST_CHARACTERS:
            self._known, self._characters = {}, 0
        self._known[id(message)] = (message, content, value)
        return value
