"""Remember what was computed for a message while it is looked at again."""

import copy
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from langchain_core.messages import AIMessage, BaseMessage, ToolCall

from everthread.state.marks import MARK, marks

T = TypeVar("T")

_Key = int | tuple[str, int]

_MOST_CHARACTERS = 6_000_000
"""Text that the remembered messages may hold; beyond it everything is forgotten at once.

A trim to 100,000 tokens looks at 2,600 messages and makes 650 stubs, some 3.6 million.
"""

_ATOMS = frozenset({str, int, float, bool})


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
            # From the dictionary, since pydantic makes each attribute as slow as the whole look-up.
            fields = message.__dict__
            content, name = fields["content"], fields["id"]
            # A stand-in has the id of the whole message, and both are asked for by turns.
            key = (name, len(content)) if across_runs and name else id(message)
            entry = known.get(key)
            # The entry holds its message, so no other one can have its identity while it is here.
            if entry is not None:
                twin, text, calls, value = entry
                if (
                    (twin is message or (across_runs and _is_copy(message, twin)))
                    and (text is content or text == content)
                    and (calls is None or calls == fields["tool_calls"])
                ):
                    values.append(value)
                    if twin is not message:
                        known[key] = (message, text, calls, value)
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
        # A copy, to see it when the calls are changed in place.
        calls = _copied(message.tool_calls) if isinstance(message, AIMessage) else None
        self._known[key] = (message, content, calls, value)
        return value


def _is_copy(message: BaseMessage, known: BaseMessage) -> bool:
    """Tell whether two messages of one id differ in their text and calls at the most."""
    # Asked of every message of a run, since each run reads its messages anew.
    fields, others = message.__dict__, known.__dict__
    if type(message) is not type(known) or fields["name"] != others["name"] or "role" in fields:
        return False
    if "tool_call_id" in fields and fields["tool_call_id"] != others["tool_call_id"]:
        return False
    ours, theirs = fields["additional_kwargs"].get(MARK), others["additional_kwargs"].get(MARK)
    return bool(ours == theirs) or marks(message).get("kind") == marks(known).get("kind")


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
