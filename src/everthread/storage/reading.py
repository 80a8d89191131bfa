"""Read threads back: their records, every message, what is still open."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from shlex import quote
from typing import TYPE_CHECKING, Any, TypeVar, Union

from everthread.errors import NotFoundError, SettingsError, UnreadableError
from everthread.state import Note, Summary, namespaces
from everthread.state.marks import is_masked, marks, sequence
from everthread.state.places import (
    Link,
    in_view,
    left_ids,
    link_of,
    newest_record,
    placed,
    places_in,
    places_of,
    with_renamed_reply,
)
from everthread.state.records import RecordReader, StoredItem, items, matching
from everthread.state.reducer import Message
from everthread.state.stored import StoredMessage, message_text, whole_thread
from everthread.storage.damage import receipt, session_record
from everthread.storage.reader import Reader, ThreadState
from everthread.storage.unreadable import FAULTS, described, leave_out, readable, record_name

if TYPE_CHECKING:
    from langgraph.store.base import BaseStore

    from everthread.storage.open import Storage

T = TypeVar("T")
AnyItem = TypeVar("AnyItem", bound=StoredItem)

Source = Union[Reader, "Storage"]
"""A database that is open to be read, or to run threads in."""

RECEIPTS = "receipts"
"""Last label of the namespace of receipts: below their user's, so that `export` has them and `forget` takes them."""

_SHOWN = 100
"""Messages that a notebook shows."""

_ROLES = {"human": "user", "ai": "assistant", "tool": "tool", "system": "system"}


@dataclass(frozen=True)
class ThreadView:
    """A thread as it is in the database."""

    thread_id: str
    record: dict[str, Any] | None
    """The session's record; None when a crash came before the first one."""
    messages: list[StoredMessage]
    """Every message, oldest first, in full."""
    working_set: dict[str, StoredMessage]
    """By id, what the next prompt is made from."""
    summary: dict[str, Any] | None
    turns: int
    notes: list[Note]
    """Session notes."""
    unfinished: bool
    asked: list[Any]
    """Approvals that a turn waits for."""
    left_ids: frozenset[str] = frozenset()
    """Ids of the messages on branches that the thread has left; none when it was read without what left its state."""
    is_ours: bool = True
    """Whether our own graph runs it, and not an app's with our middleware or without."""

    @property
    def places(self) -> int:
        """Places that messages have in the thread, up to the newest one."""
        return max(map(sequence, self.working_set.values()), default=-1) + 1

    def as_json(self, limit: int | None = None) -> dict[str, Any]:
        """Return the thread as one JSON object, with its newest `limit` messages."""
        record = self.record or {}
        return {
            "thread_id": self.thread_id,
            "user_id": record.get("user_id"),
            "agent": record.get("agent"),
            "messages": [
                self.message_value(message) | {"on_left_branch": str(message.id) in self.left_ids}
                for message in self.newest(limit)
            ],
            "messages_total": len(self.messages),
            "summary": self.summary,
            "session_notes": [note.value() for note in self.notes],
            "turns": self.turns,
            "unfinished": self.unfinished,
            "waiting_for": self.asked,
        }

    def _repr_html_(self) -> str:
        """Show it in a notebook, the newest messages of a long one."""
        # Taken when called: nothing else here makes a page.
        from everthread.pages import render

        rows = []
        for message in self.newest(_SHOWN):
            place = "in the prompt" if str(message.id) in self.working_set else "transcript"
            if str(message.id) in self.left_ids:
                place = "left branch"
            text = "\n".join(filter(None, (message_text(message), *(f"[{one}]" for one in message.attachments))))
            rows.append((role_of(message), "masked in the prompt" if self.is_masked(message) else place, text))
        return render("messages.html", view=self, rows=rows, more=len(self.messages) > _SHOWN)

    def newest(self, limit: int | None) -> list[StoredMessage]:
        """Return the newest messages, oldest first; None returns all."""
        return self.messages if limit is None else self.messages[max(len(self.messages) - limit, 0) :]

    def is_masked(self, message: StoredMessage) -> bool:
        """Tell whether the prompt has only head and tail of a message."""
        kept = self.working_set.get(str(message.id))
        return kept is not None and is_masked(kept)

    def message_value(self, message: StoredMessage) -> dict[str, Any]:
        """Return a message of the thread as one JSON object."""
        value: dict[str, Any] = {"id": message.id, "role": role_of(message), "content": str(message.text)}
        if message.tool_calls:
            value["tool_calls"] = [
                {"id": call["id"], "name": call["name"], "args": call["args"]} for call in message.tool_calls
            ]
        if message.type == "tool":
            value |= {"tool_call_id": message.tool_call_id, "name": message.name, "status": message.status}
        if message.attachments:
            value["attachments"] = message.attachments
        if at := marks(message).get("at"):
            value["at"] = at
        return value | {"in_prompt": str(message.id) in self.working_set, "masked": self.is_masked(message)}


