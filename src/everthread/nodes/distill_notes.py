"""Make session notes from the turn that has just ended."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from langchain_core.messages import AIMessage, BaseMessage
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore, PutOp

from everthread.ledger.events import Event, FallbackUsed, NoteBlocked, NoteSaved
from everthread.ledger.record import events as ledger_events
from everthread.ledger.record import now
from everthread.memory.capture import capture
from everthread.memory.distill import candidates, covers, keywords
from everthread.memory.distill.proposals import refusals, together
from everthread.memory.guard import Verdict
from everthread.memory.rules import BUILT_IN, Rules
from everthread.memory.text.own_words import is_typed
from everthread.models.calls import ModelCalls
from everthread.nodes.deps import NodeDeps
from everthread.nodes.distiller import Read, questioned, read_with_model
from everthread.nodes.node_run import NodeRun
from everthread.nodes.prompt_plan import readable
from everthread.nodes.second_opinion import second_opinion
from everthread.nodes.spending import metered
from everthread.state import Context, Note, PromptPlan, Source, State, Update, namespaces
from everthread.state.marks import is_synthetic, marks
from everthread.storage.refetches import restated_blocked
from everthread.storage.transcript import transcript
from everthread.window.turns import opens_turn, question_of

_MANY = 1_000
_STEP = "distill_notes"
_RULES = "rules"
"""What is used when a model could not read the messages at all; the next run lets it read them again."""

_NOTHING = "no note"
"""What is used when a model did not judge the notes that were found; the next run asks it again."""

_READ_AGAIN = 3
"""Earlier turns that are read again at the most."""

_NOTHING_READ = Read()


@metered
def distill_notes(state: State, runtime: Runtime[Context], deps: NodeDeps) -> ModelCalls[Update]:
    """Save what the user's message says about preferences, when the `turn` dial is on.

    With the `tool` dial the model saves notes itself while it answers; what such a note says is not
    distilled a second time. With the dial `distiller` a model reads the message beside the rules, and with
    the dial `guard` one has to allow each note after them. A failure leaves an event and never fails the turn.
    """
    run = NodeRun.of(state, runtime, deps)
    plan = run.plan()
    if question_of(run.messages) is not None:
        yield from _distill(run, lambda: _turn_due(run, plan))
    return run.plan_update(plan)


def distill_session(run: NodeRun) -> ModelCalls[None]:
    """Save what the whole session says, when the `session` dial is on; it never fails the end of a session."""
    if "session" in run.context.distillation:
        yield from _distill(run, lambda: _session_due(run))


def _distill(run: NodeRun, read_due: Callable[[], "Due"]) -> ModelCalls[None]:
    """Let the rules, and a model when the dial says so, read what is due, and save the notes.

    Whatever fails on the way, `read_due` included, becomes an event.
    """
    context, deps = run.context, run.deps
    events: list[Event]
    operations: list[PutOp]
    try:
        due, read = read_due(), Read()
        if _asks_model(run):
            known = list(dict.fromkeys((*due.injected, *(note.text for note in due.notes))))
            skip = {*due.done, *due.read_by_model}
            seconds = context.opinion_seconds
            read = yield from read_with_model(deps.summarizer, due.messages, skip=skip, known=known, seconds=seconds)
        found = captured(due, run.thread_id, read, deps.rules)
        opinions: dict[str, Verdict] = {}
        if context.guard == "model":
            allowed = [one.note for one in found if one.note is not None]
            verdicts = yield from second_opinion(allowed, context, deps)
            opinions = {note.id: verdict for note, verdict in zip(allowed, verdicts, strict=True)}
        events, operations = settled(found, due.by, opinions)
        if due.by == "turn" and any(isinstance(event, NoteBlocked) for event in events):
            said_before = restated_blocked(run.store, run.thread_id, due.messages[-1], run.messages)
            events += [said_before] if said_before else []
        if read.failure:
            events.append(FallbackUsed(step=_STEP, reason=read.failure, used=_RULES))
        if read.refused:
            events.append(FallbackUsed(step=_STEP, reason=refusals("notes", read.refused), used="the other notes"))
        if unjudged := [verdict.rule for verdict in opinions.values() if verdict.category == "unreadable"]:
            events.append(FallbackUsed(step=_STEP, reason=f"guard: {unjudged[0]}", used=_NOTHING))
    except Exception as error:  # noqa: BLE001 - a note is never worth a turn
        events, operations = [FallbackUsed(step=_STEP, reason=type(error).__name__, used=_NOTHING)], []
    run.record(events, operations)


def _asks_model(run: NodeRun) -> bool:
    return run.context.distiller == "model" and run.deps.writes_summaries


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
    done: Collection[str] = ()
    """Ids of notes and messages that were distilled before, whatever became of the notes since."""
    read_by_rules: Collection[str] = ()
    """Ids of messages whose notes the rules saved in an earlier turn; the model failed then, and only it reads them."""
    read_by_model: Collection[str] = ()
    """Ids of messages that the model read before; only the rules read them now."""


@dataclass(frozen=True)
class Captured:
    """A note that was found in a message."""

    message_id: str
    note: Note | None
    """None when the rules refuse it."""
    verdict: Verdict
    """Of the rules."""
    writes: Sequence[PutOp]


def _turn_due(run: NodeRun, plan: PromptPlan) -> Due:
    """Return the turn's question, and those ahead of it that a model could not read or whose notes it did not judge."""
    messages = run.messages
    question = question_of(messages)
    unread = _failed_turns(run, _RULES) if _asks_model(run) else set()
    unjudged = _failed_turns(run, _NOTHING) if run.context.guard == "model" else set()
    earlier = _failed_earlier(messages, run.turn, unread | unjudged)
    chosen: list[BaseMessage] = []
    for place, message in enumerate(messages):
        if message is question or message.id in earlier:
            # Ahead of a question there may be the anchor, which is no question to this answer.
            before = messages[place - 1] if place else None
            chosen += [before, message] if isinstance(before, AIMessage) else [message]
    notes = _session_notes(run.store, run.thread_id)
    injected = [note.text for note in (*plan.notes, *notes)]
    read_by_rules = {name for name, turn in earlier.items() if turn not in unjudged}
    return Due(chosen, "turn", notes, injected, read_by_rules=read_by_rules)


