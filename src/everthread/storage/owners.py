"""Whose a thread is: nobody's until a run that names a user claims it, and that user's alone from then on."""

from collections.abc import Mapping
from typing import Any

from everthread.errors import SettingsError
from everthread.ledger.record import now
from everthread.state import namespaces
from everthread.storage.unreadable import described, record_name


def owner_of(record: Mapping[str, Any] | None, thread_id: str) -> str | None:
    """Return the owner of a thread by its session record; None: it is nobody's, or there is no record.

    Raises:
        UnreadableError: the record does not say, so nobody may have it.
    """
    if record is None:
        return None
    if "user_id" not in record:
        error = LookupError("it does not say whose the thread is")
        raise described(record_name(namespaces.SESSIONS, thread_id), error)
    owner: str | None = record["user_id"]
    return owner


def check_owner(record: Mapping[str, Any] | None, thread_id: str, user_id: str | None) -> None:
    """Refuse a thread to everybody but its owner.

    Raises:
        SettingsError: it belongs to another user; nothing of theirs may enter it, and no approval either.
        UnreadableError: nobody knows whose it is.
    """
    owner = owner_of(record, thread_id)
    if owner is None or owner == user_id:
        return
    if not user_id:
        raise SettingsError(
            f"thread {thread_id!r} belongs to a user, and this run names none; name the user by `user_id` "
            "in the context or in `configurable`"
        )
    raise SettingsError(f"thread {thread_id!r} belongs to another user than {user_id!r}; use a thread of their own")


def check_kept_by_us(record: Mapping[str, Any], thread_id: str) -> None:
    """Refuse a thread that an app keeps by `Transcript`: a run would give its messages the places of those there.

    Raises:
        SettingsError: it is one.
    """
    if "tail" in record:
        raise SettingsError(
            f"thread {thread_id!r} was made by `Transcript.append`, which an agent of Everthread cannot go on with: "
            "name another `thread_id`, and send it the messages that it should know"
        )


def claimed(record: Mapping[str, Any], agent: str, thread_id: str, user_id: str | None) -> dict[str, Any]:
    """Return the record of a thread as a user's own, before their first run on it; it may be empty."""
    at = now()
    new = {"agent": agent, "began": at, "turns": 0, "consolidated_turns": 0}
    return {"shared": None, "last_activity": at, **(record or new), "thread_id": thread_id, "user_id": user_id}
