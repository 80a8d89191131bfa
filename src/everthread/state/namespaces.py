"""Store namespaces, and the one encoding that makes any id a legal and unambiguous label."""

import hashlib
import re
from typing import Any

from everthread.errors import SettingsError

Namespace = tuple[str, ...]

SESSIONS: Namespace = ("sessions",)
"""One record per thread: user, last activity, consolidated up to."""

_PLAIN = re.compile(r"[A-Za-z0-9_-]{1,64}")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def label(identifier: str) -> str:
    """Encode an id as a namespace label: plain ids stay readable, all others become a digest.

    Stores refuse labels that are empty or hold a dot, and `%`, `*` or `[` mean something to some
    of them. A plain id never starts with `~`, so a digest can never collide with one.
    """
    identifier = str(identifier)  # a run takes one of any type, such as a UUID, by its text
    if _PLAIN.fullmatch(identifier):
        return identifier
    return "~" + hashlib.sha256(identifier.encode("utf-8", "surrogatepass")).hexdigest()


def checked(name: str, identifier: Any) -> str:
    """Return an id as it is, once it is one that every store can hold and tell from any other.

    Raises:
        SettingsError: it is no text, empty, or holds a NUL or half of a surrogate pair, which SQLite
            cuts at and no UTF-8 can spell.
    """
    if not isinstance(identifier, str) or not identifier:
        raise SettingsError(f"`{name}` must be a non-empty text, got {identifier!r}")
    if _UNSTORABLE.search(identifier):
        raise SettingsError(f"`{name}` holds a NUL or a lone surrogate, which no database stores, got {identifier!r}")
    return identifier


def is_named(identifier: object) -> bool:
    """Tell whether an id is given at all; a number is one too, also 0."""
    return identifier is not None and identifier != ""


def user(user_id: str, *rest: str) -> Namespace:
    """Namespace of one user's records, such as `("users", "u-1", "trips")`."""
    return ("users", label(user_id), *rest)


def thread(thread_id: str, *rest: str) -> Namespace:
    """Namespace of one thread's records, such as `("threads", "t-1", "ledger")`."""
    return ("threads", label(thread_id), *rest)


def profile(user_id: str) -> Namespace:
    """Structured profile; its only key is `profile`."""
    return user(user_id, "profile")


def notes(user_id: str) -> Namespace:
    """Long-term notes by note id."""
    return user(user_id, "notes")


def said(user_id: str) -> Namespace:
    """What was said in all threads of a user, by thread and place."""
    return user(user_id, "said")


def session_notes(thread_id: str) -> Namespace:
    """Session notes by note id, until consolidation moves or drops them."""
    return thread(thread_id, "notes")


def transcript(thread_id: str) -> Namespace:
    """Archived messages by message id."""
    return thread(thread_id, "transcript")


def removed(thread_id: str) -> Namespace:
    """Places of the messages that an edit took out of the thread, by message id: their links lead to the archive."""
    return thread(thread_id, "removed")


def summaries(thread_id: str) -> Namespace:
    """Summaries by version."""
    return thread(thread_id, "summaries")


def calls(thread_id: str) -> Namespace:
    """What the middleware knows of a thread behind each model call, by the id of the newest message."""
    return thread(thread_id, "calls")


def prompts(thread_id: str) -> Namespace:
    """What prompts were made of and the transcript does not have, by digest."""
    return thread(thread_id, "prompts")


def steering(thread_id: str) -> Namespace:
    """What a person asked for of the prompts to come, by its id."""
    return thread(thread_id, "steering")


def ledger(thread_id: str) -> Namespace:
    """Events by time-ordered id."""
    return thread(thread_id, "ledger")


def spent_by(user_id: str) -> Namespace:
    """What the calls of a user took, by day of UTC; no record names a thread."""
    return user(user_id, "spend")


def spent_in(thread_id: str) -> Namespace:
    """What the calls of a thread took, by day of UTC."""
    return thread(thread_id, "spend")


def spend_asked(thread_id: str) -> Namespace:
    """What tasks that reached a limit have asked, by task id, until their call is made."""
    return thread(thread_id, "spend_asked")


def user_key(user_id: str) -> str:
    """Return the lock under which a user's notes are changed; no id of a thread can be the same."""
    return f"\x00user/{label(user_id)}"
