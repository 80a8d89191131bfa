"""End sessions: by the graph, or in the store alone where a turn is open or nobody is there."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.store.base import BaseStore, PutOp
from langgraph.types import StateSnapshot, StreamWriter

from everthread.errors import NotFoundError, StorageError, ThreadBusyError
from everthread.graph.agent import recorded_agent
from everthread.graph.guard import GuardedGraph
from everthread.graph.run import is_own
from everthread.ledger.events import Steered
from everthread.ledger.record import STREAM_KEY
from everthread.ledger.record import record as record_events
from everthread.nodes.consolidate import KEPT, SessionEnd, end_session, preview
from everthread.state import Agent, Context, Note, namespaces
from everthread.storage.open import Storage
from everthread.storage.reader import Reader
from everthread.storage.reading import long_term_notes, read_thread, record_of, session_notes
from everthread.storage.said import said_since_question

OUTCOMES = {
    "added": False,
    # Session notes that say what a long-term note already said.
    "merged": False,
    "superseded": False,
    "expired": True,
    "dropped": True,
    # Session notes that stay session notes.
    "kept": True,
}
"""What can become of a note, and whether it has a reason."""


@dataclass(frozen=True)
class Ending:
    """The end of one session, as it was or as it would be."""

    thread_id: str
    user_id: str
    changes: Mapping[str, Sequence[tuple[Note, str]]]
    """Notes by what became of them, with the reason where there is one; `OUTCOMES` lists the outcomes."""
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
        """
        by_id = {note.id: note for note in notes}
        changes = {}
        for outcome, has_reason in OUTCOMES.items():
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


def _brief(note: Note) -> dict[str, Any]:
    return {"id": note.id, "text": note.text, "date": note.date, "keywords": list(note.keywords), "scope": note.scope}


def is_open(snapshot: StateSnapshot) -> bool:
    """Tell whether a turn waits for its answer or for an approval."""
    # After a crash `next` can be empty although the turn has no answer; the tasks show it.
    return bool(snapshot.next or snapshot.tasks)


def end_thread(
    graph: GuardedGraph | None, storage: Storage, thread_id: str, user_id: str, *, actor: str = ""
) -> Ending:
    """End the session of a thread, which a person asked for.

    The graph ends it, unless the thread is another graph's that runs our middleware, or a turn waits for an approval
    or an answer: that turn would be lost, so then only the notes are consolidated and the turn stays as it is.

    Args:
        graph: runs the thread; None, where it is not at hand: only the notes are consolidated.
        actor: who asks for it, for the ledger; empty names the user.
    """
    ending = _ended(graph, storage, thread_id, user_id)
    turn = int((record_of(storage.store, thread_id) or {}).get("turns") or 0)
    record_events(storage.store, thread_id, [Steered(action="end", actor=actor or user_id)], turn=turn)
    return ending


def _ended(graph: GuardedGraph | None, storage: Storage, thread_id: str, user_id: str) -> Ending:
    config: RunnableConfig = {"configurable": {"thread_id": thread_id}}
    # A thread with a record that another graph wrote is one of the middleware's.
    is_ours = Reader(storage.tables).is_ours(thread_id) or record_of(storage.store, thread_id) is None
    is_run = graph is not None and is_own(graph.graph) and is_ours
    if graph is None or not is_run or is_open(graph.get_state(config)):
        with storage.locks.hold(thread_id):
            return end_in_store(storage.store, thread_id, user_id, said=_said_last(storage, thread_id, user_id))
    before = _notes(storage.store, thread_id, user_id)
    context = Context(user_id=user_id)
    parts = graph.stream({"end_session": True}, config, context=context, stream_mode="custom")
    events = [part for part in parts if isinstance(part, dict) and STREAM_KEY in part]
    return _ending_of(events, before, storage.store, thread_id, user_id)


def end_in_store(
    store: BaseStore,
    thread_id: str,
    user_id: str,
    agent: Agent | None = None,
    *,
    said: Sequence[PutOp] = (),
    write: StreamWriter = lambda event: None,
) -> Ending:
    """End a session in the store alone; the caller holds the thread's lock, or leaves its other records as they are.

    Args:
        agent: of the thread; None: as `recorded_agent` has it.
        said: writes of what the session said last; none for a thread that goes.
        write: gets the events, too.
    """
    before = _notes(store, thread_id, user_id)
    record = record_of(store, thread_id) or {}
    events: list[Any] = []

    def note(event: Any) -> None:
        events.append(event)
        write(event)

    schema, turn = (agent or recorded_agent(record)).profile, int(record.get("turns", 0))
    end_session(SessionEnd(store, thread_id, user_id, note, turn, schema=schema, said=said))
    return _ending_of(events, before, store, thread_id, user_id)


def _said_last(storage: Storage, thread_id: str, user_id: str) -> list[PutOp]:
    """Prepare the writes of what was said last."""
    try:
        messages = read_thread(storage, thread_id, whole=False).messages
    except (NotFoundError, StorageError):
        # What cannot be read cannot be found either; the notes are consolidated all the same.
        return []
    return said_since_question(thread_id, user_id, messages)


def planned(storage: Storage, thread_id: str, user_id: str) -> Ending:
    """Return what the end of a session would change by the rules; nothing is written."""
    plan = preview(storage.store, thread_id, user_id)
    notes = (*plan.long_term, *plan.session, *plan.added)
    decisions = {outcome: getattr(plan, outcome) for outcome in (*OUTCOMES, "marked")}
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


def end_if_idle(
    storage: Storage, thread_id: str, idle_seconds: float, agents: Mapping[str, Agent] | None = None
) -> Ending | str:
    """End one session, or say why not: `active`, `ended` or `busy`.

    Args:
        idle_seconds: without activity.
        agents: by their names in the records; others count as `recorded_agent` has them.
    """
    try:
        # A session whose thread is locked is not idle, so nothing is waited for.
        with storage.locks.hold(thread_id, timeout_seconds=0):
            record = record_of(storage.store, thread_id) or {}
            if reason := _not_due(storage, record, thread_id, idle_seconds):
                return reason
            # The thread is not run: a turn that waits for an approval or a retry stays as it is.
            agent = (agents or {}).get(str(record.get("agent")))
            owner = str(record["user_id"])
            said = _said_last(storage, thread_id, owner)
            return end_in_store(storage.store, thread_id, owner, agent, said=said)
    except ThreadBusyError:
        return "busy"


def has_open_session(storage: Storage, record: Mapping[str, Any], thread_id: str) -> bool:
    """Tell whether a thread has turns that no end of a session has seen, or session notes."""
    is_consolidated = int(record.get("consolidated_turns", 0)) >= int(record.get("turns", 0))
    # Notes that are still there mean that a consolidation failed.
    return not is_consolidated or bool(session_notes(storage.store, thread_id))


def _not_due(storage: Storage, record: dict[str, Any], thread_id: str, idle_seconds: float) -> str:
    """Say why a session is not due, from its record as it is under the lock; empty when it is."""
    if not has_open_session(storage, record, thread_id):
        return "ended"
    since = datetime.now(UTC) - datetime.fromisoformat(str(record["last_activity"]))
    return "active" if since.total_seconds() < idle_seconds else ""
