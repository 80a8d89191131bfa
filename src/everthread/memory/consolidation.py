"""Plan how session notes become long-term notes, by rules."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from langgraph.store.base import PutOp

from everthread.state import namespaces
from everthread.state.notes import Note

FOR_THIS_SESSION = "for this session only"
NOT_ACTIVE = "no longer active"

_FILLER = frozenset(
    "a an the is are i user prefers prefer likes like wants want to for of on in and with when".split()  # noqa: SIM905
)


@dataclass
class Plan:
    """What consolidation does; every session note is in exactly one of its parts."""

    added: list[Note] = field(default_factory=list)
    merged: dict[str, Note] = field(default_factory=dict)
    """Session note id to the long-term note that it confirms, as it will be stored."""
    dropped: dict[str, str] = field(default_factory=dict)
    """Session note id to the reason."""


def plan(session: Sequence[Note], long_term: Sequence[Note]) -> Plan:
    """Decide on every session note: add it, merge it with a long-term note that says the same, or drop it.

    Notes that merely resemble each other are all kept: the newer one stands first in the prompt.

    Args:
        session: session notes of one thread, any order.
        long_term: the user's long-term notes.
    """
    found = Plan()
    known = {_same_key(note.text): note for note in long_term if note.status == "active"}
    for note in sorted(session, key=lambda note: (note.date, note.id)):
        if note.status != "active":
            found.dropped[note.id] = NOT_ACTIVE
        elif note.scope == "session":
            found.dropped[note.id] = FOR_THIS_SESSION
        elif (old := known.get(_same_key(note.text))) is None:
            found.added.append(note)
            known[_same_key(note.text)] = note
        else:
            merged = _confirmed(old, note)
            found.merged[note.id] = merged
            known[_same_key(note.text)] = merged
            found.added = [merged if added.id == merged.id else added for added in found.added]
    return found


def operations(made: Plan, user_id: str, thread_id: str, session: Sequence[Note]) -> list[PutOp]:
    """Return the writes of a plan: long-term notes and the end of the session notes, in one batch.

    Keys are the notes' own ids, so applying a plan twice changes nothing.
    """
    kept = {note.id: note for note in (*made.added, *made.merged.values())}
    return [
        *(PutOp(namespaces.notes(user_id), note.id, note.value(), index=None) for note in kept.values()),
        *(PutOp(namespaces.session_notes(thread_id), note.id, None) for note in session),
    ]


def _same_key(text: str) -> tuple[str, ...]:
    # In order: "window, not aisle" and "aisle, not window" have the same words.
    return tuple(word for word in re.findall(r"\w+", text.lower()) if word not in _FILLER)


def _confirmed(old: Note, new: Note) -> Note:
    """Return the long-term note with one more confirmation and source; a second try changes nothing."""
    if new.id == old.id or new.sources[-1:] == old.sources[-1:]:
        return old
    return old.model_copy(
        update={
            "confirmations": tuple(dict.fromkeys((*old.confirmations, new.date))),
            "date": max(old.date, new.date),
            "sources": tuple(dict.fromkeys((*old.sources, *new.sources))),
        }
    )
