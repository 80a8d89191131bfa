"""Change a note by hand, and find out where one comes from."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from langgraph.store.base import PutOp

from everthread.cli.reading import long_term_notes, record_of, records, session_notes
from everthread.errors import NotFoundError, SettingsError
from everthread.ledger import events as ledger_events
from everthread.ledger.events import NoteChanged
from everthread.ledger.record import record
from everthread.memory.consolidate import confidence_on, confirmed_by_hand, edited, field_of, retracted
from everthread.nodes.consolidate import changed_by_hand
from everthread.state import Note, Summary, namespaces
from everthread.state.namespaces import user_key
from everthread.storage.open import Storage
from everthread.storage.summaries import load_summary

__all__ = ["Change", "Reasons", "change_note", "reasons"]


@dataclass(frozen=True)
class Change:
    """What a change by hand did."""

    action: str
    notes: list[Note]
    """The notes that changed, as they are now."""
    field: str = ""
    """Field of the profile that the note had become and that is taken back; empty when there is none."""

    @property
    def sentence(self) -> str:
        """Say what follows from it."""
        taken = f"; the field `{self.field}` of the profile is taken back" if self.field else ""
        if self.action == "retract":
            return f"the note holds no longer{taken}; `confirm` brings it back"
        if self.action == "edit":
            return f"the new text holds, and the old one is kept as history{taken}"
        return "the note holds, as the user's own words"


@dataclass(frozen=True)
class Reasons:
    """Where a note comes from and what became of it."""

    note: Note
    thread_id: str | None
    """Thread whose session note it is; None for a long-term note."""
    confidence: float
    """Today, faded since it was last said."""
    by: Note | None = None
    """The note in its place."""
    replaced: tuple[Note, ...] = ()
    in_doubt: tuple[Note, ...] = ()
    field: str = ""
    """Field of the profile that it became."""
    events: tuple[dict[str, Any], ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return it as one JSON object."""
        return {
            "note": self.note.value(),
            "thread_id": self.thread_id,
            "confidence_today": round(self.confidence, 4),
            "superseded_by": self.by.value() if self.by else None,
            "replaced": [note.value() for note in self.replaced],
            "in_doubt": [note.value() for note in self.in_doubt],
            "profile_field": self.field or None,
            "events": list(self.events),
        }


def change_note(storage: Storage, user_id: str, action: str, note_id: str, text: str = "") -> Change:
    """Edit, confirm or retract a note, while no consolidation of the same user runs.

    Args:
        storage: the open database.
        user_id: whose note.
        action: `edit`, `confirm` or `retract`.
        note_id: the note's id or its beginning.
        text: the new text of an edit.

    Raises:
        NotFoundError: the user has no such note.
        SettingsError: the note cannot be changed so.
    """
    today = datetime.now(UTC).date().isoformat()
    with storage.locks.hold(user_key(user_id)):
        note, thread_id = _found(storage, user_id, note_id)
        own = long_term_notes(storage.store, user_id) if thread_id is None else session_notes(storage.store, thread_id)
        notes = {known.id: known for known in own}
        if action == "edit":
            changed = edited(notes, note, text, today)
        elif action == "confirm":
            changed = confirmed_by_hand(note, today)
        else:
            changed = retracted(notes, note, today)
        _write(storage, user_id, thread_id, note, action, changed)
    return Change(action, list(changed.values()), field_of(note) if action != "confirm" else "")


def reasons(storage: Storage, user_id: str, note_id: str) -> Reasons:
    """Collect what is known of a note: sources, what it replaced or gave way to, and what the ledger tells of it.

    Raises:
        NotFoundError: the user has no such note.
    """
    note, thread_id = _found(storage, user_id, note_id)
    known = {other.id: other for other in long_term_notes(storage.store, user_id)}
    threads = dict.fromkeys(source.thread_id for source in note.sources if source.thread_id)
    return Reasons(
        note=note,
        thread_id=thread_id,
        confidence=confidence_on(note, datetime.now(UTC).date().isoformat()),
        by=known.get(note.superseded_by or ""),
        replaced=tuple(other for other in known.values() if other.superseded_by == note.id),
        in_doubt=tuple(known[other] for other in note.conflicts_with if other in known),
        field=field_of(note),
        events=tuple(event for thread in threads for event in _events(storage, thread, note.id)),
    )


