"""What the end of a session changed: notes that became long-term, were confirmed or went."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore

from everthread.cli.output import say
from everthread.cli.reading import is_open, record_of, session_notes
from everthread.nodes.consolidate import end_session
from everthread.state import Context, Input, Note, Output, State, namespaces
from everthread.storage.open import Storage

__all__ = ["Ending", "consolidated", "end_thread", "print_ending"]


@dataclass(frozen=True)
class Ending:
    """The end of one session."""

    thread_id: str
    user_id: str
    added: list[Note]
    merged: list[Note]
    """Session notes that say what a long-term note already said."""
    superseded: list[Note]
    """Long-term notes that gave way."""
    dropped: list[tuple[Note, str]]
    """Session notes that went, with the reason."""
    failure: str = ""
    """Why nothing changed; empty when consolidation worked."""

    def as_json(self) -> dict[str, Any]:
        """Return it as one JSON object."""
        return {
            "thread_id": self.thread_id,
            "user_id": self.user_id,
            "added": [_told(note) for note in self.added],
            "merged": [_told(note) for note in self.merged],
            "superseded": [_told(note) for note in self.superseded],
            "dropped": [{**_told(note), "reason": reason} for note, reason in self.dropped],
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
            return consolidated(storage.store, thread_id, user_id)
    before = session_notes(storage.store, thread_id)
    context = Context(user_id=user_id)
    events = list(graph.stream({"end_session": True}, config, context=context, stream_mode="custom"))
    return _ending_of(events, before, storage.store, thread_id=thread_id, user_id=user_id)


def consolidated(store: BaseStore, thread_id: str, user_id: str) -> Ending:
    """End a session in the store alone; the caller holds the thread's lock."""
    before = session_notes(store, thread_id)
    turns = int((record_of(store, thread_id) or {}).get("turns", 0))
    events: list[Any] = []
    end_session(store, thread_id, user_id, write=events.append, turn=turns)
    return _ending_of(events, before, store, thread_id=thread_id, user_id=user_id)


def _ending_of(
    events: Iterable[Mapping[str, Any]], before: Sequence[Note], store: BaseStore, *, thread_id: str, user_id: str
) -> Ending:
    """Put words to the events of a consolidation, given the session notes as they were."""
    found = list(events)
    done = next((event for event in found if event.get("event") == "consolidated"), {})
    failed = next((event for event in found if event.get("step") == "consolidate"), {})
    gone = [store.get(namespaces.notes(user_id), note_id) for note_id in done.get("superseded", ())]
    known = {note.id: note for note in (*before, *(Note.model_validate(item.value) for item in gone if item))}

    def named(ids: Iterable[str]) -> list[Note]:
        return [known[note_id] for note_id in ids if note_id in known]

    return Ending(
        thread_id=thread_id,
        user_id=user_id,
        added=named(done.get("added", ())),
        merged=named(done.get("merged", ())),
        superseded=named(done.get("superseded", ())),
        dropped=[(known[note_id], why) for note_id, why in done.get("dropped", {}).items() if note_id in known],
        failure=f"{failed['reason']}: {failed['used']}" if failed else "",
    )


def print_ending(ending: Ending) -> None:
    """Print one line for each note."""
    for note in ending.added:
        say(f"  + long-term   {note.text}")
    for note in ending.merged:
        say(f"  = confirmed   {note.text}")
    for note in ending.superseded:
        say(f"  ~ superseded  {note.text}")
    for note, reason in ending.dropped:
        say(f"  - dropped     {note.text}  ({reason})")
    if ending.failure:
        say(f"  ! kept as is  {ending.failure}")
    elif not (ending.added or ending.merged or ending.superseded or ending.dropped):
        say("  no session notes, so nothing changed")


def _told(note: Note) -> dict[str, Any]:
    return {"id": note.id, "text": note.text, "date": note.date, "keywords": list(note.keywords), "scope": note.scope}