def _session_due(run: NodeRun) -> Due:
    """Return the whole transcript; a model reads what came since the last end of a session that it could read."""
    store, thread_id = run.store, run.thread_id
    due = session_due(store, thread_id, transcript(store, thread_id, run.messages))
    session = store.get(namespaces.SESSIONS, thread_id)
    ended = int(session.value.get("read_turns", 0)) if session else 0
    if ended in _failed_turns(run, _RULES, _NOTHING):
        ended = 0
    asked = [str(message.id) for message in due.messages if opens_turn(message)]
    return replace(due, read_by_model=asked[:ended])


def _failed_earlier(messages: Sequence[BaseMessage], turn: int, failed: Collection[int]) -> dict[str, int]:
    """Return ids and turns of the questions of the last few turns that failed, one after another up to this turn."""
    asked = [str(message.id) for message in messages if opens_turn(message)][:-1]
    count = 0
    while count < min(_READ_AGAIN, len(asked)) and turn - count - 1 in failed:
        count += 1
    return {asked[-back]: turn - back for back in range(1, count + 1)}


def _failed_turns(run: NodeRun, *used: str) -> set[int]:
    """Return the turns in which a model failed, so that something was used instead."""
    found = run.store.search(namespaces.ledger(run.thread_id), filter={"event": "fallback_used"}, limit=_MANY)
    return {
        int(item.value.get("turn", 0))
        for item in found
        if item.value.get("step") == _STEP and item.value.get("used") in used
    }


def captured(due: Due, thread_id: str, read: Read = _NOTHING_READ, rules: Rules = BUILT_IN) -> list[Captured]:
    """Return the notes that the rules, and a model beside them, find in the user's messages."""
    found: list[Captured] = []
    for message, question in questioned(due.messages):
        message_id = str(message.id)
        by_rules = (
            []
            if message_id in due.read_by_rules
            else candidates(str(message.text), question=question, known=due.injected, rules=rules)
        )
        for candidate in together(read.found.get(message_id, ()), by_rules):
            said = (covers(note, candidate, message_id) for note in due.notes if note.id not in due.done)
            if message_id in due.done or any(said):
                continue
            note, verdict, writes = capture(
                candidate.text,
                keywords(candidate.quote),
                scope=candidate.scope,
                source=Source(thread_id=thread_id, message_ids=(message_id,), quote=candidate.quote),
                date=str(marks(message).get("at") or now()[:10]),
                salt=message_id,
                kind=candidate.kind,
                subject=candidate.subject,
                confidence=candidate.confidence,
                origin="user",
                is_own=is_typed(str(message.text)),
                rules=rules,
            )
            if note is None or note.id not in due.done:
                found.append(Captured(message_id, note, verdict, writes))
    return found


def settled(
    found: Iterable[Captured], by: Literal["turn", "session"], opinions: Mapping[str, Verdict] | None = None
) -> tuple[list[Event], list[PutOp]]:
    """Return the events of the notes that were found, and the writes of those that are kept.

    Args:
        by: when they were found.
        opinions: what a model says, by note id; empty when none was asked.
    """
    events: list[Event] = []
    operations: list[PutOp] = []
    for one in found:
        opinion = (opinions or {}).get(one.note.id) if one.note else None
        guard: Literal["rules", "model"] = "rules" if opinion is None else "model"
        verdict = opinion or one.verdict
        ids = [one.message_id]
        if one.note is None or not verdict.allowed:
            events.append(NoteBlocked(category=verdict.category, rule=verdict.rule, message_ids=ids, guard=guard))
        else:
            operations += one.writes
            note = one.note
            events.append(
                NoteSaved(note_id=note.id, scope=note.scope, kind=note.kind, by=by, message_ids=ids, guard=guard)
            )
    return events, operations


def session_due(store: BaseStore, thread_id: str, messages: Sequence[BaseMessage]) -> Due:
    """Return what a whole session, its transcript oldest first, says and no note has said yet.

    The ledger knows which messages were distilled, so a note that was deleted or corrected since is
    not learnt again from the words that it came from.
    """
    notes = _session_notes(store, thread_id)
    alive = {note.id for note in notes}
    done: set[str] = set()
    for event in ledger_events(store, thread_id):
        if isinstance(event, NoteSaved):
            done.add(event.note_id)
            if event.note_id not in alive or event.by == "session":
                done.update(event.message_ids)
        elif isinstance(event, NoteBlocked) and not event.is_unjudged:
            done.update(event.message_ids)
    own = [message for message in messages if not is_synthetic(message)]
    return Due(own, "session", notes, done=done)


def _session_notes(store: BaseStore, thread_id: str) -> list[Note]:
    return readable(store.search(namespaces.session_notes(thread_id), limit=_MANY))
