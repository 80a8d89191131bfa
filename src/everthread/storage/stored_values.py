"""Values as LangGraph stores them, decoded without LangGraph."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import ormsgpack

from everthread.state.stored import StoredMessage


def messages_in(values: Any) -> list[StoredMessage]:
    """Return the messages in a value or a list of values, which may hold lists."""
    if values is None:
        return []
    if not isinstance(values, list) or _is_pair(values):
        return [StoredMessage.of(values)]
    return [message for value in values for message in messages_in(value)]


def _is_pair(value: Sequence[Any]) -> bool:
    return len(value) == 2 and all(isinstance(part, str) for part in value)


def json_object(blob: bytes | None) -> dict[str, Any]:
    """Return the value of a record; one of the `FAULTS` is raised when it is none."""
    value = json.loads(blob or b"")
    if not isinstance(value, dict):
        raise TypeError(f"its value is no JSON object but a {type(value).__name__}")
    return value


def channel_values(kind: bytes, blob: bytes) -> dict[str, Any]:
    """Return the channels of a stored checkpoint; one of the `FAULTS` is raised when it is none."""
    checkpoint = loaded(kind, blob)
    if not isinstance(checkpoint, Mapping) or not isinstance(checkpoint.get("channel_values"), Mapping):
        raise TypeError("it holds something other than a checkpoint")
    values = dict(checkpoint["channel_values"])
    messages_in(values.get("messages"))
    return values


def written_value(channel: str, kind: bytes, blob: bytes) -> Any:
    """Return what a task wrote to a channel; one of the `FAULTS` is raised when it cannot be read."""
    value = loaded(kind, blob)
    if channel == "messages" and not (isinstance(value, Mapping) and value.get("type") == "__overwrite__"):
        messages_in(value)
    return value


def loaded(stored_as: bytes, blob: bytes) -> Any:
    """Return a value that LangGraph has stored, objects as the mapping of their fields.

    Raises:
        ValueError: it is stored in another form, such as encrypted.
    """
    kind = stored_as.decode()
    if kind == "msgpack":
        return ormsgpack.unpackb(blob, ext_hook=_object, option=ormsgpack.OPT_NON_STR_KEYS)
    if kind == "json":
        return json.loads(blob)
    if kind in ("null", "bytes", "bytearray"):
        return blob or None
    raise ValueError(f"stored as {kind!r}")


def _object(_: int, data: bytes) -> Any:
    """Return an object of Python, stored as module, name and what makes it: its fields, when these have names."""
    value = ormsgpack.unpackb(data, ext_hook=_object, option=ormsgpack.OPT_NON_STR_KEYS)
    match value:
        case [str(), str(), {**fields}, *_]:
            return fields
    return value
