"""All that the database has about a thread or a note, as `why` asks for it."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from everthread.ledger import events
from everthread.ledger.lineage import ThreadHistory
from everthread.state import Note, Summary
from everthread.state.records import RecordReader
from everthread.storage.reading import ThreadView, long_term_notes, records

__all__ = ["NoteHistory", "note_history", "thread_history"]


def thread_history(store: RecordReader, view: ThreadView) -> ThreadHistory:
    """Read all that the database has about a thread, given the thread as it is."""
    thread_id, user = view.thread_id, (view.record or {}).get("user_id")
    others = [str(record["thread_id"]) for record in records(store, user)] if user else []
    return ThreadHistory(
        thread_id=thread_id,
        turns=view.turns,
        messages={str(message.id): message for message in view.messages},
        working_set=view.working_set,
        summary=Summary.model_validate(view.summary) if view.summary else None,
        session_notes={one.id: one for one in view.notes},
        notes={one.id: one for one in long_term_notes(store, user)} if user else {},
        events=events(store, thread_id),
        elsewhere=[
            event
            for other in reversed(others)
            if other != thread_id
            for event in events(store, other)
            if event.event.startswith("note_") or event.event in ("consolidated", "erased")
        ],
    )


@dataclass(frozen=True)
class NoteHistory:
    """Where a note comes from and what became of it."""

    note: Note
    thread_id: str | None
    """The thread whose session note it is; None for a long-term one."""
    confidence: float
    """As of today, in [0, 1]."""
    field: str
    """Field of the profile that it became; empty when there is none."""
    successor: Note | None
    replaced: list[Note]
    in_doubt: list[Note]
    events: list[dict[str, Any]]

    def as_json(self) -> dict[str, Any]:
        """Return it as one JSON object."""
        return {
            "note": self.note.value(),
            "thread_id": self.thread_id,
            "confidence_today": round(self.confidence, 4),
            "superseded_by": self.successor.value() if self.successor else None,
            "replaced": [one.value() for one in self.replaced],
            "in_doubt": [one.value() for one in self.in_doubt],
            "profile_field": self.field or None,
            "events": self.events,
        }


def note_history(store: RecordReader, user_id: str, note: Note, thread_id: str | None) -> NoteHistory:
    """Read what the user's notes and ledgers have of a note."""
    from everthread.memory.consolidate import confidence_on, field_of

    long_term = {one.id: one for one in long_term_notes(store, user_id)}
    threads = dict.fromkeys(source.thread_id for source in note.sources if source.thread_id)
    return NoteHistory(
        note=note,
        thread_id=thread_id,
        confidence=confidence_on(note, datetime.now(UTC).date().isoformat()),
        field=field_of(note) or "",
        successor=long_term.get(note.superseded_by or ""),
        replaced=[one for one in long_term.values() if one.superseded_by == note.id],
        in_doubt=[long_term[other] for other in note.conflicts_with if other in long_term],
        events=[event for thread in threads for event in _events(store, thread, note.id)],
    )


def _events(store: RecordReader, thread_id: str, note_id: str) -> Iterator[dict[str, Any]]:
    """Yield a thread's events that name a note; the prompts that it was injected into are too many to list."""
    for event in events(store, thread_id):
        value = event.model_dump(mode="json")
        if event.event not in ("injected", "prompt_assembled") and _names(value, note_id):
            yield {"thread_id": thread_id, **value}


def _names(value: object, note_id: str) -> bool:
    if isinstance(value, dict):
        return note_id in value or any(_names(part, note_id) for part in value.values())
    if isinstance(value, list):
        return any(_names(part, note_id) for part in value)
    return value == note_id
