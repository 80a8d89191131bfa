"""Everything that is held of a user, as one JSON document."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

from langchain_core.messages import BaseMessage, RemoveMessage

from everthread.errors import SettingsError
from everthread.state import namespaces
from everthread.state.messages import as_messages
from everthread.storage import user_data
from everthread.storage.decoded import checkpoint_values
from everthread.storage.open import Storage
from everthread.storage.reading import read_thread, role_of

_MESSAGES = ("messages", "__start__")
"""Channels that hold messages: those of the state, and an input that no step has taken yet."""

_OF_READ_THREAD = ("transcript", "handles", "notes")
"""Records that are in a thread's messages and session notes already."""


def document(
    storage: Storage, user_id: str, progress: Callable[[str, int, int], None] = lambda step, done, total: None
) -> dict[str, Any]:
    """Collect everything that is held of a user; `erase` removes exactly this.

    Args:
        progress: hears of each thread that is read.

    Raises:
        NotFoundError: there is no such user.
    """
    tables = storage.tables
    found = user_data.of_user(tables, storage.checkpointer.serde, user_id)
    prefix = ".".join(namespaces.user(user_id))
    # Every message of it is in the threads below.
    said = ".".join(namespaces.said(user_id))
    own: dict[str, list[dict[str, Any]]] = {}
    for record in user_data.records(tables, found):
        if record.prefix.startswith(prefix + ".") and not record.damaged and record.prefix != said:
            own.setdefault(user_data.kind_of(record.prefix), []).append({"key": record.key, **record.value})
    profile = [{key: value for key, value in one.items() if key != "key"} for one in own.pop("profile", [])]
    threads = []
    for place, thread_id in enumerate(found.threads):
        progress("reading threads", place, len(found.threads))
        threads.append(_thread(storage, thread_id))
    return {
        "user_id": user_id,
        "exported_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "profile": profile[0] if profile else None,
        **{kind: own.pop(kind, []) for kind in ("notes", "bookings", "tickets")},
        **own,
        "threads": threads,
        "jobs": list(found.jobs),
    }


def _thread(storage: Storage, thread_id: str) -> dict[str, Any]:
    view = read_thread(storage, thread_id)
    rest: dict[str, list[dict[str, Any]]] = {}
    here = user_data.UserData(None, (thread_id,), prefixes=(".".join(namespaces.thread(thread_id)),))
    for record in user_data.records(storage.tables, here):
        if (kind := record.prefix.split(".")[2]) not in _OF_READ_THREAD and not record.damaged:
            rest.setdefault(kind, []).append({"key": record.key, **record.value})
    known = {str(message.id) for message in view.messages} | {"None"}
    values = checkpoint_values(storage.tables, storage.checkpointer.serde, thread_id)
    others = {str(message.id): message for name, value in values for message in _messages(name, value)}
    return {
        **{name: value for name, value in view.as_json().items() if name != "summary"},
        "record": view.record,
        "other_branches": [
            {"id": message.id, "role": role_of(message), "content": str(message.text)}
            for message in others.values()
            if str(message.id) not in known
        ],
        **rest,
    }


def _messages(channel: str, value: Any) -> Iterator[BaseMessage]:
    """Return the messages that a channel's value holds, such as those of a branch that time travel left."""
    if channel not in _MESSAGES:
        return
    given = value.get("messages") if isinstance(value, dict) else value
    for one in given if isinstance(given, list) else [given]:
        if one is not None and not isinstance(one, RemoveMessage):
            try:
                yield one if isinstance(one, BaseMessage) else as_messages([one])[0]
            except SettingsError:
                continue
