"""Legal cut points: turns, and inside them the groups that must never be torn apart."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from everthread.state.marks import is_synthetic

UNKNOWN_OUTCOME = (
    "No result: this call was interrupted before its result was recorded. "
    "Check whether it took effect before you repeat it."
)
"""What a call says in the prompt when its result never came."""

Count = Callable[[BaseMessage], int]
"""Tokens of one message."""


@dataclass(frozen=True)
class Group:
    """An assistant message with calls and all results of these calls, or one other message."""

    messages: tuple[BaseMessage, ...]

    @cached_property
    def calls(self) -> dict[str, str]:
        """Tool name by call id."""
        first = self.messages[0]
        return {str(call["id"]): call["name"] for call in first.tool_calls} if isinstance(first, AIMessage) else {}

    @cached_property
    def unanswered(self) -> tuple[str, ...]:
        """Ids of calls without a result: pending approvals, or what a crash cut off."""
        answered = {result.tool_call_id for result in self.results}
        return tuple(call for call in self.calls if call not in answered)

    @cached_property
    def results(self) -> tuple[ToolMessage, ...]:
        """Results of the calls, in the order they came."""
        return tuple(message for message in self.messages if isinstance(message, ToolMessage))

    @property
    def is_orphan(self) -> bool:
        """Tell whether this is a tool result whose call is not here."""
        return isinstance(self.messages[0], ToolMessage)

    def legal(self) -> list[BaseMessage]:
        """Return the messages as a provider accepts them: every call answered, once, right after it."""
        first = self.messages[0]
        if len(self.messages) == 1 and not (isinstance(first, AIMessage) and first.tool_calls):
            return [] if isinstance(first, ToolMessage) else [first]
        if self.is_orphan:
            return []
        answers: dict[str, BaseMessage] = {result.tool_call_id: result for result in self.results}
        for call in self.unanswered:
            answers[call] = ToolMessage(UNKNOWN_OUTCOME, tool_call_id=call, name=self.calls[call], status="error")
        return [self.messages[0], *(answers[call] for call in self.calls)]


@dataclass(frozen=True)
class Turn:
    """A user's message and all that follows it up to the next; the first may have no user's message."""

    groups: tuple[Group, ...]

    @property
    def messages(self) -> list[BaseMessage]:
        """All messages, oldest first."""
        return [message for group in self.groups for message in group.messages]

    @property
    def question(self) -> HumanMessage | None:
        """The user's message that opened the turn."""
        first = self.groups[0].messages[0]
        return first if opens_turn(first) and isinstance(first, HumanMessage) else None

    def tokens(self, count: Count) -> int:
        """Return the turn's size in the prompt."""
        return sum(count(message) for group in self.groups for message in group.legal())


def opens_turn(message: BaseMessage) -> bool:
    """Tell whether a message is the user's own and so begins a turn."""
    return isinstance(message, HumanMessage) and not is_synthetic(message)


def split(messages: Iterable[BaseMessage]) -> list[Turn]:
    """Split messages into turns and groups, whatever their order.

    A result joins its call even when other messages came between them; a result without a call is a
    group of its own that never reaches a prompt.
    """
    turns: list[list[list[BaseMessage]]] = []
    waiting: dict[str, list[BaseMessage]] = {}
    for message in messages:
        if isinstance(message, ToolMessage) and message.tool_call_id in waiting:
            waiting.pop(message.tool_call_id).append(message)
            continue
        if not turns or opens_turn(message):
            turns.append([])
        group = [message]
        turns[-1].append(group)
        if isinstance(message, AIMessage):
            waiting.update({str(call["id"]): group for call in message.tool_calls})
    return [Turn(tuple(Group(tuple(group)) for group in groups)) for groups in turns]


def last_turn(messages: Sequence[BaseMessage]) -> Turn:
    """Return the newest turn of a working set, without splitting the ones before it.

    Args:
        messages: the working set, oldest first; not empty.
    """
    begin = next((place for place in range(len(messages) - 1, 0, -1) if opens_turn(messages[place])), 0)
    return split(messages[begin:])[-1]


def legal(messages: Iterable[BaseMessage]) -> list[BaseMessage]:
    """Return messages in an order and completeness that providers accept."""
    messages = list(messages)
    if _is_legal(messages):
        return messages
    return [message for turn in split(messages) for group in turn.groups for message in group.legal()]


def _is_legal(messages: Sequence[BaseMessage]) -> bool:
    """Tell whether each call has its results right behind it in the order of the calls, as is nearly always so."""
    waiting: list[str] = []
    known: set[str] = set()
    for message in messages:
        if isinstance(message, ToolMessage):
            if not waiting or message.tool_call_id != waiting.pop():
                return False
        elif waiting:
            return False
        elif isinstance(message, AIMessage) and message.tool_calls:
            waiting = [str(call["id"]) for call in reversed(message.tool_calls)]
            # Two calls of one id share a result, which only the long way sorts out.
            if not known.isdisjoint(waiting) or len(set(waiting)) < len(waiting):
                return False
            known.update(waiting)
    return not waiting


def anchor_of(messages: Sequence[BaseMessage]) -> BaseMessage | None:
    """Return the task anchor: the first message of the user."""
    return next((message for message in messages if opens_turn(message)), None)


def question_of(messages: Sequence[BaseMessage]) -> BaseMessage | None:
    """Return the current question: the newest message of the user."""
    return next((message for message in reversed(messages) if opens_turn(message)), None)
