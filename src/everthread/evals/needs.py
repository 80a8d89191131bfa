"""What a later call of a recorded conversation needed from earlier messages, and where it is at that call."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from everthread.errors import RecordError
from everthread.evals.records import Record
from everthread.memory.text.constraints import constraints_in
from everthread.state.marks import is_masked
from everthread.window.turns import opens_turn

Needs = Mapping[str, Sequence[str]]
"""Values by the id of the assistant message whose calls use them."""

_SHORTEST = 3
"""Characters of a value worth looking for: a shorter one is found by chance."""


def needed_values(record: Record) -> Needs:
    """Return the values that later calls used and earlier messages had.

    They are read from `gold.needed_values`, rows of `[message, argument, value, …]`, when the record has it. Otherwise
    they are found: an argument of a call counts when a message at least two places before has its text.

    Raises:
        RecordError: `gold.needed_values` has another form.
    """
    rows = record.gold.get("needed_values")
    if rows is None:
        return found_values(record.messages)
    needs: dict[str, list[str]] = {}
    try:
        for at, _, value, *_ in rows:
            needs.setdefault(str(at), []).append(str(value))
    except (TypeError, ValueError):
        raise RecordError(
            f"{record.where}: `gold.needed_values` must be rows of [message, argument, value, …]"
        ) from None
    return needs


def found_values(messages: Sequence[BaseMessage]) -> Needs:
    """Return the arguments of calls whose text an earlier message has, at least two messages before."""
    needs: dict[str, list[str]] = {}
    texts = [shown_text([message]) for message in messages]
    for place, message in enumerate(messages):
        if not isinstance(message, AIMessage) or not message.tool_calls:
            continue
        values = dict.fromkeys(value for call in message.tool_calls for value in _leaves(call["args"]))
        before = "\n".join(texts[: max(place - 1, 0)])
        if needed := [value for value in values if value in before]:
            needs[str(message.id)] = needed
    return needs


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for one in value.values():
            yield from _leaves(one)
    elif isinstance(value, list):
        for one in value:
            yield from _leaves(one)
    elif not isinstance(value, bool) and value is not None and len(str(value)) >= _SHORTEST:
        yield str(value)


def shown_text(messages: Sequence[BaseMessage]) -> str:
    """Return everything that a prompt says, the arguments of its calls included."""
    return "\n".join(f"{message.text}{_calls(message)}" for message in messages)


def _calls(message: BaseMessage) -> str:
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    return "".join(f"\n{call['name']} {json.dumps(call['args'], ensure_ascii=False)}" for call in calls)


def full_texts(record: Record) -> dict[str, str]:
    """Return the text of each message by its id, and of each result by its call."""
    texts = {str(message.id): str(message.text) for message in record.messages}
    results = [message for message in record.messages if isinstance(message, ToolMessage)]
    return texts | {message.tool_call_id: str(message.text) for message in results}


def behind_handles(prompt: Sequence[BaseMessage], texts: Mapping[str, str]) -> str:
    """Return the texts that the handles of a prompt lead to."""
    masked = [message for message in prompt if is_masked(message)]
    keys = [one.tool_call_id if isinstance(one, ToolMessage) else str(one.id) for one in masked]
    return "\n".join(texts.get(key, "") for key in keys)


class Rules:
    """Sentences that must be in every prompt from the message on that states them.

    Args:
        stated: sentences by the id of the user's message; None takes the constraints that are found in the texts.
        pins: sentences that must be there from the start.
    """

    def __init__(
        self, record: Record, stated: Mapping[str, Sequence[str]] | None = None, pins: Sequence[str] = ()
    ) -> None:
        messages = [message for message in record.messages if isinstance(message, HumanMessage)]
        self._order = {str(message.id): place for place, message in enumerate(messages)}
        if stated is None:
            stated = {str(message.id): constraints_in(str(message.text)) for message in messages}
        self._since: dict[str, int] = dict.fromkeys(pins, 0)
        for message_id, sentences in stated.items():
            for sentence in sentences:
                self._since.setdefault(sentence, self._order[message_id])
        self.seen = 0
        """Pairs of a sentence and a prompt that must have it."""
        self.missed: Counter[str] = Counter()
        """Prompts without the sentence, by sentence."""
        self.due: set[str] = set()
        """Sentences that some prompt had to have."""

    def look(self, prompt: Sequence[BaseMessage], text: str) -> None:
        """Check one prompt."""
        if not self._since:
            return
        said = [str(one.id) for one in filter(opens_turn, prompt)]
        newest = max((self._order.get(one, 0) for one in said), default=0)
        for sentence, since in self._since.items():
            if since > newest:
                continue
            self.seen += 1
            self.due.add(sentence)
            if sentence not in text:
                self.missed[sentence] += 1

    @property
    def kept(self) -> int:
        """Return the pairs of a sentence and a prompt that has it."""
        return self.seen - self.missed.total()
