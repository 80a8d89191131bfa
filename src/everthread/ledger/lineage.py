"""Lineage: which message, note and summary entry came from which, by the ids that were recorded.

Nothing is inferred from wording: a link is there because an entry names its sources, a note names its
messages, or an event names both.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from everthread.ledger.events import (
    Consolidated,
    Event,
    Injected,
    NoteMerged,
    NotePromoted,
    NoteSaved,
    NoteSuperseded,
    PromptAssembled,
)
from everthread.state.notes import Note
from everthread.state.summary import Summary, SummaryEntry
from everthread.window.masking import handle_of
from everthread.window.turns import opens_turn

__all__ = [
    "Known",
    "Thing",
    "closure",
    "dependents",
    "dropped_because",
    "fields_of",
    "found",
    "is_about",
    "is_gone_note",
    "said",
    "sources",
]

_MOST_FOUND = 8
"""Things that a text may name; the newest."""

_MOST_LINKED = 24
"""Things that are told of beside them."""

_SHORTEST_ID = 4
"""Characters of an id that are enough to look for what begins with them."""


@dataclass(frozen=True)
class Thing:
    """Something that can be asked about."""

    kind: Literal["message", "note", "entry", "index"]
    """A message, a note of any kind, an entry of the summary, or an exact string in the summary's index."""
    id: str
    """Of the message or note; place of the entry in the summary; the string itself."""


@dataclass(frozen=True)
class Known:
    """What the database knows of a thread."""

    thread_id: str
    turns: int
    messages: Mapping[str, BaseMessage]
    """By id, oldest first, in full."""
    working_set: Mapping[str, BaseMessage]
    """By id, as the prompt has them."""
    summary: Summary | None = None
    session_notes: Mapping[str, Note] = field(default_factory=dict)
    notes: Mapping[str, Note] = field(default_factory=dict)
    """Long-term notes of the user."""
    events: Sequence[Event] = ()
    """The thread's ledger, oldest first."""
    elsewhere: Sequence[Event] = ()
    """What the user's other ledgers tell of notes, oldest first."""

    @cached_property
    def turn_of(self) -> dict[str, int]:
        """Turn of each message, counted from 1."""
        turn, turns = 0, {}
        for message_id, message in self.messages.items():
            turn += opens_turn(message)
            turns[message_id] = max(turn, 1)
        return turns

    @property
    def entries(self) -> Sequence[SummaryEntry]:
        """Entries of the current summary."""
        return self.summary.entries if self.summary else ()

    @property
    def shows_recalled(self) -> bool:
        """Whether the newest prompt had room for recalled passages."""
        last = next((event for event in reversed(self.events) if isinstance(event, PromptAssembled)), None)
        return last is not None and last.turn == self.turns and last.breakdown.get("recalled", 0) > 0

    @cached_property
    def last_injection(self) -> Injected | None:
        """What the newest run resolved."""
        return next((event for event in reversed(self.events) if isinstance(event, Injected)), None)

    def note(self, note_id: str) -> Note | None:
        """Return a note that is in the store."""
        return self.session_notes.get(note_id) or self.notes.get(note_id)

    def about(self, message_id: str) -> list[Event]:
        """Return the events that name a message, oldest first."""
        return [event for event in self.events if is_about(event, message_id)]

    @cached_property
    def of_notes(self) -> Sequence[Event]:
        """All events about notes, of this thread and the user's others."""
        return [*self.elsewhere, *self.events]


def is_about(event: Event, message_id: str) -> bool:
    """Tell whether an event names a message."""
    return getattr(event, "message_id", None) == message_id or message_id in getattr(event, "message_ids", ())


def is_gone_note(known: Known, note_id: str) -> bool:
    """Tell whether a ledger names a note that is no longer in the store."""
    return known.note(note_id) is None and any(note_id in names(event) for event in known.of_notes)


def names(event: Event) -> Iterator[str]:
    """Return the ids of notes in an event, but for those that were only injected."""
    if isinstance(event, Injected):
        return
    for name in ("note_id", "into", "by"):
        value = getattr(event, name, None)
        if isinstance(value, str):
            yield value
    for name in ("note_ids", "kept_ids", "added", "dropped", "expired", "kept"):
        yield from getattr(event, name, ())


def found(known: Known, asked: str) -> list[Thing]:
    """Return what an id or a text names, an id before a text, the newest last.

    Args:
        known: the thread.
        asked: id or beginning of an id of a message, note or call, a handle, or words as they were said.
    """
    return _by_id(known, asked) or _by_text(known, asked)


def _by_id(known: Known, asked: str) -> list[Thing]:
    notes = dict.fromkeys([*known.session_notes, *known.notes, *(n for e in known.of_notes for n in names(e))])
    exact = [Thing("message", asked)] if asked in known.messages else []
    exact += [Thing("message", name) for name, message in known.messages.items() if _also_called(message, asked)]
    exact += [Thing("note", asked)] if asked in notes else []
    if exact or len(asked) < _SHORTEST_ID or " " in asked:
        return exact
    begun = [Thing("message", name) for name in known.messages if name.startswith(asked)]
    return [*begun, *(Thing("note", name) for name in notes if name.startswith(asked))][-_MOST_FOUND:]


