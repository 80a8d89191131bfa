"""`notes`: what is remembered about a user, where it comes from, and how to correct it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from everthread.cli.options import DEFAULT_DATABASE, WAIT_SECONDS, AsJson, DatabaseUrl
from everthread.cli.output import note, print_json, say
from everthread.cli.reading import long_term_notes, note_text, or_none, read_thread, record_of, records, session_notes
from everthread.errors import NotFoundError, SettingsError
from everthread.ledger import events as ledger_events
from everthread.ledger.events import NoteChanged
from everthread.ledger.record import record as record_events
from everthread.state import Note, Summary, namespaces
from everthread.state.records import RecordReader
from everthread.storage.sqlite.reader import open_reader

if TYPE_CHECKING:
    from everthread.storage.open import Storage

__all__ = ["Change", "change_note", "notes"]

_ACTIONS = ("edit", "confirm", "retract", "why")


def notes(
    user: Annotated[str, typer.Argument(metavar="USER", help="Whose notes.")],
    action: Annotated[
        str | None, typer.Argument(metavar="[edit|confirm|retract|why]", help="What to do with one note.")
    ] = None,
    note_id: Annotated[
        str | None, typer.Argument(metavar="[NOTE]", help="Id of the note, or how it begins, as the list shows it.")
    ] = None,
    text: Annotated[str | None, typer.Argument(metavar="[TEXT]", help="edit: the note's new text.")] = None,
    database: DatabaseUrl = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """Show what is remembered about a user, or correct it.

    Without an action: the long-term notes, and the session notes of the user's threads. `edit` gives a note another
    text and keeps the old one as history, `confirm` says that it holds, `retract` withdraws it, `why` shows where it
    comes from and what became of it.
    """
    if action is not None and action not in _ACTIONS:
        raise SettingsError(f"unknown action {action!r}; choose one of {', '.join(_ACTIONS)}")
    if action and not note_id:
        raise SettingsError(f"which note? `everthread notes {user} {action} NOTE`; the list shows the ids")
    if action and (action == "edit") != (text is not None):
        raise SettingsError("`edit` takes the note's new text, and no other action takes one")
    if action in (None, "why"):
        with open_reader(database) as reader:
            if action is None or not note_id:
                _list(reader, user, as_json=as_json)
            else:
                _why(reader, user, note_id, as_json=as_json)
        return
    # Taken when called: notes are read without LangChain.
    from everthread.storage.open import open_storage

    with open_storage(database, create=False, lock_timeout_seconds=WAIT_SECONDS) as storage:
        change = change_note(storage, user, action, str(note_id), text or "")
    _print_change(user, change, as_json=as_json)


def _list(store: RecordReader, user: str, *, as_json: bool) -> None:
    long_term = long_term_notes(store, user)
    threads = [str(record["thread_id"]) for record in records(store, user)]
    session = [(thread_id, one) for thread_id in threads for one in session_notes(store, thread_id)]
    if not long_term and not threads and store.get(namespaces.profile(user), "profile") is None:
        raise NotFoundError(f"there is no user {user!r} in this database; `everthread threads` shows who has talked")
    if as_json:
        of_threads = [{"thread_id": thread_id, **one.value()} for thread_id, one in session]
        print_json({"user_id": user, "long_term": [one.value() for one in long_term], "session": of_threads})
        return
    if not long_term and not session:
        note(f"there are no notes about user {user!r}")
    if long_term:
        say("Long-term notes", "bold")
    for one in reversed(long_term):
        doubt = "  (in doubt)" if one.conflicts_with and one.status == "active" else ""
        say(f"  {one.id}  {note_text(one)}{doubt}")
    if session:
        say("Session notes", "bold")
    for thread_id, one in session:
        only = ", this session only" if one.scope == "session" else ""
        say(f"  {one.id}  {note_text(one)}  (thread {thread_id}{only})")


@dataclass(frozen=True)
class Change:
    """What a correction did."""

    action: str
    notes: list[Note]
    """The notes that changed, as they are now."""
    field: str = ""
    """Field of the profile that the note had become and that is taken back; empty when there is none."""

    @property
    def sentence(self) -> str:
        """Say what follows from it."""
        taken = f"; the field `{self.field}` of the profile is taken back" if self.field else ""
        if self.action == "retract":
            return f"the note holds no longer{taken}; `confirm` brings it back"
        if self.action == "edit":
            return f"the new text holds, and the old one is kept as history{taken}"
        return "the note holds, as the user's own words"


def change_note(storage: "Storage", user_id: str, action: str, note_id: str, text: str = "") -> Change:
    """Edit, confirm or retract a note, while no consolidation of the same user runs.

    Args:
        storage: the open database.
        user_id: whose note.
        action: `edit`, `confirm` or `retract`.
        note_id: the note's id or its beginning.
        text: the new text of an edit.

    Raises:
        NotFoundError: the user has no such note.
        SettingsError: the note cannot be changed so.
    """
    from everthread.memory.consolidate import confirmed_by_hand, edited, field_of, retracted

    today = datetime.now(UTC).date().isoformat()
    with storage.locks.hold(namespaces.user_key(user_id)):
        subject, thread_id = _one_note(storage.store, user_id, note_id)
        if action == "confirm":
            changed = confirmed_by_hand(subject, today)
        else:
            store = storage.store
            siblings = session_notes(store, thread_id) if thread_id else long_term_notes(store, user_id)
            by_id = {one.id: one for one in siblings}
            changed = edited(by_id, subject, text, today) if action == "edit" else retracted(by_id, subject, today)
        _write(storage, user_id, thread_id, subject, action, changed)
    return Change(action, list(changed.values()), field_of(subject) if action != "confirm" else "")


def _print_change(user: str, change: Change, *, as_json: bool) -> None:
    if as_json:
        values = [one.value() for one in change.notes]
        print_json({"user_id": user, "action": change.action, "notes": values, "profile_field": change.field or None})
        return
    for one in change.notes:
        say(f"  {one.id}  {note_text(one)}")
    note(change.sentence)


def _one_note(store: RecordReader, user_id: str, note_id: str) -> tuple[Note, str | None]:
    """Return the user's note of that id, with the thread whose session note it is."""
    threads = [str(record["thread_id"]) for record in records(store, user_id)]
    every: list[tuple[Note, str | None]] = [(one, None) for one in long_term_notes(store, user_id)]
    every += [(one, thread_id) for thread_id in threads for one in session_notes(store, thread_id)]
    exact = [pair for pair in every if pair[0].id == note_id]
    matching = exact[:1] or [pair for pair in every if pair[0].id.startswith(note_id)]
    if not matching:
        raise NotFoundError(f"user {user_id!r} has no note {note_id!r}; `everthread notes {user_id}` lists them")
    if len(matching) > 1:
        raise SettingsError(f"{len(matching)} notes begin with {note_id!r}; write more of the id")
    return matching[0]


