"""`notes`: what is remembered about a user, where it comes from, and how to correct it."""

from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from everthread.cli.options import DEFAULT_DATABASE, WAIT_SECONDS, AsJson, DatabaseUrl, UserId, Yes, operator
from everthread.cli.output import confirm, note, print_json, say
from everthread.cli.reading import note_text
from everthread.errors import NotFoundError, SettingsError
from everthread.state import namespaces
from everthread.state.records import RecordReader
from everthread.storage.history import note_history
from everthread.storage.reader import Reader, open_reader
from everthread.storage.reading import one_note, records, user_notes

if TYPE_CHECKING:
    from everthread.graph.note_changes import Change

_ACTIONS = ("edit", "confirm", "retract", "forget", "why")


def notes(
    user: UserId,
    action: Annotated[
        str | None, typer.Argument(metavar="edit|confirm|retract|forget|why", help="What to do with one note.")
    ] = None,
    note_id: Annotated[
        str | None, typer.Argument(metavar="NOTE", help="Id of the note, or how it begins, as the list shows it.")
    ] = None,
    text: Annotated[str | None, typer.Argument(metavar="TEXT", help="edit: the note's new text.")] = None,
    yes: Yes = False,
    database: DatabaseUrl = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """Show what is remembered about a user, or correct it.

    Without an action: the long-term notes, and the session notes of the user's threads. `edit` gives a note another
    text and keeps the old one as history, `confirm` says that it holds, `retract` withdraws it, `forget` deletes it and
    its history for good, `why` shows where it comes from and what became of it.
    """
    if action is not None and action not in _ACTIONS:
        raise SettingsError(f"unknown action {action!r}; choose one of {', '.join(_ACTIONS)}")
    if action and not note_id:
        raise SettingsError(f"which note? `everthread notes {quote(user)} {action} NOTE`; the list shows the ids")
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
    from everthread.graph.note_changes import change_note, forget_note
    from everthread.storage.open import open_storage

    with open_storage(database, create=False, lock_timeout_seconds=WAIT_SECONDS) as storage:
        if action == "forget":
            subject, _ = one_note(storage.store, user, str(note_id))
            if not yes:
                note(f"{subject.id}  {note_text(subject)}")
                confirm("Delete this note and its history? It cannot be undone (`--yes` skips this question).")
            change = forget_note(storage, user, subject.id, actor=operator())
        else:
            change = change_note(storage, user, action, str(note_id), text or "", actor=operator())
    _print_change(user, change, as_json=as_json)


def _list(store: RecordReader, user: str, *, as_json: bool) -> None:
    long_term, session = user_notes(store, user)
    is_known = long_term or records(store, user) or store.get(namespaces.profile(user), "profile") is not None
    if not is_known:
        raise NotFoundError(f"there is no user {user!r} in this database; `everthread threads` shows who has talked")
    if as_json:
        of_threads = [{"thread_id": thread_id, **one.value()} for one, thread_id in session]
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
    for one, thread_id in session:
        only = ", this session only" if one.scope == "session" else ""
        say(f"  {one.id}  {note_text(one)}  (thread {thread_id}{only})")


def _print_change(user: str, change: "Change", *, as_json: bool) -> None:
    if as_json:
        values = [one.value() for one in change.notes]
        print_json({"user_id": user, "action": change.action, "notes": values, "profile_field": change.field or None})
        return
    for one in change.notes:
        say(f"  {one.id}  {note_text(one)}")
    note(change.sentence)


def _why(reader: Reader, user_id: str, note_id: str, *, as_json: bool) -> None:
    """Show where a note comes from, what it replaced or gave way to, and what the ledger has of it."""
    subject, thread_id = one_note(reader, user_id, note_id)
    history = note_history(reader, user_id, subject, thread_id)
    if as_json:
        print_json(history.as_json())
        return
    where = "long-term" if thread_id is None else f"session note of thread {thread_id}"
    confidence = f"confidence {history.confidence:.2f} today"
    lines = [f"{where} · {subject.kind} · from the {subject.origin} · {confidence}"]
    if subject.confirmations:
        lines.append(f"said again on {', '.join(subject.confirmations)}")
    if subject.expires_at:
        lines.append(f"ends on {subject.expires_at[:10]}")
    if history.field:
        lines.append(f"became the field `{history.field}` of the profile on {subject.valid_to}")
    for source in subject.sources:
        said = f': "{source.quote}"' if source.quote else ""
        lines.append(f"thread {source.thread_id}, message {', '.join(source.message_ids) or 'unknown'}{said}")
    lines += [f"replaced {one.id}  {note_text(one)}" for one in history.replaced]
    if history.successor is not None:
        lines.append(f"gave way to {history.successor.id}  {note_text(history.successor)}")
    lines += [f"may contradict {one.id}  {note_text(one)}" for one in history.in_doubt]
    lines += [f"{event['at']}  {event['event'].replace('_', ' ')}" for event in history.events]
    say(f"{subject.id}  {note_text(subject)}", "bold")
    for line in lines:
        say(f"  {line}")
