"""Correct the notes of a user by hand, whoever asks for it."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from langgraph.store.base import PutOp

from everthread.ledger.events import NoteChanged
from everthread.ledger.record import now
from everthread.ledger.record import record as record_events
from everthread.memory.consolidate import confirmed_by_hand, edited, field_of, retracted, written
from everthread.nodes.consolidate import changed_by_hand
from everthread.state import Note, Summary, namespaces
from everthread.storage.lost_notes import erased_texts
from everthread.storage.open import Storage
from everthread.storage.reading import long_term_notes, one_note, or_none, read_thread, record_of, session_notes


@dataclass(frozen=True)
class Change:
    """What a correction did."""

    action: str
    notes: list[Note]
    """The notes that changed, as they are now."""
    field: str = ""
    """Field of the profile that the note had become and that is taken back; empty when there is none."""

    @property
    def sentence(self) -> str:
        """Say what follows from it."""
        taken = f"; the field `{self.field}` of the profile is taken back" if self.field else ""
        if self.action == "forget":
            return f"the note is gone for good{taken}; what was said stays in its thread, also in the summary"
        if self.action == "retract":
            return f"the note holds no longer{taken}; `confirm` brings it back"
        if self.action == "edit":
            return f"the new text holds, and the old one is kept as history{taken}"
        return "the note holds, as the user's own words"


def add_note(storage: Storage, user_id: str, text: str) -> Note:
    """Save a long-term note in the user's own words, while no consolidation of the same user runs.

    Raises:
        SettingsError: the text is empty, or refused by the guard.
    """
    today = now()[:10]
    with storage.locks.hold(namespaces.user_key(user_id)):
        by_id = {one.id: one for one in long_term_notes(storage.store, user_id)}
        added = written(by_id, text, today)
        storage.store.batch(changed_by_hand(storage.store, user_id, added))
    return next(iter(added.values()))


def change_note(
    storage: Storage, user_id: str, action: str, note_id: str, text: str = "", *, actor: str = ""
) -> Change:
    """Edit, confirm or retract a note, while no consolidation of the same user runs.

    Args:
        action: `edit`, `confirm` or `retract`.
        note_id: the note's id or its beginning.
        actor: who asks for it, for the ledger; empty names the user.

    Raises:
        NotFoundError: the user has no such note.
        SettingsError: the note cannot be changed so.
    """
    today = now()[:10]
    with storage.locks.hold(namespaces.user_key(user_id)):
        subject, thread_id = one_note(storage.store, user_id, note_id)
        if action == "confirm":
            changed = confirmed_by_hand(subject, today)
        else:
            by_id = {one.id: one for one in _siblings(storage, user_id, thread_id)}
            changed = edited(by_id, subject, text, today) if action == "edit" else retracted(by_id, subject, today)
        _write(storage, user_id, thread_id, subject, action, changed, actor)
    return Change(action, list(changed.values()), field_of(subject) if action != "confirm" else "")


def forget_note(storage: Storage, user_id: str, note_id: str, *, actor: str = "") -> Change:
    """Delete a note for good, with the notes whose place it took and the texts of prompts that showed it.

    It is not learnt again from the same messages. They stay in the transcript, and their thread's summary and standing
    rules have what was made of them; `erase` takes a thread with all of it.

    Args:
        note_id: the note's id or its beginning.
        actor: as for `change_note`.

    Raises:
        NotFoundError: the user has no such note.
        SettingsError: several notes begin so.
    """
    today = now()[:10]
    with storage.locks.hold(namespaces.user_key(user_id)):
        subject, thread_id = one_note(storage.store, user_id, note_id)
        by_id = {one.id: one for one in _siblings(storage, user_id, thread_id)}
        holds = subject.status == "active" or bool(field_of(subject))
        # First it holds no longer, which also gives a field of the profile back.
        changed = retracted(by_id, subject, today) if holds else {}
        _write(storage, user_id, thread_id, subject, "forget", changed, actor)
        gone = {subject.id}
        while earlier := {one.id for one in by_id.values() if one.superseded_by in gone} - gone:
            gone |= earlier
        space = namespaces.notes(user_id) if thread_id is None else namespaces.session_notes(thread_id)
        storage.store.batch([*(PutOp(space, one, None) for one in gone), *erased_texts(storage, user_id, gone)])
    return Change("forget", [], field_of(subject))


def _siblings(storage: Storage, user_id: str, thread_id: str | None) -> list[Note]:
    """Return the notes of a thread's session, or the user's long-term ones."""
    store = storage.store
    return session_notes(store, thread_id) if thread_id else long_term_notes(store, user_id)


def _write(
    storage: Storage,
    user_id: str,
    thread_id: str | None,
    subject: Note,
    action: str,
    changed: dict[str, Note],
    actor: str,
) -> None:
    """Write the notes and the events in one batch; every thread that the note comes from gets an event."""
    if thread_id is None:
        writes = changed_by_hand(storage.store, user_id, changed)
        threads = list(dict.fromkeys(source.thread_id for source in subject.sources if source.thread_id))
    else:
        namespace = namespaces.session_notes(thread_id)
        writes = [PutOp(namespace, one.id, one.value(), index=None) for one in changed.values()]
        threads = [thread_id]
    if not threads:
        storage.store.batch(writes)
    for source_thread in threads:
        turn = int((or_none(partial(record_of, storage.store, source_thread)) or {}).get("turns", 0))
        # A confirmation leaves everything as it was.
        flagged = [] if action == "confirm" else _dependents(storage, user_id, source_thread, subject, changed)
        values = {"note_id": subject.id, "action": action, "dependents": flagged, "actor": actor or user_id}
        event = NoteChanged.model_validate(values)
        record_events(storage.store, source_thread, [event], write=lambda _: None, turn=turn, operations=writes)
        writes = []


def _dependents(
    storage: Storage, user_id: str, thread_id: str, subject: Note, changed: Mapping[str, Note]
) -> list[str]:
    """Return what comes from the same messages of a thread as a note: other notes, and the thread's summary."""

    def messages(one: Note) -> set[str]:
        return {name for source in one.sources if source.thread_id == thread_id for name in source.message_ids}

    own = messages(subject)
    others = [*long_term_notes(storage.store, user_id), *session_notes(storage.store, thread_id)]
    flagged = [one.id for one in others if one.id != subject.id and one.id not in changed and own & messages(one)]
    summary = Summary.model_validate(read_thread(storage, thread_id, whole=False).summary or {})
    if any(own.intersection(entry.sources) for entry in summary.entries):
        flagged.append(f"summary {summary.version}")
    return flagged