def _write(
    storage: "Storage", user_id: str, thread_id: str | None, subject: Note, action: str, changed: dict[str, Note]
) -> None:
    """Write the notes and the events in one batch; every thread that the note comes from gets an event."""
    from langgraph.store.base import PutOp

    from everthread.nodes.consolidate import changed_by_hand

    if thread_id is None:
        writes = changed_by_hand(storage.store, user_id, changed)
        threads = list(dict.fromkeys(source.thread_id for source in subject.sources if source.thread_id))
    else:
        namespace = namespaces.session_notes(thread_id)
        writes = [PutOp(namespace, one.id, one.value(), index=None) for one in changed.values()]
        threads = [thread_id]
    if not threads:
        storage.store.batch(writes)
    for source_thread in threads:
        turn = int((or_none(partial(record_of, storage.store, source_thread)) or {}).get("turns", 0))
        # A confirmation leaves everything as it was.
        flagged = [] if action == "confirm" else _dependents(storage, user_id, source_thread, subject, changed)
        event = NoteChanged.model_validate({"note_id": subject.id, "action": action, "dependents": flagged})
        record_events(storage.store, source_thread, [event], write=lambda _: None, turn=turn, operations=writes)
        writes = []


def _dependents(
    storage: "Storage", user_id: str, thread_id: str, subject: Note, changed: Mapping[str, Note]
) -> list[str]:
    """Return what comes from the same messages of a thread as a note: other notes, and the thread's summary."""

    def messages(one: Note) -> set[str]:
        return {name for source in one.sources if source.thread_id == thread_id for name in source.message_ids}

    own = messages(subject)
    others = [*long_term_notes(storage.store, user_id), *session_notes(storage.store, thread_id)]
    flagged = [one.id for one in others if one.id != subject.id and one.id not in changed and own & messages(one)]
    summary = Summary.model_validate(read_thread(storage, thread_id).summary or {})
    if any(own.intersection(entry.sources) for entry in summary.entries):
        flagged.append(f"summary {summary.version}")
    return flagged