def role_of(message: Message) -> str:
    """Return the role of a message, such as `user`."""
    return _ROLES.get(message.type, message.type)


def records(store: RecordReader, user_id: str | None = None) -> list[dict[str, Any]]:
    """Return the sessions' records, the latest activity first.

    Args:
        user_id: only this user's; None returns all.
    """
    every = list(readable(items(store, namespaces.SESSIONS), session_record))
    own = [record for record in every if user_id is None or record.get("user_id") == user_id]
    return sorted(own, key=lambda record: str(record.get("last_activity", "")), reverse=True)


def user_records(store: "BaseStore", user_id: str) -> list[dict[str, Any]]:
    """Return the records of a user's sessions, the latest activity first; the database picks them."""
    every = readable(matching(store, namespaces.SESSIONS, {"user_id": user_id}), session_record)
    own = [one for one in every if one["user_id"] == user_id]
    return sorted(own, key=lambda record: str(record["last_activity"]), reverse=True)


def record_of(store: RecordReader, thread_id: str) -> dict[str, Any] | None:
    """Return a thread's record; None when it has none.

    Raises:
        UnreadableError: it cannot be read, so nobody knows whose the thread is.
    """
    item = store.get(namespaces.SESSIONS, str(thread_id))
    try:
        return None if item is None else session_record(item)
    except FAULTS as error:
        raise described(record_name(namespaces.SESSIONS, thread_id), error) from error


def turns_of(store: RecordReader, thread_id: str) -> int:
    """Return how many turns a thread's record counts; 0 when it has none."""
    session = store.get(namespaces.SESSIONS, thread_id)
    return int(session.value.get("turns") or 0) if session else 0


def or_none(read: Callable[[], T]) -> T | None:
    """Read what a thread can be shown without; None, and a warning, when it cannot be read."""
    try:
        return read()
    except UnreadableError as error:
        leave_out("", error)
        return None


def exists(source: Source, thread_id: str) -> bool:
    """Tell whether there is such a thread, also one that crashed before its first record."""
    reader = reader_of(source)
    return bool(thread_id) and (reader.has(namespaces.SESSIONS, thread_id) or reader.has_state(thread_id))


def unknown(thread_id: str) -> NotFoundError:
    """Make the error for a thread that does not exist."""
    return NotFoundError(f"there is no thread {thread_id!r} in this database; `everthread threads` lists them")


def unrecorded(thread_id: str) -> NotFoundError:
    """Make the error for what is asked of a thread that another graph ran, without a guard or our middleware."""
    return NotFoundError(
        f"thread {thread_id!r} is one of another graph, so no prompts and no events of it were recorded"
    )


def gone(reader: Reader, thread_id: str) -> str | None:
    """Return when retention last deleted a whole thread, as ISO 8601 in UTC; None when it has not.

    Every record of a user is looked at, so ask only about a thread that is not there.
    """
    spaces = (namespaces.user("")[0], RECEIPTS)
    rows = (row for space in spaces for row in reader.tables.below(space) if row[0].split(".")[-1] == RECEIPTS)
    every = (one for prefix, key, blob in rows for one in reader.decoded(tuple(prefix.split(".")), [(key, blob)]))
    receipts = readable(every, receipt)
    return max((str(one["at"]) for one in receipts if one["thread_id"] == thread_id and one["whole"]), default=None)


def read_thread(source: Source, thread_id: str, *, whole: bool = True) -> ThreadView:
    """Read a thread without running it.

    Args:
        whole: with what left the working set; without it `messages` are those of the working set, in full.

    Raises:
        NotFoundError: there is no such thread.
    """
    reader = reader_of(source)
    if not exists(reader, thread_id):
        raise unknown(thread_id)
    state = reader.state(thread_id)
    # A bare graph of ours marks no checkpoint; its state does.
    is_ours = reader.is_ours(thread_id) or "memory_digest" in state.values
    return thread_view(reader, thread_id, state, is_ours=is_ours, whole=whole)


