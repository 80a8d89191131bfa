"""The threads of other graphs in a database, as they are stored: read without LangChain, and nothing is changed."""

import json
from dataclasses import dataclass
from typing import Any

from everthread.errors import StorageError
from everthread.state import namespaces
from everthread.storage.reader import Reader, ThreadState
from everthread.storage.unreadable import leave_out


@dataclass(frozen=True)
class ForeignThread:
    """A thread whose newest checkpoint another graph wrote."""

    thread_id: str
    user_id: str | None
    """Whose it is by our own record; None: neither a guard nor our middleware has run on it."""
    turns: int
    """User's messages that are in its state."""
    messages: int
    checkpoints: int
    bytes: int
    """Of all its rows, without the database's own."""
    keys: list[str]
    """Keys of its state that have a value, `messages` included."""
    waiting_for: list[Any]
    """What its open approvals ask, as JSON."""
    last_activity: str
    """When its newest checkpoint was saved, ISO 8601."""


def foreign_threads(reader: Reader) -> list[ForeignThread]:
    """List the threads whose newest checkpoint another graph wrote, the latest activity first.

    A state that cannot be read, such as one whose `messages` are none, is named in a warning, and its thread listed
    without what it holds.
    """
    threads = [
        _described(reader, thread_id, *sizes)
        for thread_id, sizes in reader.tables.thread_sizes().items()
        if not reader.is_ours(thread_id)
    ]
    return sorted(threads, key=lambda thread: thread.last_activity, reverse=True)


def _described(reader: Reader, thread_id: str, checkpoints: int, size: int) -> ForeignThread:
    try:
        state = reader.state(thread_id)
    except StorageError as error:
        leave_out(f"the state of thread {thread_id!r}", error.__cause__ or error)
        state = ThreadState({}, (), is_unfinished=False, asked=())
    session = reader.get(namespaces.SESSIONS, thread_id)
    return ForeignThread(
        thread_id=thread_id,
        user_id=session.value.get("user_id") if session else None,
        turns=sum(message.type == "human" for message in state.messages),
        messages=len(state.messages),
        checkpoints=checkpoints,
        bytes=size,
        keys=sorted([*state.values, *(["messages"] if state.messages else [])]),
        waiting_for=[json.loads(json.dumps(value, default=str)) for value in state.asked],
        last_activity=reader.saved_at(thread_id),
    )