def _why(store: RecordReader, user_id: str, note_id: str, *, as_json: bool) -> None:
    """Show where a note comes from, what it replaced or gave way to, and what the ledger has of it."""
    from everthread.memory.consolidate import confidence_on, field_of

    subject, thread_id = _one_note(store, user_id, note_id)
    long_term = {one.id: one for one in long_term_notes(store, user_id)}
    confidence = confidence_on(subject, datetime.now(UTC).date().isoformat())
    successor = long_term.get(subject.superseded_by or "")
    replaced = [one for one in long_term.values() if one.superseded_by == subject.id]
    in_doubt = [long_term[other] for other in subject.conflicts_with if other in long_term]
    threads = dict.fromkeys(source.thread_id for source in subject.sources if source.thread_id)
    history = [event for thread in threads for event in _events(store, thread, subject.id)]
    if as_json:
        print_json(
            {
                "note": subject.value(),
                "thread_id": thread_id,
                "confidence_today": round(confidence, 4),
                "superseded_by": successor.value() if successor else None,
                "replaced": [one.value() for one in replaced],
                "in_doubt": [one.value() for one in in_doubt],
                "profile_field": field_of(subject) or None,
                "events": history,
            }
        )
        return
    where = "long-term" if thread_id is None else f"session note of thread {thread_id}"
    lines = [f"{where} · {subject.kind} · from the {subject.origin} · confidence {confidence:.2f} today"]
    if subject.confirmations:
        lines.append(f"said again on {', '.join(subject.confirmations)}")
    if subject.expires_at:
        lines.append(f"ends on {subject.expires_at[:10]}")
    if field_of(subject):
        lines.append(f"became the field `{field_of(subject)}` of the profile on {subject.valid_to}")
    for source in subject.sources:
        quote = f': "{source.quote}"' if source.quote else ""
        lines.append(f"thread {source.thread_id}, message {', '.join(source.message_ids) or 'unknown'}{quote}")
    lines += [f"replaced {one.id}  {note_text(one)}" for one in replaced]
    if successor is not None:
        lines.append(f"gave way to {successor.id}  {note_text(successor)}")
    lines += [f"may contradict {one.id}  {note_text(one)}" for one in in_doubt]
    lines += [f"{event['at']}  {event['event'].replace('_', ' ')}" for event in history]
    say(f"{subject.id}  {note_text(subject)}", "bold")
    for line in lines:
        say(f"  {line}")


def _events(store: RecordReader, thread_id: str, note_id: str) -> Iterator[dict[str, Any]]:
    """Yield a thread's events that name a note; the prompts that it was injected into are too many to list."""
    for event in ledger_events(store, thread_id):
        value = event.model_dump(mode="json")
        if event.event not in ("injected", "prompt_assembled") and _names(value, note_id):
            yield {"thread_id": thread_id, **value}


def _names(value: object, note_id: str) -> bool:
    if isinstance(value, dict):
        return note_id in value or any(_names(part, note_id) for part in value.values())
    if isinstance(value, list):
        return any(_names(part, note_id) for part in value)
    return value == note_id
