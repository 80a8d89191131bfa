"""End a session: session notes become long-term notes or go."""

from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore, PutOp
from langgraph.types import StreamWriter

from everthread.ledger.events import Consolidated, Event, FallbackUsed
from everthread.ledger.record import now, record
from everthread.memory.consolidation import operations, plan
from everthread.nodes.distill_notes import distilled
from everthread.nodes.inject_memory import own_session, readable
from everthread.nodes.wiring import Wiring, context_of, store_of, thread_of
from everthread.state import Context, Note, State, Update, namespaces
from everthread.storage.transcript import transcript
from everthread.window.turns import opens_turn

_MANY = 1_000


def consolidate(state: State, runtime: Runtime[Context], wiring: Wiring) -> Update:
    """Merge the session notes into the long-term notes and clear them, all in one write.

    A failure keeps old and new notes as they are and leaves an event; the next end of a session
    tries again.
    """
    context, store, thread_id = context_of(runtime), store_of(runtime), thread_of(runtime)
    own_session(store, thread_id, context)
    turn = state.get("turns", 0)
    if "session" in context.distillation:
        told = [message for message in transcript(store, thread_id, state.get("messages", [])) if opens_turn(message)]
        events, writes = distilled(told, thread_id, by="session")
        record(store, thread_id, events, write=runtime.stream_writer, turn=turn, operations=writes)
    end_session(store, thread_id, context.user_id, write=runtime.stream_writer, turn=turn)
    # `turns` is unchanged, but a run that writes no output key returns None to its caller.
    return {"end_session": False, "turns": turn}


def end_session(store: BaseStore, thread_id: str, user_id: str, *, write: StreamWriter, turn: int) -> None:
    """Consolidate one thread's session notes by rules.

    Args:
        store: where the notes are.
        thread_id: the thread whose session ends; it is not run, so a live turn on it is safe.
        user_id: whose long-term notes change.
        write: the run's `stream_writer`.
        turn: user turns of the thread so far.
    """
    events: list[Event]
    try:
        session = _notes(store, namespaces.session_notes(thread_id))
        made = plan(session, readable(store.search(namespaces.notes(user_id), limit=_MANY)))
        events = [
            Consolidated(
                added=[note.id for note in made.added],
                merged=sorted(made.merged),
                dropped=made.dropped,
                planner="rules",
            )
        ]
        # Only a consolidated session is closed, so that a sweep comes back to one that failed.
        writes = [*operations(made, user_id, thread_id, session), *_closed(store, thread_id)]
    except ValueError as error:
        events, writes = [FallbackUsed(step="consolidate", reason=type(error).__name__, used="notes kept as is")], []
    record(store, thread_id, events, write=write, turn=turn, operations=writes)


def _notes(store: BaseStore, namespace: namespaces.Namespace) -> list[Note]:
    return [Note.model_validate(item.value) for item in store.search(namespace, limit=_MANY)]


def _closed(store: BaseStore, thread_id: str) -> list[PutOp]:
    """Note in the session's record up to which turn it is consolidated."""
    item = store.get(namespaces.SESSIONS, thread_id)
    if item is None:
        return []
    value = {**item.value, "consolidated_turns": item.value.get("turns", 0), "consolidated_at": now()}
    return [PutOp(namespaces.SESSIONS, thread_id, value, index=None)]
