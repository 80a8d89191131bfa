"""Types that a strict list blocks: LangGraph makes plain data of their values and says so by an event."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from langgraph.checkpoint.serde.event_hooks import SerdeEvent, register_serde_event_listener

_blocked: ContextVar[list[str] | None] = ContextVar("blocked", default=None)


@contextmanager
def blocked_types() -> Iterator[list[str]]:
    """Collect the type of each value that becomes plain data while it is read, such as `app.Customer`."""
    names: list[str] = []
    token = _blocked.set(names)
    try:
        yield names
    finally:
        _blocked.reset(token)


def _collect(event: SerdeEvent) -> None:
    names = _blocked.get()
    if names is not None and event["kind"] == "msgpack_blocked":
        names.append(f"{event['module']}.{event['name']}")


register_serde_event_listener(_collect)
