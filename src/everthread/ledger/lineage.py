"""Lineage: which message, note and summary entry came from which, by the ids that were recorded.

Nothing is inferred from wording: a link is there because an entry names its sources, a note names its messages, or an
event names both.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

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
from everthread.state.stored import StoredMessage
from everthread.state.summary import Summary, SummaryEntry

_MOST_MATCHES = 8
"""Most items that a text may name; the newest ones are taken."""

_MOST_LINKED = 24
"""Most items that are shown beside them."""

_SHORTEST_ID = 4
"""Fewest characters by which to look for ids that begin with them."""


@dataclass(frozen=True)
class LineageItem:
    """Something that one can ask about."""

    kind: Literal["message", "note", "entry", "index"]
    """A message, a note of any kind, an entry of the summary, or an exact string in the summary's index."""
    id: str
    """Of the message or note; place of the entry in the summary; the string itself."""


class MessageSource(Protocol):
    """The messages of a thread and the events about them, each read when it is asked for."""

    def message(self, message_id: str, /) -> StoredMessage | None:
        """Return a message in full."""

    def turn(self, message: StoredMessage, /) -> int:
        """Return the turn of a message, counted from 1; 0 of one on a branch that the thread has left."""

    def named(self, query: str, /) -> list[str]:
        """Return the ids of the messages that an id, a handle or the id of the call that they answer names."""

    def beginning(self, query: str, /) -> list[str]:
        """Return the ids that begin with a text, oldest first."""

    def saying(self, text: str, most: int, /) -> list[StoredMessage]:
        """Return the newest messages that say a text, in any case and spacing, oldest first."""

    def like(self, text: str, most: int, /) -> list[StoredMessage]:
        """Return the messages that share most words with a text, the best first."""

    def about(self, message_id: str, /) -> list[Event]:
        """Return the events that name a message, oldest first."""


