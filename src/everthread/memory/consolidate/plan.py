"""What consolidation decides on each note, as typed values, and what the notes are once it is applied."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from langgraph.store.base import PutOp

from everthread.memory.consolidate.duplicates import says_the_same
from everthread.memory.consolidate.expiry import renewed
from everthread.state import namespaces
from everthread.state.notes import Note

T = TypeVar("T")

MOST_SOURCES = 8
"""Sources that a note keeps: the first, and the newest of the others."""

MOST_CONFIRMATIONS = 32
"""Days of confirmation that a note keeps: the first, and the newest of the others."""


@dataclass(frozen=True)
class Keep:
    """A session note stays one, since there is no room for it or nobody judged it."""

    note_id: str
    reason: str


@dataclass(frozen=True)
class Add:
    """A session note becomes long-term, in its own words or in `text`."""

    note_id: str
    text: str = ""


@dataclass(frozen=True)
class Merge:
    """A note says the same as another one and confirms it."""

    note_id: str
    into: str
    text: str = ""
    """New words for both; empty keeps those of `into`."""


@dataclass(frozen=True)
class Supersede:
    """A note has been replaced by another one, which names the same subject."""

    note_id: str
    by: str


@dataclass(frozen=True)
class Mark:
    """Two notes may contradict each other and nobody can tell which holds: both stay, marked."""

    note_id: str
    other: str


@dataclass(frozen=True)
class Expire:
    """A note has reached its end and is deleted."""

    note_id: str
    reason: str


@dataclass(frozen=True)
class Drop:
    """A session note goes, for a reason that can be checked."""

    note_id: str
    reason: str


Decision = Keep | Add | Merge | Supersede | Mark | Expire | Drop
D = TypeVar("D", bound=Decision)


@dataclass(frozen=True)
class Plan:
    """Decisions in order, with the notes that they were made on.

    Every session note is in exactly one of Add, Merge, Drop and Keep; a long-term note that is not named stays.
    """

    session: tuple[Note, ...]
    long_term: tuple[Note, ...]
    decisions: tuple[Decision, ...]
    today: str = ""
    """Day of the decision, ISO 8601."""
    planner: str = "rules"
    refused: Mapping[str, str] = field(default_factory=dict)
    """Note id to why the model's proposal for it was not taken; the rules decided instead."""

    @property
    def added(self) -> list[Note]:
        """Session notes that become long-term, as they will be stored."""
        after = self.after()
        return [after[one.note_id] for one in self._all(Add)]

    @property
    def merged(self) -> dict[str, Note]:
        """Session note id to the note that it confirms, as that will be stored."""
        after, mine = self.after(), {note.id for note in self.session}
        return {one.note_id: after[one.into] for one in self._all(Merge) if one.note_id in mine}

    @property
    def superseded(self) -> dict[str, str]:
        """Id of each replaced note to the id of the one in its place."""
        return {one.note_id: one.by for one in self._all(Supersede)}

    @property
    def dropped(self) -> dict[str, str]:
        """Session note id to the reason."""
        return {one.note_id: one.reason for one in self._all(Drop)}

    @property
    def expired(self) -> dict[str, str]:
        """Id of each deleted note to the reason."""
        return {one.note_id: one.reason for one in self._all(Expire)}

    @property
    def marked(self) -> list[tuple[str, str]]:
        """Pairs of notes that may contradict each other."""
        return [(one.note_id, one.other) for one in self._all(Mark)]

    @property
    def kept(self) -> dict[str, str]:
        """Id of each session note that stays a session note, to the reason."""
        return {one.note_id: one.reason for one in self._all(Keep)}

    def after(self) -> dict[str, Note]:
        """Return the long-term notes by id as they are once the plan is applied."""
        notes = {note.id: note for note in self.long_term}
        session = {note.id: note for note in self.session}
        for decision in self.decisions:
            apply(decision, notes, session)
        return notes

    def _all(self, kind: type[D]) -> list[D]:
        return [one for one in self.decisions if isinstance(one, kind)]


