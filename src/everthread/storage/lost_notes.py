"""Record in the threads that stay which notes of theirs were erased with another thread."""

import sqlite3
from collections.abc import Mapping

import orjson
from langgraph.store.base import BaseStore

from everthread.ledger.events import Erased
from everthread.ledger.recipes import UNKNOWN_NOTE
from everthread.ledger.record import record
from everthread.state import namespaces
from everthread.storage.user_data import UserData

__all__ = ["SAID", "erase_shown", "lost_notes", "record_losses"]

SAID = "CASE WHEN json_valid(CAST(value AS TEXT)) THEN json_extract(CAST(value AS TEXT), '$.{}') END"
"""A field of a record; a value that is no JSON has none, and does not stop the query."""

_SESSIONS = (
    f"SELECT key, CAST({SAID.format('turns')} AS INTEGER) FROM store WHERE prefix = ? AND {SAID.format('user_id')} = ?"
)
_NAMED = "SELECT 1 FROM store WHERE prefix = ? AND instr(CAST(value AS TEXT), ?) > 0 LIMIT 1"

_SHOWN = "UPDATE store SET value = ? WHERE prefix = ? AND instr(CAST(value AS TEXT), ?) > 0"

Losses = Mapping[str, tuple[int, Erased]]
"""Turns and event of each thread that loses something."""


def lost_notes(database: sqlite3.Connection, found: UserData) -> Losses:
    """Return what the user's other threads lose: notes that were in their prompts or came from them.

    The events hold ids only, which those ledgers have already.
    """
    if found.user_id is None:
        return {}
    notes = ".".join(namespaces.notes(found.user_id))
    gone = [key for prefix, key in found.records if prefix == notes]
    kept = [record.key for record in found.kept_notes if record.prefix == notes]
    losses: dict[str, tuple[int, Erased]] = {}
    rows = database.execute(_SESSIONS, (".".join(namespaces.SESSIONS), found.user_id)).fetchall()
    for thread_id, turns in rows if gone or kept else ():
        if thread_id in found.threads:
            continue
        ledger = ".".join(namespaces.ledger(thread_id))
        named = {key for key in (*gone, *kept) if database.execute(_NAMED, (ledger, key)).fetchone()}
        if named:
            event = Erased(
                note_ids=[key for key in gone if key in named], kept_ids=[key for key in kept if key in named]
            )
            losses[thread_id] = int(turns or 0), event
    return losses


def erase_shown(database: sqlite3.Connection, found: UserData, at: str) -> None:
    """Erase the texts of prompts of the user's other threads that show a note which goes.

    Args:
        database: in a transaction.
        found: what is erased.
        at: date of the erasure, which stands in place of the text.
    """
    if found.user_id is None:
        return
    notes = ".".join(namespaces.notes(found.user_id))
    gone = [key for prefix, key in found.records if prefix == notes]
    rows = database.execute(_SESSIONS, (".".join(namespaces.SESSIONS), found.user_id)).fetchall() if gone else []
    for thread_id, turns in rows:
        if thread_id in found.threads:
            continue
        value = orjson.dumps({"erased": at, "turn": int(turns or 0)})
        prefix = ".".join(namespaces.prompts(thread_id))
        database.executemany(_SHOWN, [(value, prefix, f'"{name}"') for name in (*gone, UNKNOWN_NOTE)])


def record_losses(store: BaseStore, losses: Losses) -> None:
    """Write the events, once everything is gone."""
    for thread_id, (turns, event) in losses.items():
        record(store, thread_id, [event], write=lambda _: None, turn=turns)
