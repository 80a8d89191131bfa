"""Somebody else's thread as our nodes need it: its messages with their places, and what our own state would hold.

The state of another agent has messages and nothing of ours. What we know beside them is in the store, a record for each
model call, by the id of its reply: so it outlives turns that the agent takes without us, and a fork, or a run that
goes on after a crash, finds the record of the reply that it goes on from.
"""

import hashlib
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from langchain_core.messages import BaseMessage, RemoveMessage, messages_from_dict, messages_to_dict
from langgraph.store.base import BaseStore, GetOp, PutOp

from everthread.ledger.record import now
from everthread.state import State, namespaces
from everthread.state.marks import is_recalled, is_synthetic, marks, of_others, was_refetched
from everthread.state.places import (
    Place,
    Places,
    in_view,
    newest_record,
    placed,
    places_in,
    places_of,
    rows_of,
    with_renamed_reply,
)
from everthread.storage.transcript import archived
from everthread.window.turns import question_of

_STATE = ("call", "summary_id", "turns", "reads_back", "moved", "calibration", "memory_digest", "ceiling")
"""Keys of our state that the record has as they are."""

_FIRST_LOOK = 4
"""Messages among which the newest record is looked for first: behind it are a question, or the results of tools."""


@dataclass(frozen=True)
class ThreadView:
    """What a call begins with."""

    state: State
    """As our own graph would have it."""
    is_new_question: bool
    """No call has answered this question yet."""
    sent: Sequence[BaseMessage]
    """The messages as the agent's own state has them."""
    new: frozenset[str] = frozenset()
    """Ids of those that came since the last call; none in a thread without calls."""

    @classmethod
    def load(
        cls, store: BaseStore, thread_id: str, sent: Sequence[BaseMessage], *, is_guarded: bool = False
    ) -> "ThreadView":
        """Read the records of the messages that are in view.

        Args:
            sent: the messages of the agent's state, oldest first.
            is_guarded: the guard notes forks of the thread.
        """
        sent = of_others(with_ids(sent))
        space, names = namespaces.calls(thread_id), [str(message.id) for message in sent]
        records = _newest_records(store, space, names)
        name, record = newest_record(with_renamed_reply(records, sent, partial(_written_behind, store, space)))
        question, known = question_of(sent), places_in(record)
        is_new = question is None or str(question.id) not in known
        places = known or _archived_places(store, thread_id, names, is_guarded=is_guarded)
        # `inject_memory` dates the messages that come with a question.
        messages = placed(in_view(record, name, sent), places, date=None if is_new else now())
        blocks = _recalled(store, thread_id, record.get("shows", ()))
        state: dict[str, Any] = {key: record[key] for key in _STATE if key in record}
        state["prefix"] = bytes.fromhex(record.get("prefix", ""))
        state["messages"] = [one for message in messages for one in (blocks.get(str(message.id)), message) if one]
        return cls(cast(State, state), is_new, sent, frozenset(names) - known.keys() if known else frozenset())

    def record(self, after: State, thread_id: str, *, stays: bool) -> list[PutOp]:
        """Prepare the writes of the record that the next call reads.

        Args:
            stays: what left the prompt stays in the agent's state.
        """
        messages = after.get("messages", [])
        space, own = namespaces.calls(thread_id), [message for message in messages if not is_synthetic(message)]
        recalled = [message for message in messages if is_recalled(message)]
        values: Mapping[str, Any] = after
        value = {
            **{name: values[name] for name in _STATE if name in values},
            "prefix": after.get("prefix", b"").hex(),
            "after": str(self.sent[-1].id),
            "places": rows_of(own),
            "shows": [str(message.id) for message in recalled],
            "stays": stays,
        }
        here = {message.id for message in self.state.get("messages", [])}
        new = [message for message in recalled if message.id not in here]
        blocks = [PutOp(space, str(one.id), messages_to_dict([one])[0], index=False) for one in new]
        return [PutOp(space, str(own[-1].id), value, index=False), *blocks]

    def left(self, after: State) -> list[BaseMessage]:
        """Return the messages of the agent's state that are not in the state after the call."""
        kept = {message.id for message in after.get("messages", [])}
        return [message for message in self.sent if message.id not in kept]

    def writes(self, after: State) -> list[BaseMessage]:
        """Return what the agent's own channel has to be told: what left, and the stand-ins for what was masked,
        and what is masked last from now on."""
        before = {message.id: (message.content, was_refetched(message)) for message in self.sent}
        messages = after.get("messages", [])
        changed = [one for one in messages if one.id in before and before[one.id] != (one.content, was_refetched(one))]
        return [*(RemoveMessage(id=str(message.id)) for message in self.left(after)), *changed]


