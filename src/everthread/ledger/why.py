"""Why: where something is now, how it got there, and what depends on it, in plain sentences."""

from collections.abc import Iterator, Sequence
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
    Refetch,
)
from everthread.ledger.lineage import LineageItem, ThreadHistory, words_of
from everthread.memory.guard.verdict import phrase
from everthread.state.marks import is_masked, marks
from everthread.state.notes import Note
from everthread.state.summary import STANDING

_TITLE_CHARACTERS = 160
_MOST_LIKE = 3
"""Messages that share words with a text which nothing has as it is."""

_ROLES = {"human": "user", "ai": "assistant"}
_SAVERS = {"tool": "by the model", "turn": "by rules after the turn", "session": "by rules at the end"}
_CHANGES = {"edit": "edited", "confirm": "confirmed", "retract": "retracted", "forget": "forgot"}
NEEDS = {
    "repeated_call": "the same call was made again",
    "read_back": "its full text was read back by its handle",
    "recall": "the model searched for it",
    "restated": "the user said it again",
}
"""What shows that something was missed, by `Refetch.why`."""


@dataclass(frozen=True)
class Fact:
    """One sentence about an item."""

    state: str
    """In one word, such as `in_prompt`, `evicted` or `superseded`; the list is in docs/ledger.md."""
    text: str
    turn: int = 0
    """Of this thread, or of the thread whose ledger has it; 0 when the sentence is about now or nobody knows."""


@dataclass(frozen=True)
class Explanation:
    """All facts about one item."""

    kind: str
    id: str
    title: str
    """What it says, shortened; empty when its text is no longer there."""
    facts: tuple[Fact, ...]
    comes_from: tuple[LineageItem, ...] = ()
    leads_to: tuple[LineageItem, ...] = ()

    def has(self, state: str) -> bool:
        """Tell whether one of the sentences is about a state."""
        return any(fact.state == state for fact in self.facts)

    def as_json(self) -> dict[str, Any]:
        """Return it as one JSON object."""
        return asdict(self)


def explain(history: ThreadHistory, query: str, items: Sequence[LineageItem] = ()) -> list[Explanation]:
    """Explain everything that an id or a text names, and all that it is linked to.

    Of a text, what the user said comes ahead of replies, tool calls and notes that say it again.

    Args:
        query: an id, a handle or some words.
        items: what to explain instead of looking for `query`.
    """
    return [
        Explanation(
            kind=item.kind,
            id=item.id,
            title=" ".join(_title(history, item).split())[:_TITLE_CHARACTERS],
            facts=tuple(_facts(history, item)),
            comes_from=tuple(history.sources(item)),
            leads_to=tuple(history.dependents(item)),
        )
        for item in (history.closure(items) if items else _found(history, query))
    ]


def _found(history: ThreadHistory, query: str) -> list[LineageItem]:
    """Return what an id or a text names, and all that it is linked to, in the order in which it is explained."""
    named = history.find(query)
    linked = history.closure(named)
    if any(item.id.startswith(query) for item in named):
        return linked
    sources = {source for item in named if item.kind == "note" for source in history.sources(item)}
    first = [item for item in linked if (item in sources or item in named) and _is_of_user(history, item)]
    return list(dict.fromkeys([*first, *linked]))


def _is_of_user(history: ThreadHistory, item: LineageItem) -> bool:
    message = history.messages.message(item.id) if item.kind == "message" else None
    return message is not None and message.type == "human"


def explain_closest(history: ThreadHistory, query: str) -> tuple[list[Explanation], bool]:
    """Explain what has a text as it is, or else the messages that share most words with it.

    Returns:
        The explanations, empty when nothing is like it; and whether they are of the text as it is.
    """
    if exact := explain(history, query):
        return exact, True
    like = [LineageItem("message", str(one.id)) for one in history.messages.like(query, _MOST_LIKE)]
    return (explain(history, query, like), False) if like else ([], True)


def _title(history: ThreadHistory, item: LineageItem) -> str:
    match item.kind:
        case "message":
            message = history.messages.message(item.id)
            return f"{_ROLES.get(message.type, message.type)}: {words_of(message)}" if message else ""
        case "note":
            note = history.note(item.id)
            return note.text if note else ""
        case "entry":
            return history.entries[int(item.id)].text
    return item.id


def _facts(history: ThreadHistory, item: LineageItem) -> Iterator[Fact]:
    match item.kind:
        case "message":
            yield from _of_message(history, item.id)
        case "note":
            yield from _of_note(history, item.id)
        case "entry":
            yield from _of_entry(history, int(item.id))
        case "index":
            yield Fact("in_prompt", "It is in the prompt, in the category `summary` (index of exact strings).")
            yield Fact("unknown", "The index does not record which message a string came from.")


