"""How an event is stored: without what reading can fill in, since a ledger gets three events a turn for years.

The namespace names the thread and the key the time; defaults, categories of no tokens and the free
part of the window follow from the rest; lists of messages are kept as short names of 40 bits each.
"""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any

from pydantic import BaseModel

from everthread.ledger.events import EVENTS, Compacted, Event, Evicted, PromptAssembled, Recalled

__all__ = ["is_about", "packed", "short", "unpacked"]

_SHORT_BYTES = 5
_SHORT_CHARACTERS = 7

_LISTS = (Evicted, Compacted, Recalled)
"""Events that name many messages."""

_CATEGORIES = (
    "system",
    "profile",
    "notes",
    "tools",
    "summary",
    "session_notes",
    "recalled",
    "history",
    "reply_reserve",
    "safety",
    "free",
)
"""Of a prompt, in the order in which they are told."""

_REQUIRED = object()


def short(message_id: str) -> str:
    """Return the name that a stored list of messages has for one: `~` and seven characters.

    Two messages of one thread share a name once in 10^12 pairs.
    """
    digest = hashlib.blake2b(message_id.encode("utf-8", "replace"), digest_size=_SHORT_BYTES).digest()
    return "~" + base64.urlsafe_b64encode(digest).decode()[:_SHORT_CHARACTERS]


def is_about(event: Event, message_id: str) -> bool:
    """Tell whether an event, read back or as it was made, names a message."""
    if getattr(event, "message_id", None) == message_id:
        return True
    named: Sequence[str] = getattr(event, "message_ids", ())
    return message_id in named or (isinstance(event, _LISTS) and short(message_id) in named)


def packed(event: Event, value: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is stored of an event.

    Args:
        event: the event.
        value: the event as JSON, with its turn.
    """
    defaults = _defaults(type(event))
    told = {name: known for name, known in value.items() if name == "event" or defaults.get(name, _REQUIRED) != known}
    told.pop("at", None)
    told.pop("thread_id", None)
    if isinstance(event, _LISTS):
        told["message_ids"] = "".join(short(name)[1:] for name in event.message_ids)
    if isinstance(event, Recalled):
        told["scores"] = [float(f"{score:.2g}") for score in event.scores]
    if isinstance(event, PromptAssembled):
        # `free` is what the window leaves, so it need not be told.
        told["breakdown"] = {name: size for name, size in event.breakdown.items() if size and name != "free"}
    return told


def unpacked(thread_id: str, key: str, value: Mapping[str, Any]) -> Event:
    """Return an event from what is stored under a key; rows of older versions are whole and stay as they are.

    Raises:
        pydantic.ValidationError: it is no event of this version.
    """
    told = {"at": _time(key), "thread_id": thread_id, **value}
    named = told.get("message_ids")
    if isinstance(named, str):
        step = _SHORT_CHARACTERS
        told["message_ids"] = ["~" + named[place : place + step] for place in range(0, len(named), step)]
    sizes = told.get("breakdown")
    if sizes is not None and "free" not in sizes:
        whole = dict.fromkeys(_CATEGORIES, 0) | sizes
        told["breakdown"] = whole | {"free": told["window"] - sum(sizes.values())}
    return EVENTS.validate_python(told)


def _time(key: str) -> str:
    nanoseconds = key.partition("-")[0]
    if not nanoseconds.isdigit():
        return ""
    return datetime.fromtimestamp(int(nanoseconds) / 1e9, UTC).isoformat(timespec="milliseconds")


@cache
def _defaults(kind: type[BaseModel]) -> dict[str, Any]:
    return {name: field.default for name, field in kind.model_fields.items() if not field.is_required()}