def _also_called(message: BaseMessage, asked: str) -> bool:
    if isinstance(message, ToolMessage) and message.tool_call_id == asked:
        return True
    return asked.startswith("h") and handle_of(str(message.id)) == asked


def _by_text(known: Known, asked: str) -> list[Thing]:
    wanted = _folded(asked)
    if not wanted:
        return []
    told = [Thing("message", name) for name, message in known.messages.items() if wanted in _folded(said(message))]
    notes = {**known.notes, **known.session_notes}
    told += [
        Thing("note", note.id)
        for note in notes.values()
        if wanted in _folded(note.text) or any(wanted in _folded(source.quote) for source in note.sources)
    ]
    told += [Thing("entry", str(place)) for place, entry in enumerate(known.entries) if wanted in _folded(entry.text)]
    identifiers = known.summary.identifiers if known.summary else ()
    told += [Thing("index", one.text) for one in identifiers if wanted in _folded(one.text)]
    return told[-_MOST_FOUND:]


def said(message: BaseMessage) -> str:
    """Return the words of a message and those of the calls it makes."""
    calls = message.tool_calls if isinstance(message, AIMessage) else ()
    return "\n".join([str(message.text), *(f"{call['name']} {call['args']}" for call in calls)])


def closure(known: Known, things: Sequence[Thing]) -> list[Thing]:
    """Return the things with all that they came from and that came from them, nearest first."""
    told = dict.fromkeys(things)
    edge = list(things)
    while edge and len(told) < len(things) + _MOST_LINKED:
        edge = [other for thing in edge for other in (*sources(known, thing), *dependents(known, thing))]
        edge = [other for other in dict.fromkeys(edge) if other not in told and _is_known(known, other)]
        told.update(dict.fromkeys(edge))
    return list(told)[: len(things) + _MOST_LINKED]


def _is_known(known: Known, thing: Thing) -> bool:
    if thing.kind == "message":
        return thing.id in known.messages
    return thing.kind != "note" or known.note(thing.id) is not None or is_gone_note(known, thing.id)


def sources(known: Known, thing: Thing) -> list[Thing]:
    """Return what a thing came from, by recorded ids."""
    if thing.kind == "entry":
        return [Thing("message", name) for name in known.entries[int(thing.id)].sources]
    if thing.kind != "note":
        return []
    note = known.note(thing.id)
    origins = [name for source in note.sources for name in source.message_ids] if note else []
    origins += [name for event in known.of_notes for name in _saved_from(event, thing.id)]
    merged = [event.note_id for event in known.of_notes if isinstance(event, NoteMerged) and event.into == thing.id]
    replaced = [other.id for other in known.notes.values() if other.superseded_by == thing.id]
    return [
        *(Thing("message", name) for name in dict.fromkeys(origins)),
        *(Thing("note", name) for name in dict.fromkeys([*merged, *replaced])),
    ]


def _saved_from(event: Event, note_id: str) -> Sequence[str]:
    return event.message_ids if isinstance(event, NoteSaved) and event.note_id == note_id else ()


def dependents(known: Known, thing: Thing) -> list[Thing]:
    """Return what came from a thing, by recorded ids."""
    if thing.kind == "message":
        entries = [Thing("entry", str(place)) for place, entry in enumerate(known.entries) if thing.id in entry.sources]
        return [*(Thing("note", name) for name in _notes_from(known, thing.id)), *entries]
    return [Thing("note", name) for name in _follows(known, thing.id)] if thing.kind == "note" else []


def _notes_from(known: Known, message_id: str) -> list[str]:
    """Return the notes that were made from a message, those that are gone as well."""
    told = [
        event.note_id for event in known.of_notes if isinstance(event, NoteSaved) and message_id in event.message_ids
    ]
    stored = {**known.notes, **known.session_notes}
    told += [
        note.id
        for note in stored.values()
        if any(message_id in source.message_ids and source.thread_id == known.thread_id for source in note.sources)
    ]
    return list(dict.fromkeys(told))


def _follows(known: Known, note_id: str) -> list[str]:
    """Return the notes that a note became part of or gave way to."""
    note = known.note(note_id)
    told = [note.superseded_by] if note and note.superseded_by else []
    for event in known.of_notes:
        if isinstance(event, NoteMerged) and event.note_id == note_id:
            told.append(event.into)
        elif isinstance(event, NoteSuperseded) and event.note_id == note_id:
            told.append(event.by)
    return [name for name in dict.fromkeys(told) if name != note_id]


def fields_of(known: Known, note_id: str) -> list[str]:
    """Return the fields of the profile that a note is now."""
    held: dict[str, None] = {}
    for event in known.of_notes:
        if isinstance(event, NotePromoted) and event.note_id == note_id:
            if event.taken_back:
                held.pop(event.field, None)
            else:
                held[event.field] = None
    return list(held)


def dropped_because(known: Known, note_id: str) -> tuple[str, int] | None:
    """Return why a consolidation dropped a note, and in which turn of its thread."""
    for event in reversed(known.of_notes):
        if isinstance(event, Consolidated) and note_id in event.dropped:
            return event.dropped[note_id], event.turn
    return None


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())
