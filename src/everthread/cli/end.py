"""`end`: end one session, and show which notes became long-term, were confirmed or went."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import typer
from langchain_core.runnables import RunnableConfig
from langgraph.store.base import BaseStore

from everthread.cli.conversation import Graph
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
    is_open,
    long_term_notes,
    record_of,
    session_notes,
    unknown,
)
from everthread.errors import StorageError
from everthread.graph.agent import build_graph
from everthread.nodes.consolidate import KEPT, end_session, preview
from everthread.state import Context, Note, namespaces
from everthread.storage.open import Storage, open_storage

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
    with open_storage(database, create=False, lock_timeout_seconds=WAIT_SECONDS) as storage:
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
    added: list[Note]
    merged: list[Note]
    """Session notes that say what a long-term note already said."""
    superseded: list[Note]
    """Notes that gave way."""
    dropped: list[tuple[Note, str]]
    """Session notes that went, with the reason."""
    failure: str = ""
    """Why nothing changed; empty when consolidation worked."""
    expired: list[tuple[Note, str]] = field(default_factory=list)
    """Long-term notes that came to their end, with the reason."""
    kept: list[tuple[Note, str]] = field(default_factory=list)
    """Session notes that stay session notes, with the reason."""
    marked: list[tuple[Note, Note]] = field(default_factory=list)
    """Pairs of notes that may contradict each other."""
    is_dry: bool = False
    """Nothing was written."""

    @classmethod
    def of(cls, decisions: Any, notes: Mapping[str, Note], **facts: Any) -> "Ending":
        """Look up the notes of a `consolidated` event or of a plan; a note that is unknown is left out.

        Args:
            decisions: a mapping with the ids of the notes that were `added`, `merged`, `dropped` and so on.
            notes: every note that was there before or is there now, by id.
            facts: all other fields.
        """

        def named(name: str) -> list[Note]:
            return [notes[note_id] for note_id in decisions.get(name, ()) if note_id in notes]

        def reasoned(name: str) -> list[tuple[Note, str]]:
            return [(notes[note_id], why) for note_id, why in decisions.get(name, {}).items() if note_id in notes]

        return cls(
            added=named("added"),
            merged=named("merged"),
            superseded=named("superseded"),
            dropped=reasoned("dropped"),
            expired=reasoned("expired"),
            kept=reasoned("kept"),
            marked=[
                (notes[one], notes[other])
                for one, other in decisions.get("marked", ())
                if one in notes and other in notes
            ],
            **facts,
        )

    def as_json(self) -> dict[str, Any]:
        """Return it as one JSON object."""
        return {
            "thread_id": self.thread_id,
            "user_id": self.user_id,
            "dry_run": self.is_dry,
            **{name: list(map(_brief, getattr(self, name))) for name in ("added", "merged", "superseded")},
            **{
                name: [{**_brief(note), "reason": reason} for note, reason in getattr(self, name)]
                for name in ("dropped", "expired", "kept")
            },
            "marked": [[_brief(one), _brief(other)] for one, other in self.marked],
            "failure": self.failure or None,
        }


def _brief(note: Note) -> dict[str, Any]:
    return {"id": note.id, "text": note.text, "date": note.date, "keywords": list(note.keywords), "scope": note.scope}


def end_thread(graph: Graph, storage: Storage, thread_id: str, user_id: str) -> Ending:
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
    events = list(graph.stream({"end_session": True}, config, context=context, stream_mode="custom"))
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
        exclusive=storage.locks.hold,
        schema=agent_of(record).profile,
    )
    return _ending_of(events, before, store, thread_id, user_id)


def print_ending(ending: Ending) -> None:
    """Print one line for each note, as a diff: what comes, what stays and what goes."""
    lines = [
        *(f"+ long-term   {note.text}" for note in ending.added),
        *(f"= confirmed   {note.text}" for note in ending.merged),
        *(f"~ superseded  {note.text}" for note in ending.superseded),
        *(f"- expired     {note.text}  ({reason})" for note, reason in ending.expired),
        *(f"- dropped     {note.text}  ({reason})" for note, reason in ending.dropped),
        *(f". not yet     {note.text}  ({reason})" for note, reason in ending.kept),
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
    notes = {note.id: note for note in (*plan.long_term, *plan.session, *plan.added)}
    fields = ("merged", "superseded", "dropped", "expired", "kept", "marked")
    decisions = {"added": [note.id for note in plan.added], **{name: getattr(plan, name) for name in fields}}
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
    notes = {note.id: note for note in (*before, *(Note.model_validate(item.value) for item in added if item))}
    return Ending.of(done, notes, thread_id=thread_id, user_id=user_id, failure=failure)
