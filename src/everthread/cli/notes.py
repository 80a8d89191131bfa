"""`notes`: what is remembered about a user."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from everthread.cli.options import DEFAULT_DATABASE, AsJson, DatabaseUrl
from everthread.cli.output import note, print_json, say
from everthread.errors import NotFoundError

if TYPE_CHECKING:
    from everthread.state import Note

__all__ = ["note_text", "notes"]


def notes(
    user: Annotated[str, typer.Argument(metavar="USER", help="Whose notes.")],
    database: DatabaseUrl = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """Show what is remembered about a user.

    Long-term notes, and the session notes of the user's threads.
    """
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


def note_text(found: Note) -> str:
    """Return a note on one line: date, text, keywords, and its status when it is not active."""
    keywords = f" [{', '.join(found.keywords)}]" if found.keywords else ""
    status = "" if found.status == "active" else f" ({found.status})"
    return f"{found.date}  {found.text}{keywords}{status}"


def _print(lasting: list[Note], session: list[tuple[str, Note]]) -> None:
    if lasting:
        say("Long-term notes", "bold")
    for found in reversed(lasting):
        say(f"  {note_text(found)}")
    if session:
        say("Session notes", "bold")
    for thread_id, found in session:
        only = ", this session only" if found.scope == "session" else ""
        say(f"  {note_text(found)}  (thread {thread_id}{only})")
