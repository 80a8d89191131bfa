"""Make session notes from the turn that has just ended."""

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore, PutOp

from everthread.ledger.events import Event, FallbackUsed, NoteBlocked, NoteSaved
from everthread.ledger.record import events as ledger_events
from everthread.ledger.record import now, record
from everthread.memory.capture import capture
from everthread.memory.distill import candidates, covers, keywords
from everthread.memory.distill.proposals import refusals, together
from everthread.nodes.inject_memory import readable
from everthread.nodes.proposing import Read, Steps, aproposed, distiller_of, proposed, questioned, steps
from everthread.nodes.wiring import Wiring, context_of, store_of, thread_of
from everthread.state import Context, Note, Source, State, Update, namespaces
from everthread.state.marks import is_synthetic, marks
from everthread.storage.regrets import restated_blocked
from everthread.storage.transcript import transcript
from everthread.window.turns import opens_turn, question_of

_MANY = 1_000
_STEP = "distill_notes"
_RULES = "rules"
"""What is used when a model could not read the messages at all; the next run lets it read them again."""

_READ_AGAIN = 3
"""Earlier turns that a model may read again."""

_NOTHING_READ = Read()

Told = tuple[list[Event], list[PutOp]]
"""Events, and the writes that they tell of."""


def distill_notes(state: State, config: RunnableConfig, runtime: Runtime[Context], wiring: Wiring) -> Update:
    """Save what the user's message says about preferences, when the `turn` dial is on.

    With the `tool` dial the model saves notes itself while it answers; what such a note says is not
    distilled a second time. With the dial `distiller` a model reads the message beside the rules. A
    failure leaves an event and never fails the turn.
    """
    context = context_of(runtime)
    if "turn" in context.distillation and question_of(state.get("messages", [])) is not None:
        model = distiller_of(context, wiring)
        try:
            due = _turn(state, runtime, by_model=model is not None)
            read = proposed(due.steps(), model, config) if model is not None else Read()
            told = _told(due, read, state, runtime)
        except Exception as error:  # noqa: BLE001 - a note is never worth a turn
            told = _failed(error), []
        _record(told, state, runtime)
    return {}


async def adistill_notes(state: State, config: RunnableConfig, runtime: Runtime[Context], wiring: Wiring) -> Update:
    """Do what `distill_notes` does without blocking the event loop."""
    context = context_of(runtime)
    if "turn" in context.distillation and question_of(state.get("messages", [])) is not None:
        model = distiller_of(context, wiring)
        try:
            due = await asyncio.to_thread(_turn, state, runtime, by_model=model is not None)
            read = await aproposed(due.steps(), model, config) if model is not None else Read()
            told = await asyncio.to_thread(_told, due, read, state, runtime)
        except Exception as error:  # noqa: BLE001 - as in `distill_notes`
            told = _failed(error), []
        await asyncio.to_thread(_record, told, state, runtime)
    return {}


def distill_session(state: State, config: RunnableConfig, runtime: Runtime[Context], wiring: Wiring) -> None:
    """Save what the whole session says, when the `session` dial is on; it never fails the end of a session."""
    context = context_of(runtime)
    if "session" in context.distillation:
        model = distiller_of(context, wiring)
        try:
            due = _session(state, runtime)
            read = proposed(due.steps(), model, config) if model is not None else Read()
            told = _told(due, read, state, runtime)
        except Exception as error:  # noqa: BLE001 - the notes that there are can be consolidated all the same
            told = _failed(error), []
        _record(told, state, runtime)


async def adistill_session(state: State, config: RunnableConfig, runtime: Runtime[Context], wiring: Wiring) -> None:
    """Do what `distill_session` does without blocking the event loop."""
    context = context_of(runtime)
    if "session" in context.distillation:
        model = distiller_of(context, wiring)
        try:
            due = await asyncio.to_thread(_session, state, runtime)
            read = await aproposed(due.steps(), model, config) if model is not None else Read()
            told = await asyncio.to_thread(_told, due, read, state, runtime)
        except Exception as error:  # noqa: BLE001 - as in `distill_session`
            told = _failed(error), []
        await asyncio.to_thread(_record, told, state, runtime)


@dataclass(frozen=True)
class Due:
    """What is to be distilled."""

    messages: Sequence[BaseMessage]
    """In order; the assistant's are read only as questions that the user answers."""
    by: Literal["turn", "session"]
    notes: Sequence[Note] = ()
    """Session notes so far: what they say of the same message is not noted twice."""
    injected: Sequence[str] = ()
    """Texts of notes that the user saw or may have pasted: they are not learnt again."""
    told: Collection[str] = ()
    """Ids of notes and messages that were distilled before, whatever became of the notes since."""
    again: Collection[str] = ()
    """Ids of messages that the rules have read in an earlier turn, when the model failed."""
    unasked: Collection[str] = ()
    """Ids of messages that the model has read before."""

    def steps(self) -> Steps:
        """Return the requests to a model that reads beside the rules."""
        known = list(dict.fromkeys((*self.injected, *(note.text for note in self.notes))))
        return steps(self.messages, skip={*self.told, *self.unasked}, known=known)


def _turn(state: State, runtime: Runtime[Context], *, by_model: bool) -> Due:
    """Return the turn's question, and those ahead of it that a model could not read."""
    store, thread_id = store_of(runtime), thread_of(runtime)
    messages = state.get("messages", [])
    question = question_of(messages)
    earlier = _unread(store, thread_id, messages, state.get("turns", 0)) if by_model else []
    chosen: list[BaseMessage] = []
    for place, message in enumerate(messages):
        if message is question or any(message is one for one in earlier):
            # Ahead of a question there may be the anchor, which is no question to this answer.
            before = messages[place - 1] if place else None
            chosen += [before, message] if isinstance(before, AIMessage) else [message]
    notes = _session_notes(store, thread_id)
    memory = state.get("memory") or {}
    injected = [*_lines(str(memory.get("notes", ""))), *(note.text for note in notes)]
    return Due(chosen, "turn", notes, injected, again={str(message.id) for message in earlier})


