"""A thread's messages and events as `why` asks for them: by id, by words and by kind, never all of them."""

import json
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice

from everthread.ledger.events import Event
from everthread.ledger.lineage import folded, is_about, words_of
from everthread.ledger.record import readable_events
from everthread.memory.text.words import STOP_WORDS, index_words, query_words, stem
from everthread.state import namespaces
from everthread.state.marks import handle_of, is_synthetic, marks, sequence
from everthread.state.places import link_of, own_branch
from everthread.state.stored import StoredMessage
from everthread.storage.reader import Reader, Record
from everthread.storage.reading import ThreadView, removed_links
from everthread.storage.unreadable import readable

NOTE_KINDS = (
    *("note_saved", "note_blocked", "note_overruled", "note_merged", "note_superseded", "note_promoted"),
    *("note_expired", "note_changed", "consolidated", "erased"),
)
"""Events about notes; `why` asks for those of a user's other threads too."""

_OWN_NOTE_KINDS = (*NOTE_KINDS, "memory_full")

_MESSAGE_KINDS = ("evicted", "compacted", "masked", "offloaded", "recalled", "note_blocked", "regret")

_PAGE = 5_000

_MOST_LIKE = 200
"""Messages with words of a text that are looked at closely."""

_MOST_WORDS = 16
"""Words by which to look for them."""

_LONGEST_WORD = 10_000
"""Characters of a word by which to look for it; SQLite takes patterns of 50,000 bytes."""

_WORD = re.compile(r"[A-Za-z0-9]+|[\u0590-\u109f\u2e80-\u9fff\uac00-\ud7af]+")
"""What any spelling of a text in JSON has: ASCII, or scripts without upper and lower case."""


