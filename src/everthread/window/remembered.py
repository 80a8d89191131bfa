"""Remember what was computed for a message while it is looked at again."""

import copy
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Generic, TypeVar
from weakref import ref

from langchain_core.messages import AIMessage, BaseMessage, ToolCall

from everthread.state.marks import marks

T = TypeVar("T")

_Key = int | tuple[str, int]
_Entry = tuple[Callable[[], BaseMessage | None], tuple[Any, ...], str, list[ToolCall] | None, T]
"""The message while it lives, what else tells it, its text, its calls, and the value."""

_MOST_CHARACTERS = 6_000_000
"""Text that the remembered messages may hold; beyond it everything is forgotten at once.

A trim to 100,000 tokens looks at 2,600 messages and makes 650 stubs, some 3.6 million.
"""

_ATOMS = frozenset({str, int, float, bool})

# Each object that lives is one more for the garbage collector to look at.
_NO_CALLS: list[ToolCall] = []
_MOST_COPIES = 4_096
_copies: dict[_Key, list[ToolCall]] = {}


class Remembered(Generic[T]):
    """Values by message: a turn asks the same few things of every message ten times, and so does the next run.

    A message is known by its identity, that of its text, and the calls it makes. Each run reads its messages
    anew, so one that has the id and says word for word the same is the same message, unless that is turned off.
    One with content blocks or raw calls is computed anew each time. Only its text is held, and the message itself
    where nothing else tells it from others. Safe to share between threads: an entry is written in one step.
    """

    def __init__(self, compute: Callable[[BaseMessage], T], *, across_runs: bool = True) -> None:
        """Remember what is computed.

        Args:
            compute: depends on type, name, text, calls, the call that is answered and the kind of a message alone.
            across_runs: off, it may depend on everything, and the value is that of one message object.
        """
        self._compute = compute
        self._across_runs = across_runs
        self._known: dict[_Key, _Entry[T]] = {}
        self._characters = 0

    def __call__(self, message: BaseMessage) -> T:
        """Return the value of a message."""
        return self.all((message,))[0]

    def all(self, messages: Iterable[BaseMessage]) -> list[T]:
        """Return the values of messages; one pass over a working set costs little more than reading it."""
        known, values, across_runs = self._known, [], self._across_runs
        for message in messages:
            # From the dictionary, since pydantic makes each attribute as slow as the whole look-up.
            fields = message.__dict__
            content, name = fields["content"], fields["id"]
            # A stand-in has the id of the whole message, and both are asked for by turns.
            key = (name, len(content)) if across_runs and name else id(message)
            entry = known.get(key)
            # Where identity is all that counts the entry holds its message, so that no other one can have it.
            if entry is not None:
                twin, facts, text, calls, value = entry
                is_same = twin() is message
                if (
                    (is_same or (across_runs and facts == _facts(message)))
                    and (text is content or text == content)
                    and (calls is None or calls == fields["tool_calls"])
                ):
                    values.append(value)
                    if not is_same:
                        known[key] = (ref(message), facts, text, calls, value)
                    continue
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
        calls = _copy_of(key, message.tool_calls) if isinstance(message, AIMessage) else None
        twin = ref(message) if self._across_runs else partial(_held, message)
        self._known[key] = (twin, _facts(message), content, calls, value)
        return value


def _held(message: BaseMessage) -> BaseMessage:
    return message


def _facts(message: BaseMessage) -> tuple[Any, ...]:
    """Return what two messages of one id share, next to text and calls, when they are the same one.

    Asked of every message of a run, since each run reads its messages anew. All of it is text, which the garbage
    collector has no need to look at.
    """
    fields = message.__dict__
    kind = marks(message).get("kind")
    return type(message).__qualname__, fields["name"], fields.get("role"), fields.get("tool_call_id"), kind


def _copy_of(key: _Key, calls: list[ToolCall]) -> list[ToolCall]:
    """Return a copy of calls, to see it when they are changed in place; all that remember a message share it."""
    if not calls:
        return _NO_CALLS
    if len(_copies) >= _MOST_COPIES:
        _copies.clear()
    known = _copies.get(key)
    if known is None or known != calls:
        _copies[key] = known = _copied(calls)
    return known


def _copied(value: Any) -> Any:
    """Copy what JSON knows in a tenth of the time of `deepcopy`, and anything else with it."""
    if value is None or type(value) in _ATOMS:
        return value
    if type(value) is dict:
        return {name: _copied(inner) for name, inner in value.items()}
    return list(map(_copied, value)) if type(value) is list else copy.deepcopy(value)


def _has_raw_calls(message: BaseMessage) -> bool:
    """Tell whether a message has calls as some provider wrote them; it is seldom, and computed anew each time."""
    if not isinstance(message, AIMessage):
        return False
    raw = message.additional_kwargs
    return bool(message.invalid_tool_calls or "tool_calls" in raw or "function_call" in raw)
