"""Read threads back: their records, every message, what is still open."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START
from langgraph.store.base import BaseStore, Item
from langgraph.types import StateSnapshot
from pydantic import ValidationError

from everthread.agents import travel
from everthread.errors import NotFoundError, StorageError
from everthread.graph.agent import build_graph
from everthread.state import Note, namespaces
from everthread.state.marks import is_masked, marks
from everthread.state.messages import reduce_messages
from everthread.storage.open import Storage
from everthread.storage.summaries import load_summary
from everthread.storage.transcript import transcript

__all__ = [
    "ThreadView",
    "exists",
    "is_open",
    "long_term_notes",
    "read_thread",
    "record_of",
    "records",
    "role_of",
    "session_notes",
    "unknown",
]

_PAGE = 500

_ROLES = {"human": "user", "ai": "assistant", "tool": "tool", "system": "system"}


@dataclass(frozen=True)
class ThreadView:
    """A thread as it is in the database."""

    thread_id: str
    record: dict[str, Any] | None
    """The session's record; None when a crash came before the first one."""
    messages: list[BaseMessage]
    """Every message, oldest first, in full."""
    working_set: dict[str, BaseMessage]
    """By id, what the next prompt is made from."""
    summary: dict[str, Any] | None
    turns: int
    notes: list[Note]
    """Session notes."""
    unfinished: bool
    asked: list[Any]
    """Approvals that a turn waits for."""

    def as_json(self, limit: int | None = None) -> dict[str, Any]:
        """Return the thread as one JSON object, with its newest `limit` messages."""
        return {
            "thread_id": self.thread_id,
            "user_id": (self.record or {}).get("user_id"),
            "agent": (self.record or {}).get("agent"),
            "messages": [self._message(message) for message in self.newest(limit)],
            "messages_total": len(self.messages),
            "summary": self.summary,
            "session_notes": [note.value() for note in self.notes],
            "turns": self.turns,
            "unfinished": self.unfinished,
            "waiting_for": self.asked,
        }

    def newest(self, limit: int | None) -> list[BaseMessage]:
        """Return the newest messages, oldest first; None returns all."""
        return self.messages if limit is None else self.messages[max(len(self.messages) - limit, 0) :]

    def is_masked(self, message: BaseMessage) -> bool:
        """Tell whether the prompt has only head and tail of a message."""
        kept = self.working_set.get(str(message.id))
        return kept is not None and is_masked(kept)

    def _message(self, message: BaseMessage) -> dict[str, Any]:
        told: dict[str, Any] = {"id": message.id, "role": role_of(message), "content": str(message.text)}
        if isinstance(message, AIMessage) and message.tool_calls:
            told["tool_calls"] = [
                {"id": call["id"], "name": call["name"], "args": call["args"]} for call in message.tool_calls
            ]
        if isinstance(message, ToolMessage):
            told |= {"tool_call_id": message.tool_call_id, "name": message.name, "status": message.status}
        if at := marks(message).get("at"):
            told["at"] = at
        return told | {"in_prompt": str(message.id) in self.working_set, "masked": self.is_masked(message)}


def role_of(message: BaseMessage) -> str:
    """Return the role of a message, such as `user`."""
    return _ROLES.get(message.type, message.type)


def records(store: BaseStore, user_id: str | None = None) -> list[dict[str, Any]]:
    """Return the sessions' records, the latest activity first.

    Args:
        store: where they are.
        user_id: only this user's; None returns all.
    """
    found: list[dict[str, Any]] = []
    read = 0
    while page := store.search(namespaces.SESSIONS, limit=_PAGE, offset=read):
        read += len(page)
        found += [{"thread_id": item.key, **item.value} for item in page]
    mine = [record for record in found if user_id is None or record.get("user_id") == user_id]
    return sorted(mine, key=lambda record: str(record.get("last_activity", "")), reverse=True)


def record_of(store: BaseStore, thread_id: str) -> dict[str, Any] | None:
    """Return a thread's record; None when it has none."""
    item = store.get(namespaces.SESSIONS, thread_id)
    return None if item is None else dict(item.value)


def exists(storage: Storage, thread_id: str) -> bool:
    """Tell whether there is such a thread, also one that crashed before its first record."""
    if not thread_id:
        return False
    return (
        storage.checkpointer.get_tuple(_config(thread_id)) is not None
        or record_of(storage.store, thread_id) is not None
    )


def is_open(snapshot: StateSnapshot) -> bool:
    """Tell whether a turn waits for its answer or for an approval."""
    # After a crash `next` can be empty although the turn has no answer; the tasks tell.
    return bool(snapshot.next or snapshot.tasks)


def unknown(thread_id: str) -> NotFoundError:
    """Make the error for a thread that does not exist."""
    return NotFoundError(f"there is no thread {thread_id!r} in this database; `everthread threads` lists them")


def read_thread(storage: Storage, thread_id: str) -> ThreadView:
    """Read a thread without running it.

    Raises:
        NotFoundError: there is no such thread.
    """
    if not exists(storage, thread_id):
        raise unknown(thread_id)
    # The state is the same for every agent; no model is called.
    snapshot = build_graph(travel, model="offline", storage=storage).get_state(_config(thread_id))
    values: Mapping[str, Any] = snapshot.values
    working_set = reduce_messages(values.get("messages", []), _received(storage, thread_id, snapshot))
    return ThreadView(
        thread_id=thread_id,
        record=record_of(storage.store, thread_id),
        messages=transcript(storage.store, thread_id, working_set),
        working_set={str(message.id): message for message in working_set},
        summary=load_summary(storage.store, thread_id, values.get("summary_id")),
        turns=int(values.get("turns", 0)),
        notes=session_notes(storage.store, thread_id),
        unfinished=is_open(snapshot),
        asked=[interrupt.value for interrupt in snapshot.interrupts],
    )


def _received(storage: Storage, thread_id: str, snapshot: StateSnapshot) -> list[Any]:
    """Return the input that a crash kept from entering the state: saved, but no step has run yet."""
    saved = storage.checkpointer.get_tuple(_config(thread_id)) if snapshot.next == (START,) else None
    received = saved.checkpoint["channel_values"].get(START) if saved else None
    messages = received.get("messages") if isinstance(received, Mapping) else None
    return [] if messages is None else [messages]


def session_notes(store: BaseStore, thread_id: str) -> list[Note]:
    """Return the session notes of a thread, oldest first."""
    return _notes(store, namespaces.session_notes(thread_id))


def long_term_notes(store: BaseStore, user_id: str) -> list[Note]:
    """Return all long-term notes of a user, oldest first."""
    return _notes(store, namespaces.notes(user_id))


def _notes(store: BaseStore, namespace: namespaces.Namespace) -> list[Note]:
    found: list[Note] = []
    while page := store.search(namespace, limit=_PAGE, offset=len(found)):
        found += map(_note, page)
    return sorted(found, key=lambda note: (note.date, note.id))


def _note(item: Item) -> Note:
    try:
        return Note.model_validate(item.value)
    except ValidationError as error:
        where = "/".join(item.namespace)
        problem = error.errors(include_url=False)[0]
        field = ".".join(map(str, problem["loc"]))
        raise StorageError(f"the note {item.key!r} in {where} cannot be read: `{field}`: {problem['msg']}") from error


def _config(thread_id: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread_id}}
