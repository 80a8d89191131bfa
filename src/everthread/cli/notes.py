"""`notes`: what is remembered about a user, why, and how to put it right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from everthread.cli.options import DEFAULT_DATABASE, AsJson, DatabaseUrl
from everthread.cli.output import note, print_json, say
from everthread.errors import NotFoundError, SettingsError

if TYPE_CHECKING:
    from everthread.cli.note_changes import Reasons
    from everthread.state import Note

__all__ = ["note_text", "notes"]

_ACTIONS = ("edit", "confirm", "retract", "why")
_WAIT_SECONDS = 20.0
"""How long a consolidation of the same user is waited for."""


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
    """Show what is remembered about a user, or change it.

    Without an action: the long-term notes, and the session notes of the user's threads. `edit` gives a note another
    text and keeps the old one as history, `confirm` says that it holds, `retract` withdraws it, `why` shows where it
    comes from and what became of it.
    """
    if action is None:
        _list(user, database, as_json=as_json)
        return
    if action not in _ACTIONS:
        raise SettingsError(f"unknown action {action!r}; choose one of {', '.join(_ACTIONS)}")
    if not note_id:
        raise SettingsError(f"which note? `everthread notes {user} {action} NOTE`; the list shows the ids")
    if (action == "edit") != (text is not None):
        raise SettingsError("`edit` takes the note's new text, and no other action takes one")
    if action == "why":
        _why(user, note_id, database, as_json=as_json)
    else:
        _change(user, action, note_id, text or "", database, as_json=as_json)


def note_text(found: Note) -> str:
    """Return a note on one line: date, text, keywords, and its status when it is not active."""
    keywords = f" [{', '.join(found.keywords)}]" if found.keywords else ""
    status = "" if found.status == "active" else f" ({found.status})"
    return f"{found.date}  {found.text}{keywords}{status}"


def _list(user: str, database: str, *, as_json: bool) -> None:
    from everthread.cli.reading import long_term_notes, records, session_notes
    from everthread.state import namespaces
    from everthread.storage.open import open_storage

    with open_storage(database, create=False) as storage:
        lasting = long_term_notes(storage.store, user)
        threads = [str(record["thread_id"]) for record in records(storage.store, user)]
        is_known = bool(lasting or threads) or storage.store.get(namespaces.profile(user), "profile") is not None
        session = [(thread_id, found) for thread_id in threads for found in session_notes(storage.store, thread_id)]
    if not is_known:
        raise NotFoundError(f"there is no user {user!r} in this database; `everthread threads` shows who has talked")
    if as_json:
        told = [{"thread_id": thread_id, **found.value()} for thread_id, found in session]
        print_json({"user_id": user, "long_term": [found.value() for found in lasting], "session": told})
    elif lasting or session:
        _print(lasting, session)
    else:
        note(f"there are no notes about user {user!r}")


def _print(lasting: list[Note], session: list[tuple[str, Note]]) -> None:
    if lasting:
        say("Long-term notes", "bold")
    for found in reversed(lasting):
        doubt = "  (in doubt)" if found.conflicts_with and found.status == "active" else ""
        say(f"  {found.id}  {note_text(found)}{doubt}")
    if session:
        say("Session notes", "bold")
    for thread_id, found in session:
        only = ", this session only" if found.scope == "session" else ""
        say(f"  {found.id}  {note_text(found)}  (thread {thread_id}{only})")


def _change(user: str, action: str, note_id: str, text: str, database: str, *, as_json: bool) -> None:
    from everthread.cli.note_changes import change_note
    from everthread.storage.open import open_storage

    with open_storage(database, create=False, lock_timeout_seconds=_WAIT_SECONDS) as storage:
        changed = change_note(storage, user, action, note_id, text)
    if as_json:
        notes = [found.value() for found in changed.notes]
        print_json({"user_id": user, "action": action, "notes": notes, "profile_field": changed.field or None})
    else:
        for found in changed.notes:
            say(f"  {found.id}  {note_text(found)}")
        note(changed.sentence)


def _why(user: str, note_id: str, database: str, *, as_json: bool) -> None:
    from everthread.cli.note_changes import reasons
    from everthread.storage.open import open_storage

    with open_storage(database, create=False) as storage:
        found = reasons(storage, user, note_id)
    if as_json:
        print_json(found.as_json())
    else:
        _print_reasons(found)


def _print_reasons(found: Reasons) -> None:
    told = found.note
    say(f"{told.id}  {note_text(told)}", "bold")
    where = "long-term" if found.thread_id is None else f"session note of thread {found.thread_id}"
    say(f"  {where} · {told.kind} · from the {told.origin} · confidence {found.confidence:.2f} today")
    if told.confirmations:
        say(f"  said again on {', '.join(told.confirmations)}")
    if told.expires_at:
        say(f"  ends on {told.expires_at[:10]}")
    if found.field:
        say(f"  became the field `{found.field}` of the profile on {told.valid_to}")
    for source in told.sources:
        quote = f': "{source.quote}"' if source.quote else ""
        say(f"  thread {source.thread_id}, message {', '.join(source.message_ids) or 'unknown'}{quote}")
    for other in found.replaced:
        say(f"  took the place of {other.id}  {note_text(other)}")
    if found.by is not None:
        say(f"  gave way to {found.by.id}  {note_text(found.by)}")
    for other in found.in_doubt:
        say(f"  may contradict {other.id}  {note_text(other)}")
    for event in found.events:
        say(f"  {event['at']}  {event['event'].replace('_', ' ')}")
