"""Legal cut points: turns, and inside them the groups that must never be torn apart."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeGuard, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from everthread.state.marks import is_synthetic

UNKNOWN_OUTCOME = (
    "No result: this call was interrupted before its result was recorded. "
    "Check whether it took effect before you repeat it."
)
"""What a call says in the prompt when its result never came."""

_BEGINNING_CHARACTERS = 80


@dataclass(slots=True)
class Group:
    """An assistant message with calls and all results of these calls, or one other message."""

    messages: list[BaseMessage]
    is_orphan: bool = False
    """This is a tool result whose call is not here."""
    missing: int = 0
    """Calls without a result; of two calls of one id, which share a result, one is missing."""

    @property
    def calls(self) -> dict[str, str]:
        """Tool name by call id."""
        first = self.messages[0]
        return {str(call["id"]): call["name"] for call in first.tool_calls} if isinstance(first, AIMessage) else {}

    @property
    def unanswered(self) -> tuple[str, ...]:
        """Ids of calls without a result: pending approvals, or what a crash cut off."""
        answered = {result.tool_call_id for result in self.results}
        return tuple(call for call in self.calls if call not in answered)

    @property
    def results(self) -> list[ToolMessage]:
        """Results of the calls, in the order they came."""
        return cast("list[ToolMessage]", self.messages if self.is_orphan else self.messages[1:])

    def legal(self) -> list[BaseMessage]:
        """Return the messages as a provider accepts them: every call answered, once, right after it."""
        if self.is_orphan:
            return []
        if len(self.messages) == 1 and not self.missing:
            return list(self.messages)
        answers: dict[str, BaseMessage] = {result.tool_call_id: result for result in self.results}
        calls = self.calls
        for call in calls.keys() - answers.keys():
            answers[call] = ToolMessage(UNKNOWN_OUTCOME, tool_call_id=call, name=calls[call], status="error")
        return [self.messages[0], *(answers[call] for call in calls)]


@dataclass(slots=True)
class Turn:
    """A user's message and all that follows it up to the next; the first may have no user's message."""

    groups: list[Group]

    @property
    def messages(self) -> list[BaseMessage]:
        """All messages, oldest first."""
        return [message for group in self.groups for message in group.messages]

    @property
    def question(self) -> HumanMessage | None:
        """The user's message that opened the turn."""
        first = self.groups[0].messages[0]
        return first if opens_turn(first) else None


def opens_turn(message: BaseMessage) -> TypeGuard[HumanMessage]:
    """Tell whether a message is the user's own and so begins a turn."""
    return isinstance(message, HumanMessage) and not is_synthetic(message)


def split(messages: Iterable[BaseMessage]) -> list[Turn]:
    """Split messages into turns and groups, whatever their order.

    A result joins its call even when other messages came between them; a result without a call is a
    group of its own that never reaches a prompt.
    """
    turns: list[Turn] = []
    waiting: dict[str, Group] = {}
    for message in messages:
        # The assistant first: most messages are its own, and to learn what a message is not takes longest.
        if isinstance(message, AIMessage):
            group, calls = Group([message]), message.tool_calls
            if calls:
                group.missing = len(calls)
                for call in calls:
                    waiting[str(call["id"])] = group
        elif isinstance(message, ToolMessage):
            call_group = waiting.pop(message.tool_call_id, None)
            if call_group is not None:
                call_group.messages.append(message)
                call_group.missing -= 1
                continue
            group = Group([message], is_orphan=True)
        else:
            group = Group([message])
            if opens_turn(message):
                turns.append(Turn([]))
        if not turns:
            turns.append(Turn([]))
        turns[-1].groups.append(group)
    return turns


def newest_turn(messages: Sequence[BaseMessage]) -> Sequence[BaseMessage]:
    """Return the messages from the current question on."""
    begin = next((place for place in range(len(messages) - 1, 0, -1) if opens_turn(messages[place])), 0)
    return messages[begin:]


def legal(messages: Iterable[BaseMessage]) -> list[BaseMessage]:
    """Return messages in an order and completeness that providers accept."""
    return [message for turn in split(messages) for group in turn.groups for message in group.legal()]


def anchor_of(messages: Sequence[BaseMessage]) -> BaseMessage | None:
    """Return the task anchor: the first message of the user."""
    return next((message for message in messages if opens_turn(message)), None)


def beginning(messages: Sequence[BaseMessage]) -> str:
    """Return how the first question of a thread begins, by which people know the thread again in a list."""
    first = next(filter(opens_turn, messages), None)
    words = "" if first is None else " ".join(str(first.text)[: 2 * _BEGINNING_CHARACTERS].split())
    return words if len(words) <= _BEGINNING_CHARACTERS else words[: _BEGINNING_CHARACTERS - 1].rstrip() + "…"


def question_of(messages: Sequence[BaseMessage]) -> BaseMessage | None:
    """Return the current question: the newest message of the user."""
    return next((message for message in reversed(messages) if opens_turn(message)), None)