def operations(plan: Plan, user_id: str, thread_id: str, further: Mapping[str, Note] | None = None) -> list[PutOp]:
    """Return the writes of a plan for one batch: what changed among the long-term notes, and the end of the session's.

    Keys are the notes' own ids, so applying a plan twice changes nothing.

    Args:
        plan: the plan.
        user_id: whose long-term notes change.
        thread_id: whose session notes end.
        further: notes that were changed again since, by id.
    """
    before, after = {note.id: note for note in plan.long_term}, {**plan.after(), **(further or {})}
    changed = [note for note in after.values() if before.get(note.id) != note]
    return [
        *(PutOp(namespaces.notes(user_id), note.id, note.value(), index=None) for note in changed),
        *(PutOp(namespaces.notes(user_id), note_id, None) for note_id in before if note_id not in after),
        *(
            PutOp(namespaces.session_notes(thread_id), note.id, None)
            for note in plan.session
            if note.id not in plan.kept
        ),
    ]


def apply(decision: Decision, notes: dict[str, Note], session: Mapping[str, Note]) -> None:
    """Change long-term notes, by id, as a decision on one of them or on a session note says."""
    match decision:
        case Add(note_id, text):
            note = session[note_id]
            notes[note_id] = note.model_copy(update={"text": text or note.text, "scope": "durable"})
        case Merge(note_id, into, text):
            _merge(notes, session, note_id, into, text)
        case Supersede(note_id, by):
            update = {"status": "superseded", "valid_to": notes[by].date, "superseded_by": by}
            notes[note_id] = notes[note_id].model_copy(update=update)
        case Mark(note_id, other):
            for one, two in ((note_id, other), (other, note_id)):
                marked = tuple(dict.fromkeys((*notes[one].conflicts_with, two)))
                notes[one] = notes[one].model_copy(update={"conflicts_with": marked})
        case Expire(note_id):
            notes.pop(note_id, None)
            notes.update(unmarked(notes, note_id))


def unmarked(notes: Mapping[str, Note], note_id: str) -> dict[str, Note]:
    """Return the notes that were marked as contradicting one that holds no longer, without the mark."""
    return {
        note.id: note.model_copy(
            update={"conflicts_with": tuple(other for other in note.conflicts_with if other != note_id)}
        )
        for note in notes.values()
        if note_id in note.conflicts_with
    }


def _merge(notes: dict[str, Note], session: Mapping[str, Note], note_id: str, into: str, text: str) -> None:
    note = session.get(note_id) or notes[note_id]
    if note_id == into:
        return
    notes[into] = confirmed(notes[into], note, text)
    if note_id in notes or not says_the_same(note.text, notes[into].text):
        # Other words for the same may hold more than we can read: they stay, as history.
        update = {"status": "superseded", "valid_to": notes[into].date, "superseded_by": into}
        notes[note_id] = note.model_copy(update=update)


def holds_all_of(old: Note, new: Note) -> bool:
    """Tell whether a note has been merged into another one before, or is it."""
    return new.id == old.id or (bool(new.sources) and set(new.sources) <= set(old.sources))


def confirmed(old: Note, new: Note, text: str = "") -> Note:
    """Return a note with one more confirmation and source; a second try changes nothing."""
    if holds_all_of(old, new) and not text:
        return old
    days = tuple(sorted({*old.confirmations, new.date} - ({old.date} if not old.confirmations else set())))
    update = {
        "text": text or old.text,
        "kind": "constraint" if "constraint" in (old.kind, new.kind) else old.kind,
        "confirmations": _bounded(days or (new.date,), MOST_CONFIRMATIONS),
        "valid_from": old.valid_from or (min(old.date, new.date) if old.date != new.date else None),
        "date": max(old.date, new.date),
        "confidence": max(old.confidence, new.confidence),
        "expires_at": renewed(old, new),
        "keywords": tuple(dict.fromkeys((*old.keywords, *new.keywords)))[:3],
        "sources": _bounded(tuple(dict.fromkeys((*old.sources, *new.sources))), MOST_SOURCES),
    }
    return old.model_copy(update=update)


def _bounded(items: Sequence[T], most: int) -> tuple[T, ...]:
    """Keep the first item, which says where it began, and the newest of the others."""
    return tuple(items) if len(items) <= most else (items[0], *items[len(items) - most + 1 :])