def thread_view(
    reader: RecordReader, thread_id: str, state: ThreadState, *, is_ours: bool, whole: bool = True
) -> ThreadView:
    """Return a thread, given its state.

    Args:
        reader: has its records; a store has them too.
        state: as its newest checkpoint has it.
        is_ours: whether our own graph runs it.
        whole: as for `read_thread`.
    """
    space = namespaces.transcript(thread_id)
    masked = [one for one in state.messages if is_masked(one)]
    in_full = (reader.get(space, str(one.id)) for one in masked) if not whole else ()
    archive = items(reader, space) if whole else [one for one in in_full if one is not None]
    archived = _archived(archive)
    working_set, values = state.messages, state.values
    if not is_ours:
        everything = archived if whole else None
        working_set, values = _of_app(reader, thread_id, state, everything)
    summary = reader.get(namespaces.summaries(thread_id), str(values.get("summary_id")))
    summary, _ = next(readable([summary] if summary else [], with_summary), (None, None))
    turns = values.get("turns", 0)
    offloaded = {item.key for item in archive if item.value.get("why") == "offloaded"}
    messages, record = whole_thread(archived, offloaded, working_set), or_none(lambda: record_of(reader, thread_id))
    return ThreadView(
        thread_id=thread_id,
        record=record,
        messages=messages,
        working_set={str(message.id): message for message in working_set},
        summary=summary.value if summary else None,
        turns=turns if isinstance(turns, int) else 0,
        notes=session_notes(reader, thread_id),
        unfinished=state.is_unfinished,
        asked=list(state.asked),
        left_ids=left_ids(messages, working_set, record, lambda: removed_links(reader, thread_id)),
        is_ours=is_ours,
    )


def removed_links(reader: RecordReader, thread_id: str) -> dict[str, Link]:
    """Return the links of the messages that edits took out of a thread, by id."""
    return {item.key: link_of(item.value) for item in items(reader, namespaces.removed(thread_id))}


def _archived(archive: Iterable[StoredItem]) -> dict[str, StoredMessage]:
    return dict(readable(archive, lambda item: (item.key, StoredMessage.of(item.value["message"]))))


def _of_app(
    reader: RecordReader, thread_id: str, state: ThreadState, archived: Mapping[str, StoredMessage] | None
) -> tuple[Sequence[StoredMessage], Mapping[str, Any]]:
    """Return the working set of an app's thread, each message at its place, and what our state would hold beside it.

    The archive is read, unless it is given, only where no record tells.
    """
    sent, space = state.messages, namespaces.calls(thread_id)
    records = {str(one.id): item.value for one in sent if (item := reader.get(space, str(one.id))) is not None}
    name, record = newest_record(with_renamed_reply(records, sent, lambda name: _written_behind(reader, space, name)))
    known = places_in(record)
    if archived is None:
        told = known and record.get("turns")
        archived = {} if told else _archived(items(reader, namespaces.transcript(thread_id)))
    places = known or places_of(archived.values())
    later = sum(message.type == "human" and str(message.id) not in known for message in sent)
    turns = int(record.get("turns") or sum(message.type == "human" for message in archived.values())) + later
    return placed(in_view(record, name, sent), places), {**record, "turns": turns}


def _written_behind(reader: RecordReader, space: namespaces.Namespace, name: str) -> list[Mapping[str, Any]]:
    return [item.value for item in items(reader, space) if item.value.get("after") == name]


def reader_of(source: Source) -> Reader:
    """Return a reader of a database, however it was opened."""
    return source if isinstance(source, Reader) else Reader(source.tables)


def session_notes(store: RecordReader, thread_id: str) -> list[Note]:
    """Return the session notes of a thread, oldest first."""
    return _notes(store, namespaces.session_notes(thread_id))


def long_term_notes(store: RecordReader, user_id: str) -> list[Note]:
    """Return all long-term notes of a user, oldest first."""
    return _notes(store, namespaces.notes(user_id))


def with_summary(item: AnyItem) -> tuple[AnyItem, Summary]:
    """Return a record with the summary in it."""
    return item, Summary.model_validate(item.value)


def _notes(store: RecordReader, namespace: namespaces.Namespace) -> list[Note]:
    notes = readable(items(store, namespace), lambda item: Note.model_validate(item.value))
    return sorted(notes, key=lambda note: (note.date, note.id))


def user_notes(store: RecordReader, user_id: str) -> tuple[list[Note], list[tuple[Note, str]]]:
    """Return the long-term notes of a user, and the session notes of their threads, each with its thread."""
    threads = [str(record["thread_id"]) for record in records(store, user_id)]
    session = [(one, thread_id) for thread_id in threads for one in session_notes(store, thread_id)]
    return long_term_notes(store, user_id), session


def one_note(store: RecordReader, user_id: str, note_id: str) -> tuple[Note, str | None]:
    """Return the user's note of that id or beginning, with the thread whose session note it is.

    Raises:
        NotFoundError: the user has no such note.
        SettingsError: several notes begin so.
    """
    long_term, session = user_notes(store, user_id)
    every: list[tuple[Note, str | None]] = [*((one, None) for one in long_term), *session]
    exact = [pair for pair in every if pair[0].id == note_id]
    matching = exact[:1] or [pair for pair in every if pair[0].id.startswith(note_id)]
    if not matching:
        raise NotFoundError(f"user {user_id!r} has no note {note_id!r}; `everthread notes {quote(user_id)}` lists them")
    if len(matching) > 1:
        raise SettingsError(f"{len(matching)} notes begin with {note_id!r}; write more of the id")
    return matching[0]
