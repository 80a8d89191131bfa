"""`end`: end one session, and show which notes became long-term, were confirmed or went."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from langchain_core.runnables import RunnableConfig
from langgraph.store.base import BaseStore

from everthread.cli.conversation import is_open
from everthread.cli.options import (
    DEFAULT_DATABASE,
    WAIT_SECONDS,
    AgentName,
    AsJson,
    DatabaseUrl,
    ThreadId,
    agent_of,
)
from everthread.cli.output import print_json, say
from everthread.cli.reading import (
    check_owner,
    exists,
    long_term_notes,
    record_of,
    session_notes,
    unknown,
)
from everthread.errors import StorageError
from everthread.graph.agent import build_graph
from everthread.graph.guard import GuardedGraph
from everthread.ledger.record import STREAM_KEY
from everthread.nodes.consolidate import KEPT, end_session, preview
from everthread.state import Context, Note, namespaces
from everthread.storage.open import Storage, open_storage
from everthread.storage.to_read import storage_to_read

__all__ = ["Ending", "consolidated", "end", "end_thread", "print_ending"]


def end(
    thread: ThreadId,
    user: Annotated[
        str | None, typer.Option("--user", metavar="USER", help="Whose notes change.  [default: the thread's user]")
    ] = None,
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
            ending = _planned(storage, thread, owner)
        else:
            graph = build_graph(agent_of(record, agent), model="offline", storage=storage)
            ending = end_thread(graph, storage, thread, owner)
    if as_json:
        print_json(ending.as_json())
    else:
        outcome = "would end like this; nothing was written" if dry_run else "has ended"
        say(f"The session of thread {thread!r}, user {ending.user_id!r}, {outcome}.", "bold")
        print_ending(ending)
    if ending.failure:
        raise StorageError(f"thread {thread!r} could not be consolidated ({ending.failure})")


@dataclass(frozen=True)
class Ending:
    """The end of one session, as it was or as it would be."""

    thread_id: str
    user_id: str
    changes: Mapping[str, Sequence[tuple[Note, str]]]
    """Notes by what became of them, with the reason where there is one; `_SIGNS` lists the outcomes."""
    marked: Sequence[tuple[Note, Note]]
    """Pairs of notes that may contradict each other."""
    failure: str = ""
    """Why nothing changed; empty when consolidation worked."""
    is_dry: bool = False
    """Nothing was written."""

    @classmethod
    def of(cls, decisions: Mapping[str, Any], notes: Iterable[Note], **facts: Any) -> "Ending":
        """Look up the notes of a `consolidated` event or of a plan; a note that is unknown is left out.

        Args:
            decisions: ids of the notes that were `added`, `merged`, `dropped` and so on; with reasons, a mapping.
            notes: every note that was there before or is there now.
            facts: all other fields.
        """
        by_id = {note.id: note for note in notes}
        changes = {}
        for outcome, (_, has_reason) in _SIGNS.items():
            ids = decisions.get(outcome, ())
            changes[outcome] = [(by_id[one], ids[one] if has_reason else "") for one in ids if one in by_id]
        pairs = decisions.get("marked", ())
        marked = [(by_id[one], by_id[other]) for one, other in pairs if one in by_id and other in by_id]
        return cls(changes=changes, marked=marked, **facts)

    @property
    def dropped(self) -> Sequence[tuple[Note, str]]:
        """Return the session notes that went, with the reason."""
        return self.changes["dropped"]

    def as_json(self) -> dict[str, Any]:
        """Return it as one JSON object."""
        return {
            "thread_id": self.thread_id,
            "user_id": self.user_id,
            "dry_run": self.is_dry,
            **{
                outcome: [_brief(note) | ({"reason": reason} if reason else {}) for note, reason in notes]
                for outcome, notes in self.changes.items()
            },
            "marked": [[_brief(one), _brief(other)] for one, other in self.marked],
            "failure": self.failure or None,
        }


_SIGNS = {
    "added": ("+ long-term ", False),
    # Session notes that say what a long-term note already said.
    "merged": ("= confirmed ", False),
    "superseded": ("~ superseded", False),
    "expired": ("- expired   ", True),
    "dropped": ("- dropped   ", True),
    # Session notes that stay session notes.
    "kept": (". not yet   ", True),
}
"""What can become of a note, how it is printed, and whether it has a reason."""


def _brief(note: Note) -> dict[str, Any]:
    return {"id": note.id, "text": note.text, "date": note.date, "keywords": list(note.keywords), "scope": note.scope}


def end_thread(graph: GuardedGraph, storage: Storage, thread_id: str, user_id: str) -> Ending:
    """End the session of a thread.

    The graph ends it, unless a turn waits for an approval or an answer: that turn would be lost, so
    then only the notes are consolidated and the turn stays as it is.
    """
    config: RunnableConfig = {"configurable": {"thread_id": thread_id}}
    if is_open(graph.get_state(config)):
        with storage.locks.hold(thread_id):
            return consolidated(storage, thread_id, user_id)
    before = _notes(storage.store, thread_id, user_id)
    context = Context(user_id=user_id)
    parts = graph.stream({"end_session": True}, config, context=context, stream_mode="custom")
    events = [part for part in parts if isinstance(part, dict) and STREAM_KEY in part]
    return _ending_of(events, before, storage.store, thread_id, user_id)


def consolidated(storage: Storage, thread_id: str, user_id: str) -> Ending:
    """End a session in the store alone; the caller holds the thread's lock."""
    store = storage.store
    before = _notes(store, thread_id, user_id)
    record = record_of(store, thread_id) or {}
    events: list[Any] = []
    end_session(
        store,
        thread_id,
        user_id,
        write=events.append,
        turn=int(record.get("turns", 0)),
        lock=storage.locks.hold,
        schema=agent_of(record).profile,
    )
    return _ending_of(events, before, store, thread_id, user_id)


def print_ending(ending: Ending) -> None:
    """Print one line for each note, as a diff: what comes, what stays and what goes."""
    lines = [
        f"{_SIGNS[outcome][0]}  {note.text}" + (f"  ({reason})" if reason else "")
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


def _planned(storage: Storage, thread_id: str, user_id: str) -> Ending:
    """Return what the end of a session would change by the rules; nothing is written."""
    plan = preview(storage.store, thread_id, user_id)
    notes = (*plan.long_term, *plan.session, *plan.added)
    decisions = {outcome: getattr(plan, outcome) for outcome in (*_SIGNS, "marked")}
    decisions["added"] = [note.id for note in plan.added]
    return Ending.of(decisions, notes, thread_id=thread_id, user_id=user_id, is_dry=True)


def _notes(store: BaseStore, thread_id: str, user_id: str) -> list[Note]:
    return [*session_notes(store, thread_id), *long_term_notes(store, user_id)]


def _ending_of(
    events: Iterable[Mapping[str, Any]], before: Sequence[Note], store: BaseStore, thread_id: str, user_id: str
) -> Ending:
    """Read the events of a consolidation, given the notes as they were before it."""
    done: Mapping[str, Any] = {}
    failure = ""
    for event in events:
        if event.get("event") == "consolidated":
            done = event
        elif event.get("step") == "consolidate" and event.get("used") == KEPT:
            failure = f"{event['reason']}: {event['used']}"
    added = [store.get(namespaces.notes(user_id), note_id) for note_id in done.get("added", ())]
    notes = [*before, *(Note.model_validate(item.value) for item in added if item)]
    return Ending.of(done, notes, thread_id=thread_id, user_id=user_id, failure=failure)
