"""Corrections by hand: a person edits, confirms or retracts a note."""

from collections.abc import Mapping

from everthread.errors import SettingsError
from everthread.memory.capture import LONGEST, kind_of, normalised
from everthread.memory.consolidate.plan import MOST_CONFIRMATIONS, unmarked
from everthread.memory.consolidate.promotion import holds
from everthread.memory.distill.attributes import subject_of
from everthread.memory.distill.third_person import keywords
from everthread.memory.guard import check, phrase
from everthread.state.notes import Note, note_id

_NO_LONGER = {"superseded": "edit or retract the note in its place", "expired": "say it anew"}


def edited(notes: Mapping[str, Note], note: Note, text: str, today: str) -> dict[str, Note]:
    """Return the notes that change when a note gets other words: the new one, and the old one as history.

    Raises:
        SettingsError: the text is empty, too long, the same, or refused by the guard; or the note holds no longer.
    """
    _check_holds(note)
    if (text := _checked(text)) == note.text:
        raise SettingsError(f"note {note.id!r} needs a new text, got {text!r}")
    update = {"text": text, "kind": kind_of(text), "date": today, "origin": "user", "confidence": 1.0}
    derived = {"keywords": tuple(keywords(text)), "subject": subject_of(text), "conflicts_with": ()}
    fresh = {"status": "active", "superseded_by": None, "valid_to": None, "valid_from": None, "confirmations": ()}
    new = note.model_copy(update={**_as_users(note), **update, **fresh, **derived, "id": note_id(note.id, text)})
    old = note.model_copy(update={"status": "superseded", "valid_to": today, "superseded_by": new.id})
    return {**unmarked(notes, note.id), old.id: old, new.id: new}


def written(notes: Mapping[str, Note], text: str, today: str) -> dict[str, Note]:
    """Return the note that a person writes in their own words; one that says the same and holds is confirmed.

    Raises:
        SettingsError: the text is empty, too long, or refused by the guard.
    """
    text = _checked(text)
    same = next((note for note in notes.values() if note.text == text and note.status == "active"), None)
    if same is not None:
        return confirmed_by_hand(same, today)
    new = Note(
        id=note_id("written", today, text),
        text=text,
        keywords=tuple(keywords(text)),
        kind=kind_of(text),
        date=today,
        subject=subject_of(text),
    )
    return {new.id: new}


def _checked(text: str) -> str:
    if (length := len(" ".join(text.split()))) > LONGEST:
        raise SettingsError(f"a note has at most {LONGEST} characters, not {length}; shorten it, or write two notes")
    text = normalised(text)
    if not text:
        raise SettingsError("a note needs a text")
    if not (verdict := check(text)).allowed:
        raise SettingsError(f"the text looks like {phrase(verdict.category)}, which is never kept as a note")
    return text


def confirmed_by_hand(note: Note, today: str) -> dict[str, Note]:
    """Return the note confirmed today; a retracted one holds again, and one that waited is now the user's own.

    Raises:
        SettingsError: another note has taken its place.
    """
    if note.status != "retracted":
        _check_holds(note)
    days = tuple(sorted({*note.confirmations, today}))[-MOST_CONFIRMATIONS:]
    update = {"confirmations": days, "valid_from": note.valid_from or note.date, "date": max(note.date, today)}
    holds = {"status": "active", "valid_to": None} if note.status == "retracted" else {}
    return {note.id: note.model_copy(update={**update, **holds, **_as_users(note), "confidence": 1.0})}


def retracted(notes: Mapping[str, Note], note: Note, today: str) -> dict[str, Note]:
    """Return the notes that change when a note is withdrawn; what it may have contradicted is no longer marked.

    Raises:
        SettingsError: it is withdrawn already, or it is history: what another note replaced holds no longer.
    """
    if note.status == "retracted":
        raise SettingsError(f"note {note.id!r} was retracted on {note.valid_to or note.date}")
    _check_holds(note)
    update = {"status": "retracted", "valid_to": today, "superseded_by": None, "conflicts_with": ()}
    return {**unmarked(notes, note.id), note.id: note.model_copy(update=update)}


def _as_users(note: Note) -> dict[str, object]:
    """Return what changes when a note becomes the user's own: one that waited is now what it would have been."""
    if not note.is_waiting:
        return {"origin": "user"}
    scope = note.scope_if_confirmed or note.scope
    return {"origin": "user", "kind": kind_of(note.text), "scope": scope, "scope_if_confirmed": None}


def _check_holds(note: Note) -> None:
    if not holds(note):
        advice = _NO_LONGER.get(note.status, "confirm it first")
        by = f" by {note.superseded_by!r}" if note.superseded_by else ""
        raise SettingsError(f"note {note.id!r} is {note.status}{by}; {advice}")
