"""Plan a consolidation by rules: no model, and on doubt both notes stay."""

from collections.abc import Iterable, Sequence

from everthread.memory.consolidate.conflicts import relation
from everthread.memory.consolidate.duplicates import says_the_same
from everthread.memory.consolidate.expiry import end_of
from everthread.memory.consolidate.plan import (
    Add,
    Decision,
    Drop,
    Expire,
    Keep,
    Mark,
    Merge,
    Plan,
    Supersede,
    apply,
    holds_all_of,
)
from everthread.memory.consolidate.promotion import holds, is_promoted
from everthread.memory.guard import check
from everthread.memory.text.wording import wording
from everthread.state.notes import Note

FOR_THIS_SESSION = "for this session only"
NOT_ACTIVE = "no longer active"
BLOCKED = "refused by the guard"
UNCONFIRMED = "the user did not say it, and did not confirm it"
MEMORY_FULL = "no room: the memory is full"

MOST_NOTES = 500
"""Active long-term notes of one user; what is beyond them stays a session note, and an event says so."""


class Draft:
    """A plan in the making: what is long-term by now, and what was decided."""

    def __init__(self, session: Sequence[Note], long_term: Sequence[Note], today: str, most: int) -> None:
        self.session = tuple(session)
        self.long_term = tuple(long_term)
        self.today = today
        self.most = most
        self.decisions: list[Decision] = []
        self.notes = {note.id: note for note in long_term}
        self._session = {note.id: note for note in session}

    @property
    def active(self) -> list[Note]:
        """Long-term notes that hold by now, those that became a field of the profile among them."""
        return [note for note in self.notes.values() if holds(note)]

    def decide(self, *decisions: Decision) -> None:
        """Add decisions."""
        for decision in decisions:
            self.decisions.append(decision)
            apply(decision, self.notes, self._session)

    def done(self, planner: str = "rules", refused: dict[str, str] | None = None) -> Plan:
        """Return the plan."""
        return Plan(self.session, self.long_term, tuple(self.decisions), self.today, planner, refused or {})


def plan(session: Sequence[Note], long_term: Sequence[Note], today: str = "", *, most: int = MOST_NOTES) -> Plan:
    """Decide on every session note, and on the long-term notes that it confirms or replaces.

    A note that says the same as another one confirms it. One that names the same subject with another
    value takes its place, by the later date, and the session's on the same day. What merely resembles
    another stays beside it.

    Args:
        session: session notes of one thread; those of one day in the order in which they were said.
        long_term: the user's long-term notes, whatever their status.
        today: ISO 8601; empty expires nothing.
        most: active long-term notes that a user may have.
    """
    draft = Draft(session, long_term, today, most)
    expire(draft)
    for note in in_order(session):
        draft.decide(*decided(draft, note))
    return draft.done()


def in_order(session: Iterable[Note]) -> list[Note]:
    """Return session notes by when they were said; where that is the same, as they stand."""
    return sorted(session, key=lambda note: note.when)


def expire(draft: Draft) -> None:
    """Delete the long-term notes that have come to their end."""
    if draft.today:
        ended = [(note.id, end_of(note, draft.today)) for note in draft.long_term]
        draft.decide(*(Expire(note_id, reason) for note_id, reason in ended if reason))


def reason_to_drop(note: Note, today: str) -> str:
    """Say why a session note does not become long-term, in terms that can be checked; empty when it may."""
    if note.status != "active":
        return NOT_ACTIVE
    if note.is_waiting:
        return UNCONFIRMED
    if note.scope == "session":
        return FOR_THIS_SESSION
    if today and note.expires_at and note.expires_at[:10] <= today:
        return f"expired on {note.expires_at[:10]}"
    return "" if check(note.text, is_own=note.quotes_user).allowed else BLOCKED


def decided(draft: Draft, note: Note) -> list[Decision]:
    """Return what the rules decide on one session note."""
    if reason := reason_to_drop(note, draft.today):
        return [Drop(note.id, reason)]
    if note.id in draft.notes:
        # A crash came between two tries, or the note was consolidated and distilled again.
        return [Merge(note.id, note.id)]
    if (twin := _twin(draft.active, note) or _replaced_later(draft, note)) is not None:
        return [Merge(note.id, twin.id)]
    rivals = [(rival, relation(rival, note)) for rival in draft.active]
    older = [rival for rival, how in rivals if how == "replaces" and rival.date <= note.date]
    newer = [rival for rival, how in rivals if how == "replaces" and rival.date > note.date]
    if len(rivals) >= draft.most and not older:
        return [Keep(note.id, MEMORY_FULL)]
    added: list[Decision] = [Add(note.id), *(Supersede(rival.id, note.id) for rival in older)]
    if newer:
        # It was said before what is known already: it is history, not news.
        return [*added, Supersede(note.id, max(newer, key=lambda rival: rival.date).id)]
    return [*added, *(Mark(rival.id, note.id) for rival, how in rivals if how == "doubt")]


def _replaced_later(draft: Draft, note: Note) -> Note | None:
    """Return the replaced note that this one repeats, unless the user said it again after it was replaced."""
    twins = [
        other
        for other in draft.notes.values()
        if other.status in ("superseded", "retracted")
        and not is_promoted(other)
        and says_the_same(other.text, note.text)
    ]
    if not twins:
        return None
    last = max(twins, key=lambda other: other.valid_to or other.date)
    ended = last.valid_to or last.date
    is_said_again = note.origin == "user" and note.date >= ended and not holds_all_of(last, note)
    return None if is_said_again else last


def _twin(notes: Iterable[Note], note: Note) -> Note | None:
    """Return a note that says the same as another one; of several, the one whose words differ least."""
    words = wording(note.text).words
    likely = sorted(notes, key=lambda other: len(words ^ wording(other.text).words))
    return next((other for other in likely if says_the_same(other.text, note.text)), None)