def _events(storage: Storage, thread_id: str, note_id: str) -> Iterator[dict[str, Any]]:
    """Yield a thread's events that name a note; prompts that it was injected into are too many to tell."""
    for event in ledger_events(storage.store, thread_id):
        told = event.model_dump(mode="json")
        if event.event not in ("injected", "prompt_assembled") and _names(told, note_id):
            yield {"thread_id": thread_id, **told}


def _names(value: object, note_id: str) -> bool:
    if isinstance(value, dict):
        return note_id in value or any(_names(part, note_id) for part in value.values())
    if isinstance(value, list):
        return any(_names(part, note_id) for part in value)
    return value == note_id


def _write(
    storage: Storage, user_id: str, thread_id: str | None, note: Note, action: str, changed: dict[str, Note]
) -> None:
    """Write the notes and the events in one batch; each thread where the note was said has the event in its ledger."""
    if thread_id is None:
        writes = changed_by_hand(storage.store, user_id, changed)
    else:
        namespace = namespaces.session_notes(thread_id)
        writes = [PutOp(namespace, known.id, known.value(), index=None) for known in changed.values()]
    threads = [thread_id] if thread_id else list(dict.fromkeys(one.thread_id for one in note.sources if one.thread_id))
    if not threads:
        storage.store.batch(writes)
    for told in threads:
        turn = int((record_of(storage.store, told) or {}).get("turns", 0))
        # A confirmation leaves everything as it was.
        flagged = [] if action == "confirm" else _dependents(storage, user_id, told, note, changed)
        event = NoteChanged.model_validate({"note_id": note.id, "action": action, "dependents": flagged})
        record(storage.store, told, [event], write=lambda _: None, turn=turn, operations=writes)
        writes = []


def _dependents(storage: Storage, user_id: str, thread_id: str, note: Note, changed: Mapping[str, Note]) -> list[str]:
    """Return what rests on the same messages of a thread as a note: other notes, and the thread's summary."""
    said = {name for source in note.sources if source.thread_id == thread_id for name in source.message_ids}
    others = [*long_term_notes(storage.store, user_id), *session_notes(storage.store, thread_id)]
    flagged = [
        other.id
        for other in others
        if other.id != note.id
        and other.id not in changed
        and any(said.intersection(source.message_ids) for source in other.sources if source.thread_id == thread_id)
    ]
    saved = storage.checkpointer.get_tuple({"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}})
    name = saved.checkpoint["channel_values"].get("summary_id") if saved else None
    summary = Summary.model_validate(load_summary(storage.store, thread_id, name) or {})
    if any(said.intersection(entry.sources) for entry in summary.entries):
        flagged.append(f"summary {summary.version}")
    return flagged


def _found(storage: Storage, user_id: str, note_id: str) -> tuple[Note, str | None]:
    """Return the user's note of that id, with the thread whose session note it is."""
    store = storage.store
    threads = [str(known["thread_id"]) for known in records(store, user_id)]
    notes: list[tuple[Note, str | None]] = [(note, None) for note in long_term_notes(store, user_id)]
    notes += [(note, thread_id) for thread_id in threads for note in session_notes(store, thread_id)]
    exact = [one for one in notes if one[0].id == note_id]
    found = exact[:1] or [one for one in notes if one[0].id.startswith(note_id)]
    if not found:
        raise NotFoundError(f"user {user_id!r} has no note {note_id!r}; `everthread notes {user_id}` lists them")
    if len(found) > 1:
        raise SettingsError(f"{len(found)} notes begin with {note_id!r}; write more of the id")
    return found[0]
