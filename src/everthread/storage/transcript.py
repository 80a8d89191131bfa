"""The transcript of a thread: in the store what left the working set, which with the working set is every message.

What is in the store is the archive: `archived`, `archived_by_id` and `full_text` read it alone, `transcript` puts the
working set behind it. Everything goes through LangGraph's `BaseStore`, so nodes can use it with `runtime.store`.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

from langchain_core.messages import BaseMessage, messages_from_dict, messages_to_dict
from langgraph.store.base import BaseStore, GetOp, Item, PutOp

from everthread.state import namespaces
from everthread.state.marks import is_masked, is_synthetic, marks, sequence
from everthread.state.records import StoredItem, items
from everthread.state.stored import message_text, whole_thread
from everthread.storage.unreadable import readable

__all__ = [
    "append_operations",
    "archived",
    "archived_by_id",
    "brief",
    "full_text",
    "message_of",
    "message_text",
    "transcript",
]


def append_operations(
    thread_id: str,
    user_id: str,
    messages: Sequence[BaseMessage],
    *,
    why: str,
    at: str,
    among: Sequence[BaseMessage] = (),
) -> list[PutOp]:
    """Prepare the writes that archive messages; the key is the message id, so a retry changes nothing.

    Args:
        messages: complete messages; masked stand-ins and synthetic ones are left out.
        why: `evicted`, `compacted` or `offloaded`.
        at: time of the decision, ISO 8601.
        among: the working set, which knows what comes after the last of them.
    """
    following = {marks(message).get("previous"): message.id for message in among or messages}
    namespace = namespaces.transcript(thread_id)
    return [
        PutOp(namespace, str(message.id), _record(message, user_id, why, at, following.get(message.id)), index=None)
        for message in messages
        if not is_masked(message) and not is_synthetic(message)
    ]


def archived(store: BaseStore, thread_id: str) -> list[BaseMessage]:
    """Return all archived messages of a thread, oldest first."""
    return sorted(readable(items(store, namespaces.transcript(thread_id)), message_of), key=sequence)


def transcript(store: BaseStore, thread_id: str, working_set: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return every message of a thread, oldest first, of the archive and the working set; see `whole_thread`."""
    every = items(store, namespaces.transcript(thread_id))
    offloaded = {item.key for item in every if item.value.get("why") == "offloaded"}
    archive = dict(readable(every, lambda item: (item.key, message_of(item))))
    return whole_thread(archive, offloaded, working_set)


def archived_by_id(store: BaseStore, thread_id: str, message_ids: Sequence[str]) -> list[BaseMessage]:
    """Return the archived messages of these ids, oldest first; those that are not there are left out."""
    namespace = namespaces.transcript(thread_id)
    found = store.batch([GetOp(namespace, message_id) for message_id in message_ids]) if message_ids else []
    return sorted(readable([item for item in found if isinstance(item, Item)], message_of), key=sequence)


def full_text(store: BaseStore, thread_id: str, message_id: str) -> str | None:
    """Return the whole text of an archived message; None when the thread has no such message."""
    return next(map(message_text, archived_by_id(store, thread_id, [message_id])), None)


def _record(message: BaseMessage, user_id: str, why: str, at: str, following: str | None) -> dict[str, Any]:
    record = {
        "seq": sequence(message),
        "role": message.type,
        "message": brief(message),
        "previous": marks(message).get("previous"),
        "next": following,
        "user_id": user_id,
        "date": marks(message).get("at", at),
        "why": why,
    }
    return {name: value for name, value in record.items() if value is not None}


def brief(message: BaseMessage) -> dict[str, Any]:
    """Return a message as LangChain's JSON without what reading fills in: half of a short message is empty fields."""
    serialized = messages_to_dict([message])[0]
    defaults = _defaults(type(message))
    data = {name: value for name, value in serialized["data"].items() if defaults.get(name, _REQUIRED) != value}
    return {"type": serialized["type"], "data": data}


@cache
def _defaults(kind: type[BaseMessage]) -> dict[str, Any]:
    fields = kind.model_fields.items()
    return {name: field.get_default(call_default_factory=True) for name, field in fields if not field.is_required()}


_REQUIRED = object()


def message_of(item: StoredItem) -> BaseMessage:
    """Return the message of a record; one of the `FAULTS` is raised when it cannot be read."""
    message = messages_from_dict([item.value["message"]])[0]
    sequence(message)  # a place that is no number is found here, and not when messages are sorted
    return message
