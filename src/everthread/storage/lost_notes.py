"""Record in the threads that stay which notes of theirs were erased with another thread."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import orjson
from langgraph.store.base import BaseStore, PutOp

from everthread.ledger.events import Erased
from everthread.ledger.recipes import UNKNOWN_NOTE
from everthread.ledger.record import record
from everthread.state import namespaces
from everthread.state.records import items
from everthread.storage.open import Storage
from everthread.storage.tables import Tables
from everthread.storage.user_data import UserData, sessions

Losses = Mapping[str, tuple[int, Erased]]
"""Turns and event of each thread that loses something."""


def lost_notes(tables: Tables, found: UserData) -> Losses:
    """Return what the user's other threads lose: notes that were in their prompts or came from them.

    The events hold ids only, which those ledgers have already.
    """
    gone, kept = _note_ids(found, found.records), _note_ids(found, ((one.prefix, one.key) for one in found.kept_notes))
    losses: dict[str, tuple[int, Erased]] = {}
    for thread_id, turns in _other_threads(tables, found) if gone or kept else ():
        ledger = namespaces.ledger(thread_id)
        named = {key for key in (*gone, *kept) if tables.names(ledger, key)}
        if named:
            event = Erased(
                note_ids=[key for key in gone if key in named], kept_ids=[key for key in kept if key in named]
            )
            losses[thread_id] = turns, event
    return losses


def shown_texts(tables: Tables, found: UserData, at: str) -> list[tuple[str, str, bytes]]:
    """Return which texts of prompts of the user's other threads show a note that goes.

    Args:
        found: what is erased.
        at: date of the erasure, which stands in place of the text.

    Returns:
        Of each: namespace text, what a value holds that has to go, and what stands in its place, as JSON.
    """
    gone = _note_ids(found, found.records)
    return [
        (".".join(namespaces.prompts(thread_id)), f'"{name}"', orjson.dumps({"erased": at, "turn": turns}))
        for thread_id, turns in (_other_threads(tables, found) if gone else ())
        for name in (*gone, UNKNOWN_NOTE)
    ]


def erased_texts(storage: Storage, user_id: str, gone: Collection[str]) -> list[PutOp]:
    """Return the writes that erase the texts of prompts which show notes of a user, in all of their threads."""
    at, writes = datetime.now(UTC).isoformat(timespec="seconds"), []
    for thread_id, session in sessions(storage.tables):
        ledger = namespaces.ledger(thread_id)
        if session.get("user_id") != user_id or not any(storage.tables.names(ledger, one) for one in gone):
            continue
        space, value = namespaces.prompts(thread_id), {"erased": at, "turn": _turns(session)}
        writes += [
            PutOp(space, item.key, value, index=False)
            for item in items(storage.store, space)
            if not {UNKNOWN_NOTE, *gone}.isdisjoint(item.value.get("notes", ()))
        ]
    return writes


def record_losses(store: BaseStore, losses: Losses) -> None:
    """Write the events, once everything is gone."""
    for thread_id, (turns, event) in losses.items():
        record(store, thread_id, [event], write=lambda _: None, turn=turns)


def _note_ids(found: UserData, places: Iterable[tuple[str, str]]) -> list[str]:
    """Return the ids of the long-term notes among some records."""
    notes = ".".join(namespaces.notes(found.user_id)) if found.user_id is not None else None
    return [key for prefix, key in places if prefix == notes]


def _other_threads(tables: Tables, found: UserData) -> Iterator[tuple[str, int]]:
    """Yield the user's threads that stay, each with its turns."""
    for thread_id, session in sessions(tables):
        if thread_id not in found.threads and session.get("user_id") == found.user_id:
            yield thread_id, _turns(session)


def _turns(session: Mapping[str, Any]) -> int:
    turns = session.get("turns")
    return turns if isinstance(turns, int) else 0
