"""`end`: end one session, and show which notes became long-term, were confirmed or went."""

from typing import Annotated

import typer

from everthread.cli.options import (
    DEFAULT_DATABASE,
    WAIT_SECONDS,
    AgentName,
    AsJson,
    DatabaseUrl,
    ThreadId,
    agent_of,
    operator,
    user_option,
)
from everthread.cli.output import print_json, say
from everthread.cli.reading import check_owner, note_busy
from everthread.errors import StorageError
from everthread.graph.agent import build_graph
from everthread.graph.ending import Ending, end_thread, planned
from everthread.storage.open import open_storage
from everthread.storage.reading import exists, record_of, unknown
from everthread.storage.to_read import storage_to_read

_SIGNS = {
    "added": "+ long-term ",
    "merged": "= confirmed ",
    "superseded": "~ superseded",
    "expired": "- expired   ",
    "dropped": "- dropped   ",
    "kept": ". not yet   ",
}
"""How it is printed what became of a note."""


def end(
    thread: ThreadId,
    user: Annotated[str | None, user_option("Whose notes change.  [default: the thread's user]")] = None,
    agent: AgentName = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would change and change nothing.")] = False,
    database: DatabaseUrl = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """End a thread's session: what lasts becomes long-term.

    Shows which notes became long-term and which were dropped, with the reason. A turn that waits for an approval or an
    answer stays as it is.
    """
    opened = open_storage(database, create=False, lock_timeout_seconds=WAIT_SECONDS) if not dry_run else None
    with opened or storage_to_read(database) as storage:
        if not exists(storage, thread):
            raise unknown(thread)
        record = record_of(storage.store, thread) or {}
        owner = check_owner(record, thread, user)
        if dry_run:
            ending = planned(storage, thread, owner)
        else:
            graph = build_graph(agent_of(record, agent), model="offline", storage=storage)
            note_busy(storage, [thread])
            ending = end_thread(graph, storage, thread, owner, actor=operator())
    if as_json:
        print_json(ending.as_json())
    else:
        outcome = "would end like this; nothing was written" if dry_run else "has ended"
        say(f"The session of thread {thread!r}, user {ending.user_id!r}, {outcome}.", "bold")
        print_ending(ending)
    if ending.failure:
        raise StorageError(f"thread {thread!r} could not be consolidated ({ending.failure})")


def print_ending(ending: Ending) -> None:
    """Print one line for each note, as a diff: what comes, what stays and what goes."""
    lines = [
        f"{_SIGNS[outcome]}  {note.text}" + (f"  ({reason})" if reason else "")
        for outcome, notes in ending.changes.items()
        for note, reason in notes
    ]
    if ending.failure:
        lines.append(f"! kept as is  {ending.failure}")
    if not lines:
        lines.append("no session notes, so nothing changed")
    lines += [f"? in doubt    {one.text}  (or: {other.text})" for one, other in ending.marked]
    for line in lines:
        say(f"  {line}")
