"""What the user and the assistant said in all threads of a user, in one namespace of theirs.

The transcript of a thread has what left its prompt; a short thread has none. A search over the user's threads has to
find both, and no other user's, by one look into the index: so each message is kept here too, as its text. A question
is written when its turn begins, and with it the reply of the turn before, since a write of its own would cost every
turn a transaction; the end of a session writes the last one. What tools returned stays in its thread: it is nobody's
word, and would carry an instruction that somebody planted there into every other thread.

The key is thread and place, so that a step that runs again, and a fork by time travel, write over what they replace.
"""

from collections.abc import Iterable, Sequence
from itertools import takewhile

from langchain_core.messages import BaseMessage
from langgraph.store.base import BaseStore, Item, PutOp

from everthread.state import namespaces
from everthread.state.marks import ended_at_limit, is_answer, is_masked, is_synthetic, marks, sequence
from everthread.state.records import items, matching
from everthread.state.stored import StoredMessage

AnyMessage = BaseMessage | StoredMessage


def said_operations(thread_id: str, user_id: str, messages: Iterable[AnyMessage]) -> list[PutOp]:
    """Prepare the writes that make messages searchable in all threads of their user; a second time changes nothing.

    Args:
        user_id: who owns the thread; empty: nobody, and nothing is written.
        messages: with their places and dates; those that nobody said are left out.
    """
    if not user_id:
        return []
    space = namespaces.said(user_id)
    return [
        PutOp(space, said_key(thread_id, sequence(message)), _record(message, thread_id), index=None)
        for message in messages
        if _is_said(message)
    ]


def said_since_question(thread_id: str, user_id: str, messages: Sequence[AnyMessage]) -> list[PutOp]:
    """Prepare the writes of what was said after the newest question; see `said_operations`."""
    behind = takewhile(lambda one: one.type != "human" or is_synthetic(one), reversed(messages))
    return said_operations(thread_id, user_id, behind)


def reworded_operations(
    store: BaseStore, thread_id: str, user_id: str, before: Iterable[AnyMessage], after: Iterable[AnyMessage]
) -> list[PutOp]:
    """Prepare the writes of an edit: messages with other words are found as they read now, removed ones no more."""
    now = {message.id: str(message.text) for message in after}
    texts = {one.id: now.get(one.id, "") for one in before if now.get(one.id, "") != str(one.text)}
    if not texts:
        return []
    kept = {item.key: item.value for item in said_in(store, thread_id, user_id)}
    edited = {key: value for key, value in kept.items() if value.get("message_id") in texts}
    new = {key: {**value, "text": texts[value["message_id"]]} for key, value in edited.items()}
    space = namespaces.said(user_id)
    return [PutOp(space, key, value if value["text"].strip() else None, index=None) for key, value in new.items()]


def said_in(store: BaseStore, thread_id: str, user_id: str) -> Sequence[Item]:
    """Return what is kept of one thread of a user."""
    return matching(store, namespaces.said(user_id), {"thread_id": thread_id})


def last_place(store: BaseStore, thread_id: str, user_id: str, besides: Iterable[AnyMessage]) -> int:
    """Return the last place that the store knows in a thread, but for these messages; -1 when it knows none."""
    here = {message.id for message in besides}
    said = [one.value for one in said_in(store, thread_id, user_id) if one.value.get("message_id") not in here]
    spaces = (namespaces.transcript(thread_id), namespaces.removed(thread_id))
    left = [one.value for space in spaces for one in items(store, space) if one.key not in here]
    return max((int(value["seq"]) for value in (*said, *left)), default=-1)


def said_key(thread_id: str, seq: int) -> str:
    """Return the key of the message at a place of a thread."""
    return f"{namespaces.label(thread_id)}/{seq}"


def _is_said(message: AnyMessage) -> bool:
    is_of_both = message.type == "human" or (message.type == "ai" and is_answer(message))
    is_whole = not is_synthetic(message) and not is_masked(message) and sequence(message) >= 0
    return is_of_both and is_whole and not ended_at_limit(message) and bool(str(message.text).strip())


def _record(message: AnyMessage, thread_id: str) -> dict[str, object]:
    record = {
        "thread_id": thread_id,
        "seq": sequence(message),
        "message_id": message.id,
        "role": message.type,
        "name": message.name,
        "text": str(message.text),
        "date": marks(message).get("at"),
    }
    return {name: value for name, value in record.items() if value is not None}
