"""Write events to the ledger, stream them, and read them back."""

import itertools
import logging
import threading
import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any

from langgraph.store.base import BaseStore, Item, Op, PutOp
from langgraph.types import StreamWriter
from pydantic import BaseModel

from everthread.ledger.events import EVENTS, Event
from everthread.state import namespaces

logger = logging.getLogger(__name__)

_PAGE = 500
_ticks = itertools.count()
_guard = threading.Lock()


def now() -> str:
    """Return the time as ISO 8601 in UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def record(
    store: BaseStore,
    thread_id: str,
    events: Iterable[Event],
    *,
    write: StreamWriter,
    turn: int,
    operations: Iterable[PutOp] = (),
) -> None:
    """Write events and the writes they tell of in one batch, then stream the events.

    Args:
        store: the run's store.
        thread_id: whose ledger it is.
        events: what was decided, in order.
        write: the run's `stream_writer`; each event is one JSON object on `stream_mode="custom"`.
        turn: user turns of the thread so far.
        operations: the node's own writes.
    """
    told = list(events)
    values = [{**event.model_dump(mode="json"), "at": now(), "turn": turn} for event in told]
    namespace = namespaces.ledger(thread_id)
    batch: list[Op] = list(operations)
    batch += [
        PutOp(namespace, _key(), _brief(event, value), index=False) for event, value in zip(told, values, strict=True)
    ]
    if batch:
        store.batch(batch)
    for value in values:
        logger.debug("%s on turn %d", value["event"], turn)
        write(value)


def _brief(event: Event, value: dict[str, Any]) -> dict[str, Any]:
    """Leave out what reading fills in by itself; a ledger holds three events a turn for years."""
    defaults = _defaults(type(event))
    return {name: told for name, told in value.items() if name == "event" or defaults.get(name, _REQUIRED) != told}


@cache
def _defaults(kind: type[BaseModel]) -> dict[str, Any]:
    return {name: field.default for name, field in kind.model_fields.items() if not field.is_required()}


_REQUIRED = object()


def events(store: BaseStore, thread_id: str) -> Sequence[Event]:
    """Return a thread's events, oldest first."""
    namespace = namespaces.ledger(thread_id)
    items: list[Item] = []
    while page := store.search(namespace, limit=_PAGE, offset=len(items)):
        items.extend(page)
        if len(page) < _PAGE:
            break
    return [EVENTS.validate_python(item.value) for item in sorted(items, key=lambda item: item.key)]


def _key() -> str:
    """Order by time, then by order of writing inside one clock tick."""
    with _guard:
        return f"{time.time_ns():020d}-{next(_ticks) % 1_000_000:06d}"