class ThreadSource:
    """The messages and events of one thread.

    Args:
        view: the thread with its working set, read with `whole=False`.
    """

    def __init__(self, reader: Reader, view: ThreadView) -> None:
        self._reader = reader
        self._id = view.thread_id
        self._space = namespaces.transcript(view.thread_id)
        self._here = {str(one.id): one for one in view.messages}
        self._working_set = view.working_set
        self._session = view.record or {}
        self._shared: int | None = self._session.get("shared")

    def message(self, message_id: str) -> StoredMessage | None:
        """Return a message in full; None when the thread has none of this id."""
        if message_id in self._here:
            return self._here[message_id]
        item = self._reader.get(self._space, message_id)
        return next(self._read([item] if item else []), None)

    def turn(self, message: StoredMessage) -> int:
        """Return the turn of a message, counted from 1; 0 of one on a branch that was left."""
        if not self._is_of_branch(str(message.id), sequence(message)):
            return 0
        return max(bisect_right(self._questions, sequence(message)), 1)

    def named(self, query: str) -> list[str]:
        """Return the ids of the messages that an id, a handle or the id of the call that they answer names."""
        if " " in query:
            # No handle, and no id of a call; the words of a question need not be looked for twice.
            return [query] if self.message(query) is not None else []
        quoted = json.dumps(query, ensure_ascii=False)
        words = [quoted] if words_in(query) == [query] else words_in(query)
        rows = [row for row in self._holding(words) if quoted.encode("utf-8", "replace") in row[1]]
        every = [*self._read(self._reader.decoded(self._space, rows)), *self._here.values()]
        answers = {str(one.id) for one in every if one.tool_call_id == query}
        may_be_handle = len(query) == len(handle_of(""))
        named = (key for key in self._ids if key == query or (may_be_handle and query == handle_of(key)))
        return self._oldest_first([*answers, *named])

    def beginning(self, query: str) -> list[str]:
        """Return the ids that begin with a text, oldest first."""
        return self._oldest_first(key for key in self._ids if key.startswith(query))

    def saying(self, text: str, most: int) -> list[StoredMessage]:
        """Return the newest messages that say a text, in any case and spacing, oldest first."""
        wanted = folded(text)
        rows = (one for one in self._newest_holding(words_in(text)) if one[0] not in self._here)
        # A single word needs no spacing put right, which takes longest of a text of megabytes.
        fold = folded if " " in wanted else str.casefold
        saying = (one for one in self._read(self._reader.decoded(self._space, rows)) if wanted in fold(words_of(one)))
        here = [one for one in self._here.values() if wanted in fold(words_of(one))]
        return sorted([*islice(saying, most), *here], key=sequence)[-most:]

    def like(self, text: str, most: int) -> list[StoredMessage]:
        """Return the messages that share most words with a text, the best first."""
        wanted = set(query_words(text))
        plain = (one for one in wanted if words_in(one) == [one])
        words = dict.fromkeys([*(stem(one.lower()) for one in words_in(text)), *plain])
        parts = ([one for one in words if one not in STOP_WORDS] or list(words))[:_MOST_WORDS]
        rows = [row for part in parts for row in self._holding([part])] if parts else self._holding([])
        counts = Counter(key for key, _ in rows)
        best = dict.fromkeys(key for key, _ in counts.most_common(_MOST_LIKE if parts else None))
        archived = self._reader.decoded(self._space, {key: (key, blob) for key, blob in rows if key in best}.values())
        every = [*self._here.values(), *(one for one in self._read(archived) if str(one.id) not in self._here)]
        shared = {str(one.id): len(wanted.intersection(index_words([words_of(one)]))) for one in every}
        ranked = sorted(every, key=lambda one: (-shared[str(one.id)], sequence(one)))
        return [one for one in ranked[:most] if shared[str(one.id)]]

    def about(self, message_id: str) -> list[Event]:
        """Return the events that name a message, oldest first."""
        needle = max(words_in(message_id), key=len, default="").encode()
        # Those of version 0.1, without a time, have a hash in place of the id.
        rows = [row for row in self._event_rows if needle in row[1] or b'"at"' not in row[1]]
        about = (event for event in self._events(rows) if event.event in _MESSAGE_KINDS)
        return [event for event in about if is_about(event, message_id)]

    @property
    def note_events(self) -> list[Event]:
        """The events about notes, oldest first."""
        kinds = [f'"{kind}"'.encode() for kind in _OWN_NOTE_KINDS]
        rows = [row for row in self._event_rows if any(kind in row[1] for kind in kinds)]
        return [event for event in self._events(rows) if event.event in _OWN_NOTE_KINDS]

    @cached_property
    def _event_rows(self) -> list[tuple[str, bytes]]:
        kinds = dict.fromkeys([*_MESSAGE_KINDS, *_OWN_NOTE_KINDS])
        return self._reader.tables.events(namespaces.ledger(self._id), [*kinds])

    def _events(self, rows: Iterable[tuple[str, bytes]]) -> list[Event]:
        return readable_events(self._reader, self._id, self._reader.decoded(namespaces.ledger(self._id), rows))

    @cached_property
    def _ids(self) -> list[str]:
        """Ids of all messages."""
        archived = (key for key in self._reader.tables.keys(self._space) if key not in self._here)
        return [*archived, *(key for key, one in self._here.items() if not is_synthetic(one))]

    def _oldest_first(self, ids: Iterable[str]) -> list[str]:
        messages = {key: self.message(key) for key in dict.fromkeys(ids)}
        return sorted(messages, key=lambda key: sequence(one) if (one := messages[key]) else -1)

    @cached_property
    def _questions(self) -> list[int]:
        """Places of the user's messages on this branch, in order."""
        places = self._reader.tables.places(self._space, "human")
        archived = (place for key, place in places if key not in self._here and self._is_of_branch(key, place))
        here = (sequence(one) for one in self._here.values() if one.type == "human" and not is_synthetic(one))
        return sorted([*archived, *here])

    def _is_of_branch(self, message_id: str, place: int) -> bool:
        return self._shared is None or place <= self._shared or message_id in self._own

    @cached_property
    def _own(self) -> frozenset[str]:
        """Ids of this branch behind the last place that all branches share."""
        shared, links = self._shared or 0, removed_links(self._reader, self._id)
        # A page at a time: each message of a long branch would be a read of its own.
        for item in self._reader.decoded(self._space, self._newest_holding([])):
            links[item.key] = link_of(item.value)
            if links[item.key][0] <= shared:
                break
        return own_branch(self._working_set.values(), links.get, shared, newest=self._session.get("question"))

    def _newest_holding(self, words: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """Yield the rows of messages that hold some words, the newest first, a page at a time."""
        offset = 0
        while rows := self._reader.tables.holding(self._space, words, limit=_PAGE, offset=offset):
            yield from rows
            offset += len(rows)

    def _holding(self, words: Sequence[str]) -> list[tuple[str, bytes]]:
        return self._reader.tables.holding(self._space, words)

    def _read(self, items: Iterable[Record]) -> Iterator[StoredMessage]:
        """Yield archived messages but for results of steps that were never saved, since a crash came in between."""
        for item, message in readable(items, lambda item: (item, StoredMessage.of(item.value["message"]))):
            if item.value.get("why") != "offloaded" or item.key in self._here or self._is_followed(item.key):
                yield message

    def _is_followed(self, message_id: str) -> bool:
        if any(marks(one).get("previous") == message_id for one in self._here.values()):
            return True
        rows = self._holding(words_in(message_id))
        return any(one.value.get("previous") == message_id for one in self._reader.decoded(self._space, rows))


def newest_event(reader: Reader, thread_id: str, kind: str) -> Event | None:
    """Return the newest event of a kind in a thread's ledger; None when there is none."""
    rows = (one for one in reader.newest(namespaces.ledger(thread_id)) if one.value.get("event") == kind)
    return next((event for row in rows for event in readable_events(reader, thread_id, [row])), None)


def events_of(reader: Reader, thread_id: str, kinds: Sequence[str]) -> list[Event]:
    """Return the events of some kinds in a thread's ledger, oldest first."""
    space = namespaces.ledger(thread_id)
    rows = reader.tables.events(space, kinds)
    return readable_events(reader, thread_id, reader.decoded(space, rows))


def page_of_events(
    reader: Reader, thread_id: str, kinds: Sequence[str], offset: int, limit: int
) -> tuple[list[Event], int]:
    """Return some of a thread's newest events, oldest first.

    Args:
        kinds: only these; empty for all.
        offset: events that are newer.
        limit: events at the most.

    Returns:
        The events, and how many there are in all.
    """
    space = namespaces.ledger(thread_id)
    rows = reader.tables.events(space, kinds)
    end = max(len(rows) - offset, 0)
    page = reader.decoded(space, rows[max(end - limit, 0) : end])
    return readable_events(reader, thread_id, page), len(rows)


def words_in(text: str) -> list[str]:
    """Return the runs of a text by which to look for it, the longest first."""
    words = dict.fromkeys(word[:_LONGEST_WORD] for word in _WORD.findall(text))
    return sorted(words, key=len, reverse=True)[:_MOST_WORDS]
