"""`threads` and `show`: what is in the database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from everthread.cli.notes import note_text
from everthread.cli.options import DEFAULT_DATABASE, AsJson, DatabaseUrl, OneUser
from everthread.cli.output import counted, note, out, plain, print_json, say
from everthread.cli.summaries import show_summaries, stored

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

    from everthread.cli.reading import ThreadView

__all__ = ["show", "threads"]

_LONGEST = 2_000
"""Characters of one message that `show` prints for people; `--json` has all of them."""


def threads(user: OneUser = None, database: DatabaseUrl = DEFAULT_DATABASE, as_json: AsJson = False) -> None:
    """List the threads, the latest activity first."""
    from everthread.cli.reading import records
    from everthread.storage.open import open_storage

    with open_storage(database, create=False) as storage:
        found = records(storage.store, user)
    if as_json:
        print_json(found)
    elif found:
        _print_table(found)
    else:
        note("no threads yet" if user is None else f"user {user!r} has no threads")


def show(
    thread: Annotated[str, typer.Argument(metavar="THREAD", help="Id of the thread.")],
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, metavar="N", help="Only the newest N messages.  [default: all]")
    ] = None,
    summaries: Annotated[
        bool, typer.Option("--summaries", help="Every stored version of its summary, with what changed.")
    ] = False,
    database: DatabaseUrl = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """Show every message of a thread.

    Also those that are no longer in its prompt; --json marks each with `in_prompt`.
    """
    from everthread.cli.reading import read_thread
    from everthread.storage.open import open_storage

    with open_storage(database, create=False) as storage:
        view = read_thread(storage, thread)
        versions = stored(storage.store, view) if summaries else None
    if versions is not None:
        show_summaries(versions, thread, as_json=as_json)
        return
    if as_json:
        print_json(view.as_json(limit))
    else:
        _print_thread(view, limit)


def _print_table(found: list[dict[str, Any]]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("thread", "user", "agent", "turns", "last activity", "session"):
        table.add_column(heading, justify="right" if heading == "turns" else "left", overflow="fold")
    for record in found:
        turns = int(record.get("turns", 0))
        ended = int(record.get("consolidated_turns", 0)) >= turns
        cells = [str(record.get(name, "")) for name in ("thread_id", "user_id", "agent")]
        cells += [str(turns), when(str(record.get("last_activity", ""))), "ended" if ended else "open"]
        table.add_row(*map(plain, cells))
    out().print(table)


def _print_thread(view: ThreadView, limit: int | None) -> None:
    record = view.record or {}
    say(
        f"thread {view.thread_id} · user {record.get('user_id', 'unknown')} · agent {record.get('agent', 'unknown')} · "
        f"{counted(view.turns, 'turn')} · {counted(len(view.messages), 'message')}, "
        f"{len(view.working_set)} of them in the prompt",
        "bold",
    )
    if view.summary:
        covered = counted(int(view.summary.get("covers", 0)), "message")
        say(f"summary {view.summary.get('version')} covers {covered}", "dim")
    for message in view.newest(limit):
        _print_message(view, message)
    if view.notes:
        say("\nSession notes", "bold")
    for found in view.notes:
        say(f"  {note_text(found)}" + ("  (this session only)" if found.scope == "session" else ""))
    command = f"`everthread chat --thread {view.thread_id}`"
    if view.asked:
        say(f"\n{counted(len(view.asked), 'approval')} open: {command} asks for it", "yellow")
    elif view.unfinished:
        say(f"\nthe last turn has no answer: {command} goes on with it", "yellow")


def _print_message(view: ThreadView, message: BaseMessage) -> None:
    from everthread.cli.reading import role_of
    from everthread.state.marks import marks
    from everthread.storage.transcript import message_text

    place = []
    if str(message.id) not in view.working_set:
        place.append("only in the transcript")
    elif view.is_masked(message):
        place.append("shortened in the prompt")
    told = [role_of(message), str(message.name or ""), when(str(marks(message).get("at", ""))), *place]
    say()
    say(" · ".join(part for part in told if part), "bold" if message.type == "human" else "dim")
    text = message_text(message)
    cut = f"\n[… {len(text) - _LONGEST:,} more characters; --json has them …]" if len(text) > _LONGEST else ""
    for line in (text[:_LONGEST] + cut).splitlines():
        say(f"  {line}")


def when(stamp: str) -> str:
    """Return an ISO date and time without its fraction, such as `2026-11-21 07:05:21Z`."""
    return stamp[:19].replace("T", " ") + "Z" if len(stamp) > 19 else stamp
