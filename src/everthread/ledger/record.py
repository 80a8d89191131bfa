"""Write events to the ledger, to the stream, to logs and to telemetry, and read them back."""

import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pydantic import ValidationError

from everthread.ledger import old_rows
from everthread.ledger.events import EVENTS, Event
from everthread.state import namespaces
from everthread.state.records import RecordReader, StoredItem, items, matching

if TYPE_CHECKING:
    from langgraph.store.base import BaseStore, PutOp
    from langgraph.types import StreamWriter

logger = logging.getLogger(__name__)

_ticks = itertools.count()
_guard = threading.Lock()

STREAM_KEY = "everthread"
"""On `stream_mode="custom"`: with the value `ledger` an event of ours, and in nothing that is the user's own."""

_NOTABLE = frozenset(
    {
        "fallback_used",
        "overflow",
        "pin_repaired",
        "note_blocked",
        "memory_full",
        "erased",
        "migrated",
        "regret",
        "consolidated",
        "spend_refused",
        "spend_granted",
    }
)
"""Logged at INFO; all others at DEBUG."""


def now() -> str:
    """Return the time as ISO 8601 in UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def record(
    store: "BaseStore",
    thread_id: str,
    events: Iterable[Event],
    *,
    write: "StreamWriter | None" = None,
    turn: int = 0,
    operations: Iterable["PutOp"] = (),
) -> None:
    """Write events together with the writes that they are about in one batch, then stream, log and count them.

    Args:
        events: what was decided, in order.
        write: the run's `stream_writer`, None outside a run; each event is one JSON object on `stream_mode="custom"`,
            told by `STREAM_KEY`.
        turn: user turns of the thread so far.
        operations: the node's own writes.
    """
    puts, tell = recorded(thread_id, events, write=write, turn=turn)
    if batch := [*operations, *puts]:
        store.batch(batch)
    tell()


def recorded(
    thread_id: str, events: Iterable[Event], *, write: "StreamWriter | None" = None, turn: int = 0
) -> "tuple[list[PutOp], Callable[[], None]]":
    """Return the writes of events, for a transaction of the caller's own, and what tells them once it is done.

    Args:
        events: what was decided, in order.
        write: as in `record`.
        turn: user turns of the thread so far.
    """
    # Taken when called: a ledger is read without LangGraph too.
    from langgraph.store.base import PutOp

    from everthread.ledger import telemetry

    stamp = {"at": now(), "turn": turn, "thread_id": str(thread_id)}
    values = [{**event.model_dump(mode="json"), **stamp} for event in events]

    def tell() -> None:
        for value in values:
            level = logging.INFO if value["event"] in _NOTABLE else logging.DEBUG
            if logger.isEnabledFor(level):
                logger.log(level, "%s on turn %d of %s", value["event"], turn, thread_id, extra={"everthread": value})
            telemetry.tell(value)
            if write is not None:
                write({STREAM_KEY: "ledger", **value})

    namespace = namespaces.ledger(thread_id)
    return [PutOp(namespace, _key(), value, index=False) for value in values], tell


def events(store: RecordReader, thread_id: str) -> Sequence[Event]:
    """Return a thread's events, oldest first; what another version wrote and this one cannot read is left out."""
    return readable_events(store, thread_id, items(store, namespaces.ledger(thread_id)))


def events_of_turns(store: "BaseStore", thread_id: str, first: int, last: int) -> Sequence[Event]:
    """Return a thread's events of some turns, oldest first, without reading the rest of a long ledger."""
    rows = matching(store, namespaces.ledger(thread_id), {"turn": {"$gte": first, "$lte": last}})
    return readable_events(store, thread_id, rows)


def readable_events(store: RecordReader, thread_id: str, rows: Iterable[StoredItem]) -> list[Event]:
    """Return events of a thread from their rows, oldest first; what this version cannot read is left out."""
    rows = [*rows]
    has_old = any(old_rows.is_old(item.value) for item in rows)
    ids_by_hash = old_rows.message_ids(store, thread_id) if has_old else {}
    readable: list[Event] = []
    for item in sorted(rows, key=lambda item: item.key):
        try:
            is_old = old_rows.is_old(item.value)
            row = old_rows.completed(item.key, item.value, ids_by_hash) if is_old else item.value
            readable.append(EVENTS.validate_python({"thread_id": thread_id, **row}))
        except (ValidationError, LookupError, TypeError, ValueError, OverflowError, AttributeError):
            logger.warning("left out: event %s of thread %r cannot be read", item.key, thread_id)
    return readable


def _key() -> str:
    """Order by time, then by order of writing inside one clock tick."""
    with _guard:
        return f"{time.time_ns():020d}-{next(_ticks) % 1_000_000:06d}"
