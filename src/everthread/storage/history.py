"""All that the database has about a thread or a note, as `why` asks for it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from everthread.ledger.events import Injected, PromptAssembled
from everthread.ledger.lineage import ThreadHistory
from everthread.ledger.record import now, readable_events
from everthread.state import Note, Summary, namespaces
from everthread.storage.reader import Reader
from everthread.storage.reading import ThreadView, long_term_notes, records
from everthread.storage.thread_source import NOTE_KINDS, ThreadSource, events_of, newest_event, words_in


def thread_history(reader: Reader, view: ThreadView) -> ThreadHistory:
    """Return what the database has about a thread; its messages are read as they are asked for.

    Args:
        view: the thread as it is, with its working set, read with `whole=False`.
    """
    thread_id, user = view.thread_id, (view.record or {}).get("user_id")
    others = [str(record["thread_id"]) for record in records(reader, user)] if user else []
    messages = ThreadSource(reader, view)
    last_prompt, last_injection = (newest_event(reader, thread_id, one) for one in ("prompt_assembled", "injected"))
    elsewhere = (event for one in reversed(others) if one != thread_id for event in events_of(reader, one, NOTE_KINDS))
    return ThreadHistory(
        thread_id=thread_id,
        turns=view.turns,
        messages=messages,
        working_set=view.working_set,
        summary=Summary.model_validate(view.summary) if view.summary else None,
        session_notes={one.id: one for one in view.notes},
        notes={one.id: one for one in long_term_notes(reader, user)} if user else {},
        note_events=[*elsewhere, *messages.note_events],
        last_prompt=last_prompt if isinstance(last_prompt, PromptAssembled) else None,
        last_injection=last_injection if isinstance(last_injection, Injected) else None,
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


def note_history(reader: Reader, user_id: str, note: Note, thread_id: str | None) -> NoteHistory:
    """Read what the user's notes and ledgers have of a note."""
    from everthread.memory.consolidate import confidence_on, field_of

    long_term = {one.id: one for one in long_term_notes(reader, user_id)}
    threads = dict.fromkeys(source.thread_id for source in note.sources if source.thread_id)
    return NoteHistory(
        note=note,
        thread_id=thread_id,
        confidence=confidence_on(note, now()[:10]),
        field=field_of(note) or "",
        successor=long_term.get(note.superseded_by or ""),
        replaced=[one for one in long_term.values() if one.superseded_by == note.id],
        in_doubt=[long_term[other] for other in note.conflicts_with if other in long_term],
        events=[event for thread in threads for event in _events(reader, thread, note.id)],
    )


def _events(reader: Reader, thread_id: str, note_id: str) -> Iterator[dict[str, Any]]:
    """Yield a thread's events that name a note; the prompts that it was injected into are too many to list."""
    space = namespaces.ledger(thread_id)
    rows = reader.decoded(space, reader.tables.holding(space, words_in(note_id)))
    for event in readable_events(reader, thread_id, rows):
        value = event.model_dump(mode="json")
        if event.event not in ("injected", "prompt_assembled") and _names(value, note_id):
            yield {"thread_id": thread_id, **value}


def _names(value: object, note_id: str) -> bool:
    if isinstance(value, dict):
        return note_id in value or any(_names(part, note_id) for part in value.values())
    if isinstance(value, list):
        return any(_names(part, note_id) for part in value)
    return value == note_id