@dataclass(frozen=True)
class ThreadHistory:
    """What the database has about a thread."""

    thread_id: str
    turns: int
    messages: MessageSource
    working_set: Mapping[str, StoredMessage]
    """By id, as the prompt has them."""
    summary: Summary | None = None
    session_notes: Mapping[str, Note] = field(default_factory=dict)
    notes: Mapping[str, Note] = field(default_factory=dict)
    """Long-term notes of the user."""
    note_events: Sequence[Event] = ()
    """Events about notes in the user's other ledgers, and then those in this thread's, oldest first."""
    last_prompt: PromptAssembled | None = None
    """The newest one."""
    last_injection: Injected | None = None
    """What the newest run resolved."""

    @property
    def entries(self) -> Sequence[SummaryEntry]:
        """Entries of the current summary."""
        return self.summary.entries if self.summary else ()

    @property
    def has_recalled(self) -> bool:
        """Whether the newest prompt had recalled passages."""
        prompt = self.last_prompt
        return prompt is not None and prompt.turn == self.turns and prompt.breakdown.get("recalled", 0) > 0

    def note(self, note_id: str) -> Note | None:
        """Return a note that is in the store."""
        return self.session_notes.get(note_id) or self.notes.get(note_id)

    def exists(self, item: LineageItem) -> bool:
        """Tell whether an item is stored, or named in a ledger when it is a note."""
        if item.kind == "message":
            return self.messages.message(item.id) is not None
        if item.kind != "note" or self.note(item.id) is not None:
            return True
        return any(item.id in _note_ids(event) for event in self.note_events)

    def find(self, query: str) -> list[LineageItem]:
        """Return what an id or a text names, an id before a text, the newest last.

        Args:
            query: id or beginning of an id of a message, note or call, a handle, or words of the conversation.
        """
        return self._by_id(query) or self._by_text(query)

    def _by_id(self, query: str) -> list[LineageItem]:
        recorded = (note_id for event in self.note_events for note_id in _note_ids(event))
        notes = dict.fromkeys([*self.session_notes, *self.notes, *recorded])
        exact = [LineageItem("message", key) for key in self.messages.named(query)]
        exact += [LineageItem("note", query)] if query in notes else []
        if exact or len(query) < _SHORTEST_ID or " " in query:
            return exact
        messages = [LineageItem("message", key) for key in self.messages.beginning(query)]
        return [*messages, *(LineageItem("note", key) for key in notes if key.startswith(query))][-_MOST_MATCHES:]

    def _by_text(self, query: str) -> list[LineageItem]:
        wanted = folded(query)
        if not wanted:
            return []
        messages = [LineageItem("message", str(one.id)) for one in self.messages.saying(query, _MOST_MATCHES)]
        others = (item for item, text in self._texts() if wanted in folded(text))
        return list(dict.fromkeys([*messages, *others]))[-_MOST_MATCHES:]

    def _texts(self) -> Iterator[tuple[LineageItem, str]]:
        for note in {**self.notes, **self.session_notes}.values():
            for text in (note.text, *(source.quote for source in note.sources)):
                yield LineageItem("note", note.id), text
        for place, entry in enumerate(self.entries):
            yield LineageItem("entry", str(place)), entry.text
        for identifier in self.summary.identifiers if self.summary else ():
            yield LineageItem("index", identifier.text), identifier.text

    def closure(self, items: Sequence[LineageItem]) -> list[LineageItem]:
        """Return the items with all that they came from and that came from them, nearest first."""
        linked = dict.fromkeys(items)
        edge = list(items)
        while edge and len(linked) < len(items) + _MOST_LINKED:
            near = dict.fromkeys(other for item in edge for other in (*self.sources(item), *self.dependents(item)))
            edge = [other for other in near if other not in linked and self.exists(other)]
            linked.update(dict.fromkeys(edge))
        return list(linked)[: len(items) + _MOST_LINKED]

    def sources(self, item: LineageItem) -> list[LineageItem]:
        """Return what an item came from, by recorded ids."""
        if item.kind == "entry":
            return _items("message", self.entries[int(item.id)].sources)
        if item.kind != "note":
            return []
        note = self.note(item.id)
        messages = note.message_ids if note else []
        notes = []
        for event in self.note_events:
            if isinstance(event, NoteSaved) and event.note_id == item.id:
                messages += event.message_ids
            elif isinstance(event, NoteMerged) and event.into == item.id:
                notes.append(event.note_id)
        notes += [other.id for other in self.notes.values() if other.superseded_by == item.id]
        return [*_items("message", messages), *_items("note", notes)]

    def dependents(self, item: LineageItem) -> list[LineageItem]:
        """Return what came from an item, by recorded ids."""
        if item.kind == "message":
            entries = [str(place) for place, entry in enumerate(self.entries) if item.id in entry.sources]
            return [*_items("note", self._notes_from(item.id)), *_items("entry", entries)]
        return _items("note", self._successors(item.id)) if item.kind == "note" else []

    def _notes_from(self, message_id: str) -> Iterator[str]:
        """Yield the notes that came from a message, including those that are gone."""
        for event in self.note_events:
            if isinstance(event, NoteSaved) and message_id in event.message_ids:
                yield event.note_id
        for note in {**self.notes, **self.session_notes}.values():
            if any(message_id in one.message_ids and one.thread_id == self.thread_id for one in note.sources):
                yield note.id

    def _successors(self, note_id: str) -> Iterator[str]:
        """Yield the notes that a note became part of or gave way to."""
        note = self.note(note_id)
        if note and note.superseded_by and note.superseded_by != note_id:
            yield note.superseded_by
        for event in self.note_events:
            if isinstance(event, NoteMerged | NoteSuperseded) and event.note_id == note_id:
                successor = event.into if isinstance(event, NoteMerged) else event.by
                if successor != note_id:
                    yield successor

    def profile_fields(self, note_id: str) -> list[str]:
        """Return the fields of the profile that a note is now."""
        fields: dict[str, None] = {}
        for event in self.note_events:
            if isinstance(event, NotePromoted) and event.note_id == note_id:
                fields[event.field] = None
                if event.taken_back:
                    del fields[event.field]
        return list(fields)

    def drop_reason(self, note_id: str) -> tuple[str, int] | None:
        """Return why a consolidation dropped a note, and in which turn of its thread."""
        for event in reversed(self.note_events):
            if isinstance(event, Consolidated) and note_id in event.dropped:
                return event.dropped[note_id], event.turn
        return None


def is_about(event: Event, message_id: str) -> bool:
    """Tell whether an event names a message."""
    return getattr(event, "message_id", None) == message_id or message_id in getattr(event, "message_ids", ())


def words_of(message: StoredMessage) -> str:
    """Return the words of a message and those of the calls it makes."""
    return "\n".join([message.text, *(f"{call['name']} {call['args']}" for call in message.tool_calls)])


def _note_ids(event: Event) -> Iterator[str]:
    """Yield the ids of notes in an event, but for those that were only injected."""
    if isinstance(event, Injected):
        return
    if isinstance(event, NoteSuperseded):
        yield event.by
    for name in ("note_id", "into"):
        if (note_id := getattr(event, name, None)) is not None:
            yield note_id
    for name in ("note_ids", "kept_ids", "added", "dropped", "expired", "kept"):
        yield from getattr(event, name, ())


def _items(kind: Literal["message", "note", "entry"], ids: Iterable[str]) -> list[LineageItem]:
    return [LineageItem(kind, one) for one in dict.fromkeys(ids)]


def folded(text: str) -> str:
    """Return a text in lower case and with single spaces."""
    return " ".join(text.casefold().split())
