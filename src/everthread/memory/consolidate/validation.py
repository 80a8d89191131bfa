"""Turn a model's proposal into a plan: every step is checked, and what fails is decided by the rules."""

from collections.abc import Sequence

from everthread.memory.consolidate.conflicts import relation
from everthread.memory.consolidate.duplicates import says_the_same
from everthread.memory.consolidate.plan import Add, Mark, Merge, Plan, Supersede
from everthread.memory.consolidate.proposal import Numbered, Step
from everthread.memory.consolidate.rules import MOST_NOTES, Draft, decided, expire, in_order, reason_to_drop
from everthread.memory.consolidate.support import problem_with
from everthread.memory.text.wording import wording
from everthread.state.notes import Note


def validated(
    steps: Sequence[Step],
    shown: Numbered,
    session: Sequence[Note],
    long_term: Sequence[Note],
    today: str = "",
    *,
    most: int = MOST_NOTES,
) -> Plan:
    """Check a proposal against the notes and return the plan; pure, and no note is ever lost by it.

    Args:
        steps: the proposal, as far as it could be read.
        shown: which note each number stands for.
        session: session notes, as for `plan`.
        long_term: the user's long-term notes, as for `plan`.
        today: ISO 8601.
        most: active long-term notes that a user may have.

    Returns:
        A plan whose `refused` says, for every step that was not taken, why; `planner` is `rules` when none was.
    """
    return _Check(steps, shown, Draft(session, long_term, today, most)).run()


class _Check:
    def __init__(self, steps: Sequence[Step], shown: Numbered, draft: Draft) -> None:
        self.draft = draft
        self.refused: dict[str, str] = {}
        self.taken = 0
        notes = {**shown.long_term, **shown.session}
        self.by_note: dict[str, list[tuple[Step, Note | None]]] = {}
        for step in steps:
            other = notes.get(step.other) if step.other is not None else None
            if step.note not in notes or (step.other is not None and other is None):
                self.refused[f"#{step.note}"] = "no such note"
            else:
                self.by_note.setdefault(notes[step.note].id, []).append((step, other))

    def run(self) -> Plan:
        """Decide on every session note, then on what is proposed for long-term notes."""
        expire(self.draft)
        for note in in_order(self.draft.session):
            self._session_note(note)
        for note in self.draft.long_term:
            self._long_term_note(note)
        return self.draft.done("model" if self.taken else "rules", self.refused)

    def _session_note(self, note: Note) -> None:
        proposed = self.by_note.get(note.id, [])
        if reason_to_drop(note, self.draft.today) or note.id in self.draft.notes:
            self.draft.decide(*decided(self.draft, note))
        elif problem := self._taken(note, *proposed[0]) if len(proposed) == 1 else "not named once":
            self.refused[note.id] = problem
            self.draft.decide(*decided(self.draft, note))
        else:
            self.taken += 1

    def _taken(self, note: Note, step: Step, other: Note | None) -> str:
        """Take the step for a session note, or say why not."""
        match step.action:
            case "add":
                return self._add(note, step.text or "")
            case "merge" if other is not None:
                return self._merge(note, other, step.text or "")
            case "drop":
                return "a lasting note is not dropped"
        return f"`{step.action}` does not end a session note"

    def _add(self, note: Note, text: str) -> str:
        active = self.draft.active
        if any(says_the_same(known.text, text or note.text) for known in active):
            return "it is known already"
        if text and (problem := problem_with(text, [note])):
            return problem
        first, *others = decided(self.draft, note)
        if not isinstance(first, Add):
            self.draft.decide(first)
            return ""
        # What the rules see stands, unless the model keeps the other note.
        kept = {known.id for known in active if self._keeps(known)}
        replaced = {one.note_id for one in others if isinstance(one, Supersede)}
        marks = {name: Mark(name, note.id) for name in replaced & kept}
        self.draft.decide(Add(note.id, text), *(marks.get(one.note_id, one) for one in others))
        self.draft.decide(*self._proposed_ends(note, replaced))
        return ""

    def _keeps(self, note: Note) -> bool:
        """Tell whether the model wants to keep a long-term note in so many words."""
        return [step.action for step, _ in self.by_note.get(note.id, [])] == ["keep"]

    def _proposed_ends(self, note: Note, ended: set[str]) -> list[Supersede]:
        """Return what the model says that this note replaces, as far as both name one subject."""
        ends = []
        for known in self.draft.active:
            for step, other in self.by_note.get(known.id, []):
                if step.action != "supersede" or other is None or other.id != note.id or known.id in ended:
                    continue
                if known.id != note.id and known.date <= note.date and relation(known, note):
                    ends.append(Supersede(known.id, note.id))
                else:
                    self.refused[known.id] = "the notes do not name one subject"
        return ends

    def _merge(self, note: Note, other: Note, text: str) -> str:
        into = self.draft.notes.get(other.id)
        if into is None or into.id not in {known.id for known in self.draft.active} or into.id == note.id:
            return "the other note does not hold"
        if problem := _problem_of_merging(note, into, text):
            return problem
        self.draft.decide(Merge(note.id, into.id, text))
        return ""

    def _long_term_note(self, note: Note) -> None:
        for step, other in self.by_note.get(note.id, []):
            now = self.draft.notes.get(note.id)
            if step.action in ("add", "drop"):
                self.refused[note.id] = f"`{step.action}` is for session notes"
            elif step.action == "expire" and now is not None:
                self.refused[note.id] = "it has not come to its end"
            elif step.action == "merge" and now is not None and now.status == "active" and other is not None:
                if problem := self._merge(now, other, step.text or ""):
                    self.refused[note.id] = problem
                else:
                    self.taken += 1


def _problem_of_merging(note: Note, into: Note, text: str) -> str:
    """Say why two notes cannot become one; empty when they say the same or nothing is lost."""
    if says_the_same(note.text, into.text):
        return problem_with(text, [note, into]) if text else ""
    if relation(*sorted((note, into), key=lambda one: one.when)) is not None:
        return "the notes contradict each other"
    if not wording(note.text).words & wording(into.text).words and (not note.subject or note.subject != into.subject):
        return "the notes have nothing in common"
    return problem_with(text, [note, into]) if text else "different notes need a text that says both"