def with_ids(messages: Sequence[BaseMessage]) -> Sequence[BaseMessage]:
    """Return the messages of an agent's state, each with an id, the same one at every call.

    A delta channel that is not ours keeps an input without one, such as a mere text, as it came.
    """
    if all(message.id is not None for message in messages):
        return messages
    named: list[BaseMessage] = []
    for message in messages:
        ahead = named[-1].id if named else None
        text = f"{ahead}\x00{message.type}\x00{message.content!r}"
        name = message.id or "u-" + hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:24]
        named.append(message if message.id else message.model_copy(update={"id": name}))
    return named


def thread_messages(store: BaseStore, thread_id: str, sent: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return the messages of an agent's state with their places in the thread, as `transcript` needs them.

    Args:
        sent: the messages of the agent's state, oldest first.
    """
    return list(ThreadView.load(store, thread_id, sent).state["messages"])


def _newest_records(store: BaseStore, space: namespaces.Namespace, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the records behind messages, by message id, looked for from the newest message on.

    No record is newer than one that has the places of all messages ahead of it, so those that are left need not be
    read. Behind a question that moved to the end of its thread the newest message has an older one.
    """
    records: dict[str, dict[str, Any]] = {}
    end, size = len(names), _FIRST_LOOK
    while end > 0:
        looked_at = names[max(end - size, 0) : end]
        found: list[Any] = store.batch([GetOp(space, name) for name in looked_at])
        records |= {item.key: item.value for item in found if item is not None}
        name, record = newest_record(records)
        if name is not None and places_in(record).keys() >= set(names[: names.index(name)]):
            break
        end, size = end - size, 2 * size
    return records


def _written_behind(store: BaseStore, space: namespaces.Namespace, name: str) -> list[dict[str, Any]]:
    return [item.value for item in store.search(space, filter={"after": name})]


def _recalled(store: BaseStore, thread_id: str, names: Sequence[str]) -> dict[str, BaseMessage]:
    """Return what was recalled and is in view, by the id of its question."""
    found: list[Any] = store.batch([GetOp(namespaces.calls(thread_id), name) for name in names]) if names else []
    blocks = messages_from_dict([item.value for item in found if item is not None])
    return {str(marks(block)["before"]): block for block in blocks}


def _archived_places(store: BaseStore, thread_id: str, names: Sequence[str], *, is_guarded: bool) -> Places:
    """Return the places of what left earlier, for a thread none of whose messages in view has a record.

    While all of it is still in the agent's state, the call that archived it failed, and the order of the state counts.
    """
    places = places_of(archived(store, thread_id))
    if all(name in names for name in places):
        return {}
    # Behind the last one that is here too, the archive may be another branch's.
    last = max((place.seq for name, place in places.items() if name in names), default=None)
    is_apart = last is None and not any(place.previous in names for place in places.values())
    if is_apart and is_guarded and _has_one_branch(store, thread_id):
        # The app has taken all messages out of its state: what is there now came later. In a fork from ahead of the
        # first message, which nothing tells from that without the guard, it must not be linked to the other branch.
        return places
    places = {name: place for name, place in places.items() if last is None or place.seq <= last}
    # The first question, which never leaves, is in no archive.
    ahead = itertools.takewhile(lambda name: name not in places, names)
    return places | {name: Place(seq, None, None) for seq, name in enumerate(ahead)}


def _has_one_branch(store: BaseStore, thread_id: str) -> bool:
    session = store.get(namespaces.SESSIONS, thread_id)
    return session is not None and session.value.get("shared") is None