def _of_message(history: ThreadHistory, message_id: str) -> Iterator[Fact]:
    events = history.messages.about(message_id)
    if (said := history.messages.message(message_id)) is not None:
        turn = history.messages.turn(said)
        here = f"in turn {turn} of {history.turns}"
        yield Fact("said", f"It was said {here if turn else 'on a branch that the thread has left'}.", turn)
    message = history.working_set.get(message_id)
    if message is None:
        yield from _left(history, message_id, events)
    elif is_masked(message):
        yield _masked(str(marks(message)["handle"]), events)
    else:
        yield Fact("in_prompt", "It is in the prompt word for word, in the category `history`.")
    yield from _recalls(history, [event for event in events if isinstance(event, Recalled)])
    for event in events:
        if isinstance(event, NoteBlocked):
            yield Fact("blocked", f"A note from it was blocked in turn {event.turn} {_refusal(event)}.", event.turn)
        elif isinstance(event, Refetch):
            since = f" in turn {event.left_turn}" if event.left_turn else ""
            text = f"It was missed: {NEEDS[event.why]} in turn {event.turn}, after it had been {event.left}{since}."
            yield Fact("refetched", text, event.turn)


def _refusal(event: NoteBlocked) -> str:
    """Say who refused a note, and why."""
    category = phrase(event.category)
    if event.is_unjudged:
        return f"because the model that has to allow it did not judge it ({event.rule})"
    if event.guard == "model":
        return f"because a model, asked after the rules had allowed it, took it for {category}"
    return f"because it looks like {category} (rule `{event.rule}`)"


def _masked(handle: str, events: Sequence[Event]) -> Fact:
    event = next((one for one in reversed(events) if isinstance(one, Masked | Offloaded)), None)
    text = f"The prompt has it masked, with handle {handle}"
    if event is None:
        return Fact("masked", f"{text}; when it was masked is not recorded any more.")
    sizes = f"{event.tokens_before:,} tokens became {event.tokens_after:,}"
    return Fact("masked", f"{text}, since turn {event.turn}: {event.reason} ({sizes}).", event.turn)


def _left(history: ThreadHistory, message_id: str, events: Sequence[Event]) -> Iterator[Fact]:
    event = next((one for one in reversed(events) if isinstance(one, Evicted | Compacted)), None)
    if event is None:
        text = "It is not in the prompt but in the transcript; when and why it left is not recorded any more."
        yield Fact("evicted", text)
    else:
        by = f"policy `{event.policy}`, {event.reason}" if isinstance(event, Evicted) else event.reason
        sizes = f"the history went from {event.tokens_before:,} to {event.tokens_after:,} tokens"
        limit = f", budget {event.budget:,}" if event.budget else ""
        text = f"It was {event.event} in turn {event.turn}: {by} ({sizes}{limit}); the transcript has it in full."
        yield Fact(event.event, text, event.turn)
    entries = [entry for entry in history.entries if message_id in entry.sources]
    for entry in entries:
        yield Fact("in_summary", f"It is in the summary as “{entry.text}” ({_section(entry.section)}).")
    if not entries and isinstance(event, Compacted):
        text = f"It went into version {event.version} of the summary; no entry of the present version names it."
        yield Fact("not_in_summary", text, event.turn)


def _section(section: str) -> str:
    return "the user's constraints" if section == STANDING else f"section `{section}`"


def _recalls(history: ThreadHistory, events: Sequence[Recalled]) -> Iterator[Fact]:
    if not events:
        return
    turns = sorted({event.turn for event in events})
    shown = ", ".join(map(str, turns[-5:])) + (" (the last five)" if len(turns) > 5 else "")
    is_shown = turns[-1] == history.turns and events[-1].by == "question" and history.has_recalled
    now = "; the newest prompt has it in the category `recalled`" if is_shown else ""
    yield Fact("recalled", f"It was recalled in turn{'s' if len(turns) > 1 else ''} {shown}{now}.", turns[-1])


def _of_note(history: ThreadHistory, note_id: str) -> Iterator[Fact]:
    events = [event for event in history.note_events if getattr(event, "note_id", None) == note_id]
    for event in events:
        if isinstance(event, NoteSaved):
            allowed = "; the rules and a model allowed it" if event.guard == "model" else ""
            text = f"It was saved {_SAVERS[event.by]}, {_turn(history, event)}{allowed}."
            yield Fact("saved", text, event.turn)
    note = history.note(note_id)
    if note is None:
        yield _gone(history, note_id, events)
        return
    yield _status(history, note)
    for name in history.profile_fields(note_id):
        yield Fact("promoted", f"It is the field `{name}` of the profile.")
    for event in events:
        if isinstance(event, NoteChanged):
            flagged = f"; to be looked at: {', '.join(event.dependents)}" if event.dependents else ""
            text = f"A person {_CHANGES[event.action]} it on {event.at[:10]}{flagged}."
            yield Fact("changed", text, event.turn)
    for event in history.note_events:
        if isinstance(event, NoteMerged) and event.into == note_id:
            yield Fact("confirmed", f"It took in note {event.note_id}, {_turn(history, event)}.", event.turn)
        elif isinstance(event, Erased) and note_id in event.kept_ids:
            yield Fact("erased", f"Some of what it came from was erased on {event.at[:10]}.", event.turn)


