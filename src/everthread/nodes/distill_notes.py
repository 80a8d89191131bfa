"""Make session notes from the turn that has just ended."""

from typing import Literal

from langchain_core.messages import BaseMessage
from langgraph.runtime import Runtime
from langgraph.store.base import PutOp

from everthread.ledger.events import Event, FallbackUsed, NoteBlocked, NoteSaved
from everthread.ledger.record import now, record
from everthread.memory.capture import capture
from everthread.memory.rules import candidates, keywords
from everthread.nodes.sizing import is_full
from everthread.nodes.wiring import Wiring, context_of, store_of, thread_of
from everthread.state import Context, Source, State, Update
from everthread.state.marks import marks
from everthread.window.turns import question_of

_CALLED = "save_memory_note"


def distill_notes(state: State, runtime: Runtime[Context], wiring: Wiring) -> Update:
    """Save what the user's message says about preferences, when the `turn` dial is on.

    With the `tool` dial the model saves notes itself while it answers; a turn in which it did so is
    not distilled a second time. A failure leaves an event and never fails the turn.

    Returns:
        Whether the working set asks for a compaction; the graph goes on to `summarize` then.
    """
    context = context_of(runtime)
    question = question_of(state.get("messages", []))
    update: Update = {"is_full": is_full(state, context, wiring)}
    if "turn" not in context.distillation or question is None or _saved_by_tool(state, question):
        return update
    store, thread_id, turn = store_of(runtime), thread_of(runtime), state.get("turns", 0)
    try:
        events, operations = distilled([question], thread_id, by="turn")
    except Exception as error:  # noqa: BLE001 - a note is never worth a turn
        events, operations = [FallbackUsed(step="distill_notes", reason=type(error).__name__, used="no note")], []
    record(store, thread_id, events, write=runtime.stream_writer, turn=turn, operations=operations)
    return update


def distilled(
    messages: list[BaseMessage], thread_id: str, *, by: Literal["turn", "session"]
) -> tuple[list[Event], list[PutOp]]:
    """Return the events and writes for the notes that the rules find in the user's messages."""
    events: list[Event] = []
    operations: list[PutOp] = []
    for message in messages:
        for found in candidates(str(message.text)):
            source = Source(thread_id=thread_id, message_ids=(str(message.id),), quote=found.quote)
            note, verdict, writes = capture(
                found.text,
                keywords(found.quote),
                scope=found.scope,
                source=source,
                date=str(marks(message).get("at") or now())[:10],
                salt=str(message.id),
            )
            operations += writes
            if note is None:
                events.append(NoteBlocked(category=verdict.category, rule=verdict.rule, message_ids=[str(message.id)]))
            else:
                events.append(
                    NoteSaved(note_id=note.id, scope=note.scope, kind=note.kind, by=by, message_ids=[str(message.id)])
                )
    return events, operations


def _saved_by_tool(state: State, question: BaseMessage) -> bool:
    calls: list[str] = []
    for message in state.get("messages", []):
        if message is question:
            calls = []
        calls += [call["name"] for call in getattr(message, "tool_calls", [])]
    return _CALLED in calls
