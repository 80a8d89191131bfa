"""A second opinion at the end of a session: on notes that no model has judged, and on the words of a proposal.

What was refused goes; a note that could not be judged stays a session note, and the next end of a session asks again.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from everthread.memory.consolidate.plan import Drop, Keep, Plan
from everthread.memory.consolidate.proposal import Numbered, Step
from everthread.memory.consolidate.rules import BLOCKED, reason_to_drop
from everthread.memory.guard import Verdict
from everthread.memory.guard.opinion import unanswered
from everthread.state.notes import Note

UNJUDGED = "no second opinion could be had"


def to_judge(
    session: Sequence[Note], judged: Collection[str], steps: Sequence[Step], shown: Numbered | None, today: str
) -> list[Note]:
    """Return what a model is asked about: each note that would last, and each new wording as a note of its own.

    Args:
        session: session notes.
        judged: ids of those that a model allowed when they were saved.
        steps: a proposal.
        shown: which note each number of it stands for.
        today: ISO 8601.
    """
    return [*_unjudged(session, judged, today), *(note for _, note in _worded(steps, shown) if note is not None)]


def refused_notes(
    session: Sequence[Note], judged: Collection[str], opinions: Mapping[str, Verdict], today: str
) -> dict[str, Verdict]:
    """Return the verdicts on the notes that may not become long-term; nobody was asked about a note that is new."""
    verdicts = {note.id: opinions.get(note.id, unanswered("new")) for note in _unjudged(session, judged, today)}
    return {name: verdict for name, verdict in verdicts.items() if not verdict.allowed}


def approved(steps: Sequence[Step], shown: Numbered | None, opinions: Mapping[str, Verdict]) -> list[Step]:
    """Return a proposal without the wordings that were not allowed."""
    return [
        step if note is None or opinions[note.id].allowed else step.model_copy(update={"text": None})
        for step, note in _worded(steps, shown)
    ]


def held_back(plan: Plan, notes: Sequence[Note], refused: Mapping[str, Verdict]) -> Plan:
    """Return a plan with the session notes that were left out of it: dropped, or kept when nobody judged them."""
    decisions = [
        Keep(note.id, UNJUDGED) if refused[note.id].category == "unreadable" else Drop(note.id, BLOCKED)
        for note in notes
    ]
    return replace(plan, session=(*plan.session, *notes), decisions=(*plan.decisions, *decisions))


def _unjudged(session: Sequence[Note], judged: Collection[str], today: str) -> list[Note]:
    return [note for note in session if note.id not in judged and not reason_to_drop(note, today)]


def _worded(steps: Sequence[Step], shown: Numbered | None) -> Iterator[tuple[Step, Note | None]]:
    """Yield each step, with the note that it would make of another note by its wording."""
    notes = {**shown.long_term, **shown.session} if shown is not None else {}
    for place, step in enumerate(steps):
        note = notes.get(step.note) if step.text else None
        yield step, note and note.model_copy(update={"id": f"{note.id}/{place}", "text": step.text})