def _session(state: State, runtime: Runtime[Context]) -> Due:
    """Return the whole transcript; a model reads what came since the last end of a session that it could read."""
    store, thread_id = store_of(runtime), thread_of(runtime)
    due = session_due(store, thread_id, transcript(store, thread_id, state.get("messages", [])))
    known = store.get(namespaces.SESSIONS, thread_id)
    ended = int(known.value.get("consolidated_turns", 0)) if known else 0
    if ended in _failed_turns(store, thread_id):
        ended = 0
    asked = [str(message.id) for message in due.messages if opens_turn(message)]
    return replace(due, unasked=asked[:ended])


def _unread(store: BaseStore, thread_id: str, messages: Sequence[BaseMessage], turn: int) -> list[BaseMessage]:
    """Return the questions of the last few turns that a model failed to read, one after another up to this turn."""
    asked = [message for message in messages if opens_turn(message)][:-1]
    failed = _failed_turns(store, thread_id) if asked else set()
    count = 0
    while count < min(_READ_AGAIN, len(asked)) and turn - count - 1 in failed:
        count += 1
    return asked[len(asked) - count :]


def _failed_turns(store: BaseStore, thread_id: str) -> set[int]:
    found = store.search(namespaces.ledger(thread_id), filter={"event": "fallback_used"}, limit=_MANY)
    return {
        int(item.value.get("turn", 0))
        for item in found
        if item.value.get("step") == _STEP and item.value.get("used") == _RULES
    }


def _told(due: Due, read: Read, state: State, runtime: Runtime[Context]) -> Told:
    """Return events and writes for what was found."""
    store, thread_id = store_of(runtime), thread_of(runtime)
    events, operations = distilled(
        due.messages,
        thread_id,
        by=due.by,
        notes=due.notes,
        injected=due.injected,
        told=due.told,
        read=read,
        again=due.again,
    )
    if due.by == "turn" and any(isinstance(event, NoteBlocked) for event in events):
        events += filter(None, [restated_blocked(store, thread_id, due.messages[-1], state.get("messages", []))])
    if read.failure:
        events.append(FallbackUsed(step=_STEP, reason=read.failure, used=_RULES))
    if read.refused:
        events.append(FallbackUsed(step=_STEP, reason=refusals(read.refused), used="the other notes"))
    return events, operations


def _failed(error: Exception) -> list[Event]:
    return [FallbackUsed(step=_STEP, reason=type(error).__name__, used="no note")]


def _record(told: Told, state: State, runtime: Runtime[Context]) -> None:
    events, operations = told
    turn = state.get("turns", 0)
    write = runtime.stream_writer
    record(store_of(runtime), thread_of(runtime), events, write=write, turn=turn, operations=operations)


def distilled(
    messages: Sequence[BaseMessage],
    thread_id: str,
    *,
    by: Literal["turn", "session"],
    notes: Sequence[Note] = (),
    injected: Sequence[str] = (),
    told: Collection[str] = (),
    read: Read = _NOTHING_READ,
    again: Collection[str] = (),
) -> Told:
    """Return the events and writes for the notes that the rules, and a model beside them, find in the user's messages.

    Args:
        messages: in order; the assistant's are read only as questions that the user answers.
        thread_id: the thread.
        by: which dial asks.
        notes: session notes so far: what they say of the same message is not noted twice.
        injected: texts of notes that the user saw or may have pasted: they are not learnt again.
        told: ids of notes and messages that were distilled before, whatever became of the notes since.
        read: what a model found.
        again: ids of messages that the rules have read before.
    """
    events: list[Event] = []
    operations: list[PutOp] = []
    for message, question in questioned(messages):
        message_id = str(message.id)
        by_rules = [] if message_id in again else candidates(str(message.text), question=question, known=injected)
        for found in together(read.found.get(message_id, ()), by_rules):
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
    return events, operations


def distilled_session(
    store: BaseStore, thread_id: str, messages: Sequence[BaseMessage], injected: Sequence[str] = ()
) -> Told:
    """Return the events and writes for what the rules find in a whole session and no note has said yet.

    Args:
        store: has the ledger and the session notes of the thread.
        thread_id: the thread.
        messages: the whole transcript, oldest first.
        injected: texts of the user's long-term notes, which are not learnt again.
    """
    due = session_due(store, thread_id, messages, injected)
    return distilled(due.messages, thread_id, by="session", notes=due.notes, injected=injected, told=due.told)


def session_due(store: BaseStore, thread_id: str, messages: Sequence[BaseMessage], injected: Sequence[str] = ()) -> Due:
    """Return what a whole session says and no note has said yet; arguments as in `distilled_session`.

    The ledger knows which messages were distilled, so a note that was deleted or corrected since is
    not learnt again from the words that it came from.
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
    return Due(own, "session", notes, injected, told)


def _session_notes(store: BaseStore, thread_id: str) -> list[Note]:
    return readable(store.search(namespaces.session_notes(thread_id), limit=_MANY))


def _lines(block: str) -> list[str]:
    """Return the texts of a rendered block of notes."""
    return [line.split(": ", 1)[-1].rsplit(" [", 1)[0] for line in block.splitlines() if line.startswith("- ")]
