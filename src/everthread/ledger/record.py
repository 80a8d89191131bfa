"""Write events to the ledger, stream them, and read them back."""

import itertools
import logging
import threading
import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from langgraph.store.base import BaseStore, Item, Op, PutOp
from langgraph.types import StreamWriter

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
    stamped = [event.model_copy(update={"at": now(), "turn": turn}) for event in events]
    namespace = namespaces.ledger(thread_id)
    batch: list[Op] = list(operations)
    batch += [PutOp(namespace, _key(), event.model_dump(mode="json"), index=None) for event in stamped]
    if batch:
        store.batch(batch)
    for event in stamped:
        logger.debug("%s on turn %d", event.event, event.turn)
        write(event.model_dump(mode="json"))


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
