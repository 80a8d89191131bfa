"""Somebody else's thread as our nodes need it: its messages with their places, and what our own state would hold.

The state of another agent has messages and nothing of ours. What we know beside them is in the store, a record for each
question: so it outlives turns that the agent takes without us, and a fork finds the record of the question that it
goes on from.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.messages import BaseMessage, RemoveMessage, messages_from_dict, messages_to_dict
from langgraph.store.base import BaseStore, GetOp, PutOp

from everthread.ledger.record import now
from everthread.state import State, namespaces
from everthread.state.marks import is_recalled, is_synthetic, marks
from everthread.state.places import Places, Record, holds, in_view, placed, places_of
from everthread.storage.transcript import archived
from everthread.window.turns import opens_turn, question_of

_STATE = ("summary_id", "turns", "reads_back", "moved", "calibration", "memory_digest", "ceiling", "overflows")
"""Keys of our state that the record has as they are."""


@dataclass(frozen=True)
class ThreadView:
    """What a call begins with."""

    state: State
    """As our own graph would have it."""
    is_new_question: bool
    """No call has answered this question yet."""
    sent: Sequence[BaseMessage]
    """The messages as the agent's own state has them."""
    gone: str | None
    """The newest message that had left the prompt."""

    @classmethod
    def load(cls, store: BaseStore, thread_id: str, sent: Sequence[BaseMessage]) -> "ThreadView":
        """Read the records of the questions that are in view.

        Args:
            store: has the records.
            thread_id: the thread.
            sent: the messages of the agent's state, oldest first, each with an id.
        """
        questions = [str(message.id) for message in sent if opens_turn(message)]
        found: list[Any] = store.batch([GetOp(namespaces.questions(thread_id), name) for name in questions])
        known = {name: item.value for name, item in zip(questions, found, strict=True) if item is not None}
        newest = next((name for name in reversed(questions) if name in known and holds(known[name], name, sent)), None)
        record: Record = {} if newest is None else known[newest]
        is_new = newest is None or newest != questions[-1]
        places = record["places"] if record else _archived_places(store, thread_id)
        # `inject_memory` dates the messages that come with a question.
        messages = placed(in_view(record, newest, sent), places, date=None if is_new else now())
        shown = {
            name: messages_from_dict([known[name]["recalled"]])[0] for name in record.get("shows", ()) if name in known
        }
        state: dict[str, Any] = {name: record[name] for name in _STATE if name in record}
        state["prefix"] = bytes.fromhex(record.get("prefix", ""))
        state["messages"] = [one for message in messages for one in (shown.get(str(message.id)), message) if one]
        return cls(cast(State, state), is_new, sent, record.get("gone"))

    def record(self, after: State, thread_id: str, *, stays: bool) -> PutOp:
        """Prepare the write of the record that the next call reads.

        Args:
            after: the state that this call leads to.
            thread_id: the thread.
            stays: what left the prompt stays in the agent's state.
        """
        messages = after.get("messages", [])
        question, left = question_of(messages), self.left(after)
        asked = str(question.id) if question is not None else ""
        recalled = {str(marks(message)["before"]): message for message in messages if is_recalled(message)}
        values: Mapping[str, Any] = after
        value = {
            **{name: values[name] for name in _STATE if name in values},
            "prefix": after.get("prefix", b"").hex(),
            "places": places_of(message for message in messages if not is_synthetic(message)),
            "recalled": messages_to_dict([recalled[asked]])[0] if asked in recalled else None,
            "shows": list(recalled),
            "gone": str(left[-1].id) if left else self.gone,
            "stays": stays,
        }
        return PutOp(namespaces.questions(thread_id), asked, value, index=False)

    def left(self, after: State) -> list[BaseMessage]:
        """Return the messages of the agent's state that are not in the state after the call."""
        kept = {message.id for message in after.get("messages", [])}
        return [message for message in self.sent if message.id not in kept]

    def writes(self, after: State) -> list[BaseMessage]:
        """Return what the agent's own channel has to be told: what left, and the stand-ins for what was masked."""
        before = {message.id: message.content for message in self.sent}
        messages = after.get("messages", [])
        changed = [one for one in messages if one.id in before and one.content != before[one.id]]
        return [*(RemoveMessage(id=str(message.id)) for message in self.left(after)), *changed]


def thread_messages(store: BaseStore, thread_id: str, sent: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return the messages of an agent's state with their places in the thread, as `transcript` needs them.

    Args:
        store: has the records.
        thread_id: the thread.
        sent: the messages of the agent's state, oldest first.
    """
    return list(ThreadView.load(store, thread_id, sent).state["messages"])


def _archived_places(store: BaseStore, thread_id: str) -> Places:
    """Return the places of what left earlier, for a thread none of whose questions in view has a record."""
    return places_of(archived(store, thread_id))
