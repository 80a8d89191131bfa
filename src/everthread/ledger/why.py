"""Why: where a thing is now, how it came there, and what depends on it, in plain sentences."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from everthread.ledger.events import (
    Compacted,
    Erased,
    Event,
    Evicted,
    Masked,
    NoteBlocked,
    NoteChanged,
    NoteExpired,
    NoteMerged,
    NoteSaved,
    NoteSuperseded,
    Offloaded,
    Recalled,
    Regret,
)
from everthread.ledger.lineage import (
    Known,
    Thing,
    closure,
    dependents,
    dropped_because,
    fields_of,
    found,
    said,
    sources,
)
from everthread.state.marks import is_masked, marks
from everthread.state.notes import Note
from everthread.state.summary import STANDING

__all__ = ["Account", "Fact", "explain"]

_TITLE = 160


@dataclass(frozen=True)
class Fact:
    """One sentence about a thing."""

    state: str
    """In one word, such as `in_prompt`, `evicted` or `superseded`; the list is in docs/ledger.md."""
    text: str
    turn: int = 0
    """Of this thread, or of the thread whose ledger tells it; 0 when the sentence is about now or nobody knows."""


@dataclass(frozen=True)
class Account:
    """All that is known of one thing."""

    kind: str
    id: str
    title: str
    """What it says, shortened; empty when its text is no longer there."""
    facts: tuple[Fact, ...]
    comes_from: tuple[Thing, ...] = ()
    leads_to: tuple[Thing, ...] = ()

    def has(self, state: str) -> bool:
        """Tell whether one of the sentences is about a state."""
        return any(fact.state == state for fact in self.facts)

    def as_json(self) -> dict[str, Any]:
        """Return it as one JSON object."""
        return asdict(self)


def explain(known: Known, asked: str, things: Sequence[Thing] = ()) -> list[Account]:
    """Tell of everything that an id or a text names, and of all that it is linked to.

    Args:
        known: the thread.
        asked: an id, a handle or some words.
        things: what to tell of instead of looking for `asked`.
    """
    return [_account(known, thing) for thing in closure(known, list(things) or found(known, asked))]


def _account(known: Known, thing: Thing) -> Account:
    facts: Callable[[Known, str], Iterator[Fact]] = _TELLERS[thing.kind]
    return Account(
        kind=thing.kind,
        id=thing.id,
        title=" ".join(_title(known, thing).split())[:_TITLE],
        facts=tuple(facts(known, thing.id)),
        comes_from=tuple(sources(known, thing)),
        leads_to=tuple(dependents(known, thing)),
    )


def _title(known: Known, thing: Thing) -> str:
    if thing.kind == "message":
        message = known.messages[thing.id]
        return f"{_ROLES.get(message.type, message.type)}: {said(message)}"
    if thing.kind == "note":
        note = known.note(thing.id)
        return note.text if note else ""
    return known.entries[int(thing.id)].text if thing.kind == "entry" else thing.id


_ROLES = {"human": "user", "ai": "assistant"}


def _turn(known: Known, event: Event) -> str:
    """Say in which turn, and of which thread when it is another one."""
    other = f" of thread {event.thread_id}" if event.thread_id not in ("", known.thread_id) else ""
    return f"in turn {event.turn}{other}"


def _of_message(known: Known, message_id: str) -> Iterator[Fact]:
    told = known.about(message_id)
    turn = known.turn_of[message_id]
    yield Fact("said", f"It was said in turn {turn} of {known.turns}.", turn)
    here = known.working_set.get(message_id)
    if here is None:
        yield from _left(known, message_id, told)
    elif is_masked(here):
        yield _masked(str(marks(here)["handle"]), told)
    else:
        yield Fact("in_prompt", "It is in the prompt word for word, in the category `history`.")
    yield from _recalls(known, told)
    for event in told:
        if isinstance(event, NoteBlocked):
            category = event.category.replace("_", " ") or "no note"
            reason = f"A note from it was blocked in turn {event.turn} because it looks like {category}"
            yield Fact("blocked", f"{reason} (rule `{event.rule}`).", event.turn)
        elif isinstance(event, Regret):
            yield Fact("regretted", _regret(event), event.turn)


def _masked(handle: str, told: Sequence[Event]) -> Fact:
    event = next((one for one in reversed(told) if isinstance(one, Masked | Offloaded)), None)
    text = f"The prompt has it masked, with handle {handle}"
    if event is None:
        return Fact("masked", f"{text}; when it was masked is not recorded any more.")
    sizes = f"{event.tokens_before:,} tokens became {event.tokens_after:,}"
    return Fact("masked", f"{text}, since turn {event.turn}: {event.reason} ({sizes}).", event.turn)


def _left(known: Known, message_id: str, told: Sequence[Event]) -> Iterator[Fact]:
    event = next((one for one in reversed(told) if isinstance(one, Evicted | Compacted)), None)
    if event is None:
        yield Fact(
            "evicted", "It is not in the prompt but in the transcript; when and why it left is not recorded any more."
        )
    else:
        by = f"policy `{event.policy}`, {event.reason}" if isinstance(event, Evicted) else event.reason
        sizes = f"the history went from {event.tokens_before:,} to {event.tokens_after:,} tokens"
        limit = f", budget {event.budget:,}" if event.budget else ""
        whole = "the transcript has it whole"
        yield Fact("evicted", f"It was evicted in turn {event.turn}: {by} ({sizes}{limit}); {whole}.", event.turn)
    entries = [entry for entry in known.entries if message_id in entry.sources]
    for entry in entries:
        yield Fact("in_summary", f"It is in the summary as “{entry.text}” ({_where(entry.section)}).")
    if not entries and isinstance(event, Compacted):
        yield Fact(
            "not_in_summary",
            f"It was folded into version {event.version} of the summary; no entry of the present version names it.",
            event.turn,
        )


def _where(section: str) -> str:
    return "the user's standing instructions" if section == STANDING else f"section `{section}`"


def _recalls(known: Known, told: Sequence[Event]) -> Iterator[Fact]:
    recalls = [event for event in told if isinstance(event, Recalled)]
    if not recalls:
        return
    turns = sorted({event.turn for event in recalls})
    shown = ", ".join(map(str, turns[-5:])) + (" (the last five)" if len(turns) > 5 else "")
    times = f"It was recalled in turn {shown}" if len(turns) == 1 else f"It was recalled in turns {shown}"
    current = turns[-1] == known.turns and recalls[-1].by == "question" and known.shows_recalled
    now = "; the newest prompt has it in the category `recalled`" if current else ""
    yield Fact("recalled", f"{times}{now}.", turns[-1])


def _regret(event: Regret) -> str:
    needed = {
        "repeated_call": "the same call was made again",
        "read_back": "its full text was read back by its handle",
        "recall": "the model searched for it",
        "restated": "the user said it again",
    }[event.why]
    since = f" in turn {event.left_turn}" if event.left_turn else ""
    return f"It was missed: {needed} in turn {event.turn}, after it had been {event.left}{since}."


def _of_note(known: Known, note_id: str) -> Iterator[Fact]:
    told = [event for event in known.of_notes if getattr(event, "note_id", None) == note_id]
    for event in told:
        if isinstance(event, NoteSaved):
            by = {"tool": "by the model", "turn": "by rules after the turn", "session": "by rules at the end"}[event.by]
            yield Fact("saved", f"It was saved as a session note {by}, {_turn(known, event)}.", event.turn)
    note = known.note(note_id)
    if note is None:
        yield _gone(known, note_id, told)
        return
    if note.status == "superseded":
        by = f" by {note.superseded_by}" if note.superseded_by else ""
        other = known.note(note.superseded_by or "")
        words = f" (“{other.text}”)" if other else ""
        yield Fact("superseded", f"It was superseded{by}{words} on {note.valid_to or 'an unknown day'}.")
    elif note.status == "retracted":
        yield Fact("retracted", f"It was retracted on {note.valid_to or 'an unknown day'} and is in no prompt.")
    elif note.status == "expired":
        yield Fact("expired", f"It expired on {note.expires_at or note.valid_to or 'an unknown day'}.")
    else:
        yield _shown(known, note)
    yield from (Fact("promoted", f"It is the field `{name}` of the profile.") for name in fields_of(known, note_id))
    yield from _changes(told)
    for event in known.of_notes:
        if isinstance(event, NoteMerged) and event.into == note_id:
            yield Fact("confirmed", f"It took in note {event.note_id}, {_turn(known, event)}.", event.turn)
        if isinstance(event, Erased) and note_id in event.kept_ids:
            yield Fact("erased", f"Some of what it came from was erased on {event.at[:10]}.", event.turn)


def _gone(known: Known, note_id: str, told: Sequence[Event]) -> Fact:
    for event in reversed(told):
        if isinstance(event, NoteMerged):
            other = known.note(event.into)
            words = f" (“{other.text}”)" if other else ""
            return Fact("merged", f"It was merged into {event.into}{words}, {_turn(known, event)}.", event.turn)
        if isinstance(event, NoteExpired):
            return Fact("expired", f"It expired and was deleted, {_turn(known, event)}: {event.reason}.", event.turn)
        if isinstance(event, NoteSuperseded):
            return Fact("superseded", f"It was superseded by {event.by}, {_turn(known, event)}.", event.turn)
    for one in reversed(known.of_notes):
        if isinstance(one, Erased) and note_id in one.note_ids:
            return Fact("erased", f"It was erased on {one.at[:10]}, with the thread that it came from.", one.turn)
    if (dropped := dropped_because(known, note_id)) is not None:
        return Fact("dropped", f"It was dropped at the end of the session: {dropped[0]}.", dropped[1])
    return Fact("unknown", "It is no longer stored, and what became of it is not recorded.")


def _shown(known: Known, note: Note) -> Fact:
    """Tell where an active note is in the newest prompt, by what the newest run resolved."""
    last = known.last_injection
    if note.id not in known.session_notes:
        if last is not None and note.id in last.note_ids:
            return Fact("in_prompt", "It is in the prompt, in the category `notes` (long-term notes).", last.turn)
        if last is not None and note.id in last.asked_note_ids and known.shows_recalled:
            words = "It is in the prompt, ahead of the question that brought it, in the category `recalled`."
            return Fact("in_prompt", words, last.turn)
        return Fact("not_in_prompt", "It is a long-term note but was not in this thread's newest prompt.")
    if any(name in known.working_set for source in note.sources for name in source.message_ids):
        return Fact("in_prompt", "It is a session note; the prompt still has the message that it came from.")
    if last is not None and note.id in last.session_note_ids:
        return Fact("in_prompt", "It is in the prompt, in the category `session_notes`.", last.turn)
    return Fact("not_in_prompt", "It is a session note; the newest prompt was made before it or had no room for it.")


def _changes(told: Sequence[Event]) -> Iterator[Fact]:
    for event in told:
        if isinstance(event, NoteChanged):
            done = {"edit": "edited", "confirm": "confirmed", "retract": "retracted"}[event.action]
            flagged = f"; to be looked at: {', '.join(event.dependents)}" if event.dependents else ""
            yield Fact("changed", f"A person {done} it on {event.at[:10]}{flagged}.", event.turn)


def _of_entry(known: Known, place: str) -> Iterator[Fact]:
    entry = known.entries[int(place)]
    version = known.summary.version if known.summary else 0
    yield Fact(
        "in_prompt",
        f"It is in the prompt, in the category `summary` (version {version}, {_where(entry.section)}).",
    )
    if not entry.sources:
        yield Fact("unknown", "Which messages it came from was not recorded.")
    for event in known.of_notes:
        if isinstance(event, NoteChanged) and f"summary {version}" in event.dependents:
            note = known.note(event.note_id)
            origins = {name for source in (note.sources if note else ()) for name in source.message_ids}
            if origins.intersection(entry.sources):
                yield Fact("flagged", f"A note from the same message was changed on {event.at[:10]}.", event.turn)


def _of_index(known: Known, text: str) -> Iterator[Fact]:
    yield Fact("in_prompt", "It is in the prompt, in the category `summary` (index of exact strings).")
    yield Fact("unknown", "The index does not record which message a string came from.")


_TELLERS: dict[str, Callable[[Known, str], Iterator[Fact]]] = {
    "message": _of_message,
    "note": _of_note,
    "entry": _of_entry,
    "index": _of_index,
}
