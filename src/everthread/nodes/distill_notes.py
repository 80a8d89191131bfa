"""Make session notes from the turn that has just ended."""

from collections.abc import Collection, Sequence
from typing import Literal

from langchain_core.messages import AIMessage, BaseMessage
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore, PutOp

from everthread.ledger.events import Event, FallbackUsed, NoteBlocked, NoteSaved
from everthread.ledger.record import events as ledger_events
from everthread.ledger.record import now, record
from everthread.memory.capture import capture
from everthread.memory.distillation import candidates, covers, keywords
from everthread.nodes.inject_memory import readable
from everthread.nodes.sizing import is_full
from everthread.nodes.wiring import Wiring, context_of, store_of, thread_of
from everthread.state import Context, Note, Source, State, Update, namespaces
from everthread.state.marks import is_synthetic, marks
from everthread.window.turns import opens_turn, question_of

_MANY = 1_000


def distill_notes(state: State, runtime: Runtime[Context], wiring: Wiring) -> Update:
    """Save what the user's message says about preferences, when the `turn` dial is on.

    With the `tool` dial the model saves notes itself while it answers; what such a note says is not
    distilled a second time. A failure leaves an event and never fails the turn.

    Returns:
        Whether the working set asks for a compaction; the graph goes on to `summarize` then.
    """
    context = context_of(runtime)
    messages = state.get("messages", [])
    question = question_of(messages)
    update: Update = {"is_full": is_full(state, context, wiring)}
    if "turn" not in context.distillation or question is None:
        return update
    store, thread_id, turn = store_of(runtime), thread_of(runtime), state.get("turns", 0)
    memory = state.get("memory") or {}
    try:
        place = next(place for place, message in enumerate(messages) if message is question)
        known = _session_notes(store, thread_id)
        events, operations = distilled(
            messages[max(0, place - 1) : place + 1],
            thread_id,
            by="turn",
            notes=known,
            injected=[*_lines(str(memory.get("notes", ""))), *(note.text for note in known)],
        )
    except Exception as error:  # noqa: BLE001 - a note is never worth a turn
        events, operations = [FallbackUsed(step="distill_notes", reason=type(error).__name__, used="no note")], []
    record(store, thread_id, events, write=runtime.stream_writer, turn=turn, operations=operations)
    return update


def distilled(
    messages: Sequence[BaseMessage],
    thread_id: str,
    *,
    by: Literal["turn", "session"],
    notes: Sequence[Note] = (),
    injected: Sequence[str] = (),
    told: Collection[str] = (),
) -> tuple[list[Event], list[PutOp]]:
    """Return the events and writes for the notes that the rules find in the user's messages.

    Args:
        messages: in order; the assistant's are read only as questions that the user answers.
        thread_id: the thread.
        by: which dial asks.
        notes: session notes so far: what they say of the same message is not noted twice.
        injected: texts of notes that the user saw or may have pasted: they are not learnt again.
        told: ids of notes and messages that were distilled before, whatever became of the notes since.
    """
    events: list[Event] = []
    operations: list[PutOp] = []
    question = ""
    for message in messages:
        if isinstance(message, AIMessage):
            question = "" if message.tool_calls else str(message.text)
        if not opens_turn(message):
            continue
        message_id = str(message.id)
        for found in candidates(str(message.text), question=question, known=injected):
            if message_id in told or any(covers(note, found, message_id) for note in notes if note.id not in told):
                continue
            source = Source(thread_id=thread_id, message_ids=(message_id,), quote=found.quote)
            note, verdict, writes = capture(
                found.text,
                keywords(found.quote),
                scope=found.scope,
                source=source,
                date=str(marks(message).get("at") or now())[:10],
                salt=message_id,
                kind=found.kind,
                subject=found.subject,
                confidence=found.confidence,
            )
            if note is None:
                events.append(NoteBlocked(category=verdict.category, rule=verdict.rule, message_ids=[message_id]))
            elif note.id not in told:
                operations += writes
                events.append(
                    NoteSaved(note_id=note.id, scope=note.scope, kind=note.kind, by=by, message_ids=[message_id])
                )
        question = ""
    return events, operations


def distilled_session(
    store: BaseStore, thread_id: str, messages: Sequence[BaseMessage], injected: Sequence[str] = ()
) -> tuple[list[Event], list[PutOp]]:
    """Return the events and writes for what a whole session says and no note has said yet.

    The ledger knows which messages were distilled, so a note that was deleted or corrected since is
    not learnt again from the words that it came from.

    Args:
        store: has the ledger and the session notes of the thread.
        thread_id: the thread.
        messages: the whole transcript, oldest first.
        injected: texts of the user's long-term notes, which are not learnt again.
    """
    notes = _session_notes(store, thread_id)
    alive = {note.id for note in notes}
    told: set[str] = set()
    for event in ledger_events(store, thread_id):
        if isinstance(event, NoteSaved):
            told.add(event.note_id)
            if event.note_id not in alive or event.by == "session":
                told.update(event.message_ids)
        elif isinstance(event, NoteBlocked):
            told.update(event.message_ids)
    own = [message for message in messages if not is_synthetic(message)]
    return distilled(own, thread_id, by="session", notes=notes, injected=injected, told=told)


def _session_notes(store: BaseStore, thread_id: str) -> list[Note]:
    return readable(store.search(namespaces.session_notes(thread_id), limit=_MANY))


def _lines(block: str) -> list[str]:
    """Return the texts of a rendered block of notes."""
    return [line.split(": ", 1)[-1].rsplit(" [", 1)[0] for line in block.splitlines() if line.startswith("- ")]
