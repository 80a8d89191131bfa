"""What Everthread writes into a message's metadata, in one place.

Providers ignore unknown `additional_kwargs`, checkpoints keep them, and people can read them.

| mark | on | says |
|---|---|---|
| `seq`, `previous` | every message of the thread | its place, from 0, and the id of the message ahead of it |
| `at` | every message that a run took in or made | when, ISO 8601; one without it `is_new` |
| `counted` | unanswered questions that were sent again as plain text | no date, yet it `was_counted` as a turn |
| `handle`, `tokens` | masked stand-ins | what `read_tool_output` takes, and the tokens of the full text |
| `kept` | tool results | it `was_refetched`, and is masked last |
| `refused` | replies | their turn `ended_at_limit` of `Spend`, and no model made them |
| `final` | tool results | they are the reply, such as a structured answer |
| `kind` | synthetic messages | what they carry; they have no place in the thread |
| `before`, `shows`, `notes` | recalled messages | id of their question; ids and note lines that they show |

The reducer of `state.messages` gives `seq`, `previous` and `counted`, the nodes give the others. What a caller sends
has none of its own: `graph.inputs` takes them off before anything reads them.
"""

import hashlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage, HumanMessage

MARK = "everthread"
"""Key in `additional_kwargs` under which all our metadata lives."""

RECALLED = "recalled"
"""Kind of the synthetic messages that stay in the working set until a compaction."""

MessageT = TypeVar("MessageT", bound="BaseMessage")


class Marked(Protocol):
    """A message of LangChain, or one that was read back without it."""

    @property
    def additional_kwargs(self) -> dict[str, Any]:
        """What providers are not sent."""


def marks(message: Marked) -> dict[str, Any]:
    """Return our metadata of a message; empty when there is none."""
    found = message.additional_kwargs.get(MARK)
    return found if isinstance(found, dict) else {}


def marked(message: MessageT, **values: Any) -> MessageT:
    """Copy a message with more metadata; the original is not touched."""
    kwargs = {**message.additional_kwargs, MARK: {**marks(message), **values}}
    return message.model_copy(update={"additional_kwargs": kwargs})


def marked_only(message: MessageT, ours: Mapping[str, Any]) -> MessageT:
    """Copy a message with these marks and no others: what somebody else has written there is not ours."""
    if not ours and MARK not in message.additional_kwargs:
        return message
    kwargs = {name: value for name, value in message.additional_kwargs.items() if name != MARK}
    return message.model_copy(update={"additional_kwargs": {**kwargs, **({MARK: dict(ours)} if ours else {})}})


def of_others(messages: Iterable[MessageT]) -> list[MessageT]:
    """Copy messages of somebody else's state, where we mark replies and results only: other marks are a client's."""
    return [one if one.type in ("ai", "tool") else marked_only(one, {}) for one in messages]


def synthetic(kind: str, content: str, **values: Any) -> "HumanMessage":
    """Make a message that carries memory or a request of ours and never counts as a user's turn."""
    # Taken when called: marks are read without LangChain too.
    from langchain_core.messages import HumanMessage

    return HumanMessage(content=content, additional_kwargs={MARK: {"kind": kind, **values}})


def is_new(message: Marked) -> bool:
    """Tell whether a message came with this run: `inject_memory` dates it, and every later run finds it dated."""
    return "at" not in marks(message)


def was_counted(message: Marked) -> bool:
    """Tell whether a new message is a question whose turn an earlier run has counted, and died without an answer."""
    return bool(marks(message).get("counted"))


def is_answer(message: Marked) -> bool:
    """Tell whether a message ends its turn: a reply without calls, or a result that is the reply."""
    kind, calls = getattr(message, "type", ""), getattr(message, "tool_calls", ())
    return bool(marks(message).get("final")) or (kind == "ai" and not calls)


def is_synthetic(message: Marked) -> bool:
    """Tell whether a message was made by Everthread rather than by the user, the model or a tool."""
    return "kind" in marks(message)


def is_recalled(message: Marked) -> bool:
    """Tell whether a message holds passages and notes that were recalled for the question behind it."""
    return marks(message).get("kind") == RECALLED


def recalled_id(question_id: str | None) -> str:
    """Return the id of what was recalled for a question."""
    return f"{RECALLED}-{question_id}"


def is_masked(message: Marked) -> bool:
    """Tell whether the message is a shortened stand-in whose full text is in the transcript."""
    return "handle" in marks(message)


def was_refetched(message: Marked) -> bool:
    """Tell whether a tool result had to be fetched a second time, so that it is masked last."""
    return bool(marks(message).get("kept"))


def ended_at_limit(message: Marked) -> bool:
    """Tell whether a message is the reply of a turn that ended at a limit of `Spend`."""
    return bool(marks(message).get("refused"))


def sequence(message: Marked) -> int:
    """Return the message's place in its thread, from 0; -1 when the reducer has not seen it."""
    return int(marks(message).get("seq", -1))


def handle_of(message_id: str) -> str:
    """Derive the handle under which the full text of a message can be read."""
    return "h" + hashlib.sha256(message_id.encode("utf-8", "replace")).hexdigest()[:8]
