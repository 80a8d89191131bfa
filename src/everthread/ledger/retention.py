"""Retention: which events of a ledger go, as statements on the table of the store.

Events about notes stay as long as the thread: a session must not learn again what was deleted since, and
`why` answers for notes years later. All others go with their turn, and so do the names of what left.
"""

from collections.abc import Sequence
from typing import Any

from everthread.state import namespaces

__all__ = ["KEPT_KINDS", "RUNS_BETWEEN", "newest", "older", "turn_of"]

RUNS_BETWEEN = 64
"""Runs of a thread from one look at its ledger to the next; so many more turns may be kept meanwhile."""

KEPT_KINDS = (
    "note_saved",
    "note_blocked",
    "note_merged",
    "note_superseded",
    "note_promoted",
    "note_expired",
    "note_changed",
    "consolidated",
    "erased",
    "regret",
)
"""Kinds that stay: few, and nothing else tells the same."""

Statement = tuple[str, Sequence[Any]]

_NEWEST = "SELECT json_extract(CAST(value AS TEXT), '$.turn') FROM store WHERE prefix = ? ORDER BY key DESC LIMIT 1"
_DELETE = (
    "DELETE FROM store WHERE prefix = ? AND json_extract(CAST(value AS TEXT), '$.turn') <= ?"
    " AND coalesce(json_extract(CAST(value AS TEXT), '$.event'), '') NOT IN (SELECT value FROM json_each(?))"
)


def newest(thread_id: str) -> Statement:
    """Return the query for the turn of the newest event."""
    return _NEWEST, (_text(namespaces.ledger(thread_id)),)


def turn_of(rows: Sequence[Sequence[Any]]) -> int:
    """Read the answer to `newest`; 0 when there is no event."""
    return int(rows[0][0] or 0) if rows else 0


def older(thread_id: str, turn: int) -> tuple[Statement, ...]:
    """Return the statements that delete what is as old as a turn, or older."""
    if turn <= 0:
        return ()
    kinds = "[" + ",".join(f'"{kind}"' for kind in KEPT_KINDS) + "]"
    spaces = (namespaces.ledger(thread_id), namespaces.thread(thread_id, "left"))
    return tuple((_DELETE, (_text(space), turn, kinds)) for space in spaces)


def _text(namespace: namespaces.Namespace) -> str:
    return ".".join(namespace)
