"""What the timeline of a thread shows: some turns of its ledger, the newest first."""

from collections.abc import Mapping, Sequence
from typing import Any

from everthread.ledger import Event, events_of_turns
from everthread.state import namespaces
from everthread.storage.open import Storage
from everthread.web.dashboard.timeline import timeline

__all__ = ["newest_turn", "timeline_values"]

_TURNS = 25
"""Turns of a page; each has a few calls."""

_MOST_ROWS = 200
_LAST = 2**31


def timeline_values(storage: Storage, record: Mapping[str, Any], before: int = 0) -> dict[str, Any]:
    """Return the rows of a page.

    Args:
        storage: an open database.
        record: of the thread.
        before: the page ends ahead of this turn; 0 for the newest.
    """
    thread_id, turns = str(record["thread_id"]), int(record.get("turns", 0))
    first = max((before or turns + 1) - _TURNS, 0)
    rows, since = timeline(events_of_turns(storage.store, thread_id, first, before - 1 if before else _LAST))
    newest = rows[-1].event.turn if rows and not before else None
    return {
        "current": [row for row in rows if row.event.turn == newest][::-1],
        "past": [row for row in rows if row.event.turn != newest][::-1][:_MOST_ROWS],
        "hidden": max(sum(row.event.turn != newest for row in rows) - _MOST_ROWS, 0),
        "since": since,
        "newest": rows[-1] if rows and not before else None,
        "earlier": first if first > 1 else None,
        "later": before or None,
    }


def newest_turn(storage: Storage, thread_id: str, turn: int) -> Sequence[Event]:
    """Return the events of a turn and of all behind it; of the thread's newest turn for 0."""
    if not turn:
        session = storage.store.get(namespaces.SESSIONS, thread_id)
        turn = int(session.value.get("turns") or 0) if session else 0
    return events_of_turns(storage.store, thread_id, turn, _LAST)