def _status(history: ThreadHistory, note: Note) -> Fact:
    ended = note.valid_to or "an unknown day"
    match note.status:
        case "superseded":
            by = f" by {note.superseded_by}{_quoted(history, note.superseded_by)}" if note.superseded_by else ""
            return Fact("superseded", f"It was superseded{by} on {ended}.")
        case "retracted":
            return Fact("retracted", f"It was retracted on {ended} and is in no prompt.")
        case "expired":
            return Fact("expired", f"It expired on {note.expires_at or ended}.")
    return _place(history, note)


def _place(history: ThreadHistory, note: Note) -> Fact:
    """Say where an active note is in the newest prompt, by what the newest run resolved."""
    last = history.last_injection
    if note.id not in history.session_notes:
        if last is not None and note.id in last.note_ids:
            return Fact("in_prompt", "It is in the prompt, in the category `notes` (long-term notes).", last.turn)
        if last is not None and note.id in last.asked_note_ids and history.has_recalled:
            text = "It is in the prompt, ahead of the question that brought it, in the category `recalled`."
            return Fact("in_prompt", text, last.turn)
        return Fact("not_in_prompt", "It is a long-term note but was not in this thread's newest prompt.")
    if not history.working_set.keys().isdisjoint(note.message_ids):
        return Fact("in_prompt", "It is a session note; the prompt still has the message that it came from.")
    if last is not None and note.id in last.session_note_ids:
        return Fact("in_prompt", "It is in the prompt, in the category `session_notes`.", last.turn)
    return Fact("not_in_prompt", "It is a session note; the newest prompt was made before it or had no room for it.")


def _gone(history: ThreadHistory, note_id: str, events: Sequence[Event]) -> Fact:
    """Say what became of a note that is no longer stored."""
    for event in reversed(events):
        where = _turn(history, event)
        if isinstance(event, NoteMerged):
            return Fact(
                "merged", f"It was merged into {event.into}{_quoted(history, event.into)}, {where}.", event.turn
            )
        if isinstance(event, NoteExpired):
            return Fact("expired", f"It expired and was deleted, {where}: {event.reason}.", event.turn)
        if isinstance(event, NoteSuperseded):
            return Fact("superseded", f"It was superseded by {event.by}, {where}.", event.turn)
    for event in reversed(history.note_events):
        if isinstance(event, Erased) and note_id in event.note_ids:
            return Fact("erased", f"It was erased on {event.at[:10]}, with the thread that it came from.", event.turn)
        if isinstance(event, NoteChanged) and event.note_id == note_id and event.action == "forget":
            return Fact("erased", f"A person forgot it on {event.at[:10]}.", event.turn)
    if (dropped := history.drop_reason(note_id)) is not None:
        return Fact("dropped", f"It was dropped at the end of the session: {dropped[0]}.", dropped[1])
    return Fact("unknown", "It is no longer stored, and what became of it is not recorded.")


def _of_entry(history: ThreadHistory, place: int) -> Iterator[Fact]:
    entry = history.entries[place]
    version = history.summary.version if history.summary else 0
    where = f"version {version}, {_section(entry.section)}"
    yield Fact("in_prompt", f"It is in the prompt, in the category `summary` ({where}).")
    if not entry.sources:
        yield Fact("unknown", "Which messages it came from was not recorded.")
    for event in history.note_events:
        if isinstance(event, NoteChanged) and f"summary {version}" in event.dependents:
            note = history.note(event.note_id)
            if note is not None and not set(entry.sources).isdisjoint(note.message_ids):
                yield Fact("flagged", f"A note from the same message was changed on {event.at[:10]}.", event.turn)


def _turn(history: ThreadHistory, event: Event) -> str:
    """Say in which turn, and of which thread when it is another one."""
    other = f" of thread {event.thread_id}" if event.thread_id not in ("", history.thread_id) else ""
    return f"in turn {event.turn}{other}"


def _quoted(history: ThreadHistory, note_id: str) -> str:
    note = history.note(note_id)
    return f" (“{note.text}”)" if note else ""
