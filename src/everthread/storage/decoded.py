"""What checkpoints hold, decoded as LangGraph does."""

from collections.abc import Iterator, Mapping
from typing import Any

from langgraph.checkpoint.serde.base import SerializerProtocol

from everthread.storage.tables import Tables, Undecoded
from everthread.storage.unreadable import FAULTS


def checkpoint_values(tables: Tables, serde: SerializerProtocol, thread_id: str) -> Iterator[tuple[str, Any]]:
    """Yield what the checkpoints of a thread hold: channel and value, oldest first; see `Undecoded`."""
    for channel, kind, blob in tables.stored_values(thread_id):
        value = _decoded(serde, kind, blob)
        if channel:
            yield channel, value
            continue
        values = value.get("channel_values") if isinstance(value, Mapping) else value
        yield from values.items() if isinstance(values, Mapping) else [("", values)]


def newest_inputs(tables: Tables, serde: SerializerProtocol, thread_id: str, most: int) -> Iterator[Any]:
    """Yield what was last said in a thread: the newest writes of messages, and the newest checkpoint's."""
    for channel, kind, blob in tables.newest_inputs(thread_id, most):
        value = _decoded(serde, kind, blob)
        if channel:
            yield value
            continue
        values = value.get("channel_values") if isinstance(value, Mapping) else None
        yield [values.get(name) for name in ("messages", "__start__")] if isinstance(values, Mapping) else value


def _decoded(serde: SerializerProtocol, kind: bytes | None, blob: bytes | None) -> Any:
    try:
        # What is no UTF-8 is no type.
        return serde.loads_typed(((kind or b"").decode("utf-8", "replace"), blob or b""))
    except FAULTS:
        return Undecoded(blob or b"")
