"""What the end of a session changed: notes that became long-term, were confirmed or went."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore

from everthread.agents import AGENTS, Agent
from everthread.cli.output import say
from everthread.cli.reading import is_open, long_term_notes, record_of, session_notes
from everthread.nodes.consolidate import KEPT, end_session, preview
from everthread.state import Context, Input, Note, Output, State, namespaces
from everthread.storage.open import Storage

__all__ = ["Ending", "agent_of", "consolidated", "end_thread", "planned", "print_ending"]


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

    def as_json(self) -> dict[str, Any]:
        """Return it as one JSON object."""
        return {
            "thread_id": self.thread_id,
            "user_id": self.user_id,
            "dry_run": self.is_dry,
            "added": [_told(note) for note in self.added],
            "merged": [_told(note) for note in self.merged],
            "superseded": [_told(note) for note in self.superseded],
            "dropped": [{**_told(note), "reason": reason} for note, reason in self.dropped],
            "expired": [{**_told(note), "reason": reason} for note, reason in self.expired],
            "kept": [{**_told(note), "reason": reason} for note, reason in self.kept],
            "marked": [[_told(one), _told(other)] for one, other in self.marked],
            "failure": self.failure or None,
        }


def end_thread(
    graph: CompiledStateGraph[State, Context, Input, Output], storage: Storage, thread_id: str, user_id: str
) -> Ending:
    """End the session of a thread.

    The graph ends it, unless a turn waits for an approval or an answer: that turn would be lost, so
    then only the notes are consolidated and the turn stays as it is.
    """
    config: RunnableConfig = {"configurable": {"thread_id": thread_id}}
    if is_open(graph.get_state(config)):
        with storage.locks.hold(thread_id):
            return consolidated(storage, thread_id, user_id)
    before = [*session_notes(storage.store, thread_id), *long_term_notes(storage.store, user_id)]
    context = Context(user_id=user_id)
    events = list(graph.stream({"end_session": True}, config, context=context, stream_mode="custom"))
    return _ending_of(events, before, storage.store, thread_id=thread_id, user_id=user_id)


def consolidated(storage: Storage, thread_id: str, user_id: str) -> Ending:
    """End a session in the store alone; the caller holds the thread's lock."""
    store = storage.store
    before = [*session_notes(store, thread_id), *long_term_notes(store, user_id)]
    known = record_of(store, thread_id) or {}
    events: list[Any] = []
    end_session(
        store,
        thread_id,
        user_id,
        write=events.append,
        turn=int(known.get("turns", 0)),
        exclusive=storage.locks.hold,
        schema=agent_of(known).profile,
    )
    return _ending_of(events, before, store, thread_id=thread_id, user_id=user_id)


def planned(storage: Storage, thread_id: str, user_id: str) -> Ending:
    """Return what the end of a session would change by the rules; nothing is written."""
    made = preview(storage.store, thread_id, user_id)
    known = {note.id: note for note in (*made.long_term, *made.session)}
    return Ending(
        thread_id=thread_id,
        user_id=user_id,
        added=made.added,
        merged=[known[note_id] for note_id in made.merged],
        superseded=[known[note_id] for note_id in made.superseded],
        dropped=[(known[note_id], why) for note_id, why in made.dropped.items()],
        expired=[(known[note_id], why) for note_id, why in made.expired.items()],
        kept=[(known[note_id], why) for note_id, why in made.kept.items()],
        marked=[(known[one], known[other]) for one, other in made.marked],
        is_dry=True,
    )


def agent_of(known: Mapping[str, Any]) -> Agent:
    """Return the agent of a session's record; the travel concierge when it names none of ours."""
    return AGENTS.get(str(known.get("agent")), AGENTS["travel"])


def _ending_of(
    events: Iterable[Mapping[str, Any]], before: Sequence[Note], store: BaseStore, *, thread_id: str, user_id: str
) -> Ending:
    """Put words to the events of a consolidation, given the notes as they were."""
    found = list(events)
    done = next((event for event in found if event.get("event") == "consolidated"), {})
    failed = next((event for event in found if event.get("step") == "consolidate" and event.get("used") == KEPT), {})
    after = [store.get(namespaces.notes(user_id), note_id) for note_id in (*done.get("added", ()),)]
    known = {note.id: note for note in (*before, *(Note.model_validate(item.value) for item in after if item))}

    def named(ids: Iterable[str]) -> list[Note]:
        return [known[note_id] for note_id in ids if note_id in known]

    def reasoned(name: str) -> list[tuple[Note, str]]:
        return [(known[note_id], why) for note_id, why in done.get(name, {}).items() if note_id in known]

    return Ending(
        thread_id=thread_id,
        user_id=user_id,
        added=named(done.get("added", ())),
        merged=named(done.get("merged", ())),
        superseded=named(done.get("superseded", ())),
        dropped=reasoned("dropped"),
        expired=reasoned("expired"),
        kept=reasoned("kept"),
        marked=[(known[one], known[other]) for one, other in done.get("marked", ()) if one in known and other in known],
        failure=f"{failed['reason']}: {failed['used']}" if failed else "",
    )


def print_ending(ending: Ending) -> None:
    """Print one line for each note, as a diff: what comes, what stays and what goes."""
    for note in ending.added:
        say(f"  + long-term   {note.text}")
    for note in ending.merged:
        say(f"  = confirmed   {note.text}")
    for note in ending.superseded:
        say(f"  ~ superseded  {note.text}")
    for one, other in ending.marked:
        say(f"  ? in doubt    {one.text}  (or: {other.text})")
    for note, reason in ending.expired:
        say(f"  - expired     {note.text}  ({reason})")
    for note, reason in ending.dropped:
        say(f"  - dropped     {note.text}  ({reason})")
    for note, reason in ending.kept:
        say(f"  . not yet     {note.text}  ({reason})")
    if ending.failure:
        say(f"  ! kept as is  {ending.failure}")
    elif not (ending.added or ending.merged or ending.superseded or ending.dropped or ending.expired or ending.kept):
        say("  no session notes, so nothing changed")


def _told(note: Note) -> dict[str, Any]:
    return {"id": note.id, "text": note.text, "date": note.date, "keywords": list(note.keywords), "scope": note.scope}
