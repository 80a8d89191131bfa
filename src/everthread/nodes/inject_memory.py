"""Make the plan of the turn: what the agent knows about the user, anew in every run."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.messages import BaseMessage, RemoveMessage
from langchain_core.runnables.config import ensure_config
from langgraph.runtime import Runtime
from langgraph.store.base import GetOp, Item, PutOp

from everthread.errors import SettingsError
from everthread.ledger.events import Event, Injected, NoteBlocked, NoteOverruled, Refetch
from everthread.ledger.record import now, record
from everthread.memory.guard import check, is_safe
from everthread.memory.rules import Rules
from everthread.memory.selection import overruled
from everthread.nodes.deps import NodeDeps, is_nested
from everthread.nodes.node_run import NodeRun
from everthread.nodes.prompt_plan import StoredMemory, make_plan, read_memory, usable_notes
from everthread.nodes.recall import outdated, recall, shared_past
from everthread.nodes.sizes import is_evicted
from everthread.nodes.steering import steer
from everthread.state import Context, PromptPlan, State, Update, namespaces
from everthread.state.agent import OTHERS
from everthread.state.marks import is_new, marked, marked_only, marks, sequence, was_counted
from everthread.storage.recall import passage_of
from everthread.storage.refetches import restated, restated_reads
from everthread.storage.said import last_place, said_operations, said_since_question
from everthread.storage.transcript import message_text
from everthread.window.turns import beginning, opens_turn


def inject_memory(state: State, runtime: Runtime[Context], deps: NodeDeps) -> Update:
    """Make the plan of this turn, and date the new messages: the first node of every run that answers.

    New messages that the transcript has already leave the working set again. The store is asked every time, so a
    correction or an erasure on another thread is effective at once; the head of the prompt moves only when what the
    store says has changed.

    Raises:
        SettingsError: the thread has no message, or is another user's; a bare graph has no guard to find that out.
    """
    run = NodeRun.of(state, runtime, deps)
    context, store, thread_id, messages = run.context, run.store, run.thread_id, run.messages
    if not messages:
        raise SettingsError("there is nothing to answer: send a message of the user, or `end_session` alone")
    memory = read_memory(store, thread_id, context, state.get("summary_id"))
    if _begins_without_checkpoints(run, runtime, memory.session_record):
        run = replace(run, state={**state, "turns": turns_recorded(memory.session_record, messages)})
    arrived = _Arrived.of(run, memory.session_record)
    turn = run.turn + sum(opens_turn(one) and not was_counted(one) for one in arrived.new)
    # Under `ainvoke` this is a thread: the edges, on the event loop, find these counts in the cache.
    deps.model_for(context).counter.sizes(arrived.new)
    shared = shared_past(memory.session_record, turn, messages, len(arrived.new))
    plan = make_plan(memory, messages, store, thread_id, context, deps)
    steered = steer(run, plan, memory.steering, shared)
    passages, recalled = recall(run, plan, shared, steered)
    stale = outdated(messages, usable_notes(memory.long_term, plan.today, deps.rules), store, context.user_id)
    digest = hashlib.sha256("\x00".join((plan.today, plan.profile, plan.notes_block)).encode()).hexdigest()[:8]
    event = Injected(
        changed=digest != state.get("memory_digest"),
        profile=bool(plan.profile),
        note_ids=[note.id for note in plan.notes],
        asked_note_ids=[note.id for note in plan.asked_notes],
        session_note_ids=[note.id for note in plan.session_notes],
        tokens=plan.sizes["profile"] + plan.sizes["notes"],
    )
    # Only when the block has changed: a note that stays blocked is not reported on every turn.
    blocked = _blocked(memory, deps.rules) if event.changed else []
    events = [event, *steered.events, *recalled, *_overruled(plan, arrived.new), *blocked, *arrived.refetches]
    place = sequence(arrived.new[-1] if arrived.new else messages[-1])
    session = _session(memory.session_record, run, is_inside=is_nested(runtime))
    session |= {"turns": turn, "shared": shared, "place": place}
    dated = [_dated(message) for message in arrived.new]
    operations = [
        PutOp(namespaces.SESSIONS, thread_id, session, index=False),
        *arrived.refetch_writes,
        *steered.operations,
        *said_since_question(thread_id, session["user_id"], [one for one in messages if not is_new(one)]),
        *said_operations(thread_id, session["user_id"], dated),
    ]
    record(store, thread_id, events, write=run.write, turn=turn, operations=operations)
    update: Update = {
        **run.plan_update(plan),
        "messages": [
            *(RemoveMessage(id=name) for name in (*arrived.archived_ids, *stale)),
            *steered.changed,
            *dated,
            *passages,
        ],
        "turns": turn,
    }
    if event.changed:
        update["memory_digest"] = digest
    if stale or (event.changed and state.get("memory_digest")):
        update["moved"] = "memory"
    if steered.moved:
        update["moved"] = steered.moved
    if state.get("overflows") or state.get("ceiling") is not None:
        update |= {"overflows": 0, "ceiling": None}
    return update


@dataclass(frozen=True)
class _Arrived:
    """The messages that came with this run."""

    new: Sequence[BaseMessage]
    archived_ids: Sequence[str]
    """Ids of those that the transcript has already: a client may send its whole history again."""
    refetches: Sequence[Refetch]
    """An event for each new message that repeats what had left the prompt."""
    refetch_writes: Sequence[PutOp]
    """Writes after which these are not reported a second time."""

    @classmethod
    def of(cls, run: NodeRun, session: Mapping[str, Any]) -> "_Arrived":
        messages, store, thread_id = run.messages, run.store, run.thread_id
        arrived = list(filter(is_new, messages))
        archive = namespaces.transcript(thread_id)
        reads = restated_reads(thread_id, arrived) if is_evicted(messages) else {}
        items: list[Any] = store.batch([*(GetOp(archive, str(one.id)) for one in arrived), *reads.values()])
        # A long result is archived while it stays in the working set.
        archived_ids = [
            str(item.key)
            for message, item in zip(arrived, items, strict=False)
            if item is not None and item.value.get("why") != "offloaded" and not _is_edited(message, item)
        ]
        refetches, writes = restated(reads, items[len(arrived) :], archived_ids)
        new = [message for message in arrived if message.id not in archived_ids]
        # A place that the thread had before is written over by a fork, and by nobody else.
        is_begun_again = len(new) == len(messages) and _is_newest_of_several(session, new)
        is_fork = session.get("turns", 0) > run.turn + is_begun_again
        if new and not is_fork and new == [*messages[-len(new) :]] and sequence(new[0]) <= session.get("place", -1):
            last = last_place(store, thread_id, run.context.user_id, besides=arrived)
            new = _behind_all(new, last, None if is_begun_again else session.get("question"))
        return cls(new, archived_ids, refetches, writes)


def _is_edited(message: BaseMessage, archived: Item) -> bool:
    """Tell whether a message has other words at its place: an edit, on a branch from before it was archived."""
    is_in_place = archived.value.get("seq") == sequence(message)
    return is_in_place and passage_of(archived).text != message_text(message)


def turns_recorded(session: Mapping[str, Any], sent: Sequence[BaseMessage]) -> int:
    """Return how many turns a thread without checkpoints has had by its record.

    One whose message is sent again may have been killed before its first checkpoint, and is begun again.
    """
    turns: int = session.get("turns") or 0
    is_first_again = turns == 1 and beginning(sent) == session.get("first_message")
    return turns - (is_first_again or _is_newest_of_several(session, sent))


def _is_newest_of_several(session: Mapping[str, Any], sent: Sequence[BaseMessage]) -> bool:
    """Tell whether the last of these messages is the newest question of a record, and not its first."""
    return bool(sent) and session.get("turns", 0) > 1 and session.get("question") == sent[-1].id


def _begins_without_checkpoints(run: NodeRun, runtime: Runtime[Context], session: Mapping[str, Any]) -> bool:
    """Tell whether the thread has no checkpoint ahead of this run's own: it is new, or an app has deleted them.

    A fork from the beginning is a later step, and so is the message of a killed run when it is sent again. The guard
    looks ahead of the run, also where other nodes come first.
    An app that keeps no checkpoints sends the turns before again, and they are counted as they come.
    """
    step = ensure_config().get("metadata", {}).get("langgraph_step")
    is_ahead = step == 1 or _is_newest_of_several(session, run.messages)
    return is_ahead and not run.turn and sum(map(opens_turn, run.messages)) == 1 and not is_nested(runtime)


def _behind_all(new: Sequence[BaseMessage], last: int, question: str | None) -> list[BaseMessage]:
    """Return messages in places behind this one: a caller removed others, and the reducer goes on from those left.

    Args:
        question: id of the question before, which the first of them follows where the caller left no other.
    """
    shift = max(0, last + 1 - sequence(new[0]))
    placed = [marked(message, seq=sequence(message) + shift) for message in new]
    return [marked(placed[0], previous=marks(placed[0]).get("previous") or question), *placed[1:]]


def _session(before: Mapping[str, Any], run: NodeRun, *, is_inside: bool) -> dict[str, Any]:
    """Return the session record of the thread as of this turn, without what only the turn knows."""
    user_id, agent, messages = run.context.user_id, run.deps.agent, run.messages
    return {
        "thread_id": run.thread_id,
        # Inside a guarded graph whose runs name nobody, the thread stays nobody's.
        "user_id": before.get("user_id", user_id) if is_inside else user_id,
        # Of an agent with our middleware, the guard alone knows the name.
        "agent": before.get("agent", OTHERS) if agent.name == OTHERS else agent.name,
        "first_message": before.get("first_message") or beginning(messages),
        "began": before.get("began") or now(),
        "last_activity": now(),
        # A fork has fewer turns behind it than the branch whose session ended; no end of a session has seen its own.
        "consolidated_turns": min(before.get("consolidated_turns", 0), run.turn),
        **({"read_turns": min(before["read_turns"], run.turn)} if "read_turns" in before else {}),
        "question": messages[-1].id,
        # For those who see to retention and do not have the agent.
        **({} if agent.retention is None else {"retention": agent.retention.as_json()}),
    }


def _dated(message: BaseMessage) -> BaseMessage:
    """Return a message that arrived with its date, and without marks that only we may give."""
    ours = {key: value for key, value in marks(message).items() if key in ("seq", "previous")}
    return marked_only(message, {**ours, "at": now()})


def _blocked(memory: StoredMemory, rules: Rules) -> list[Event]:
    """Return an event for each stored note that the guard keeps out of the prompt."""
    events: list[Event] = []
    for note in (*memory.long_term, *memory.session):
        if note.status == "active" and not is_safe(note.text, rules, is_own=note.quotes_user):
            verdict = check(note.text, rules=rules, is_own=note.quotes_user)
            events.append(NoteBlocked(category=verdict.category, rule=verdict.rule, message_ids=note.message_ids))
    return events


def _overruled(plan: PromptPlan, new: Sequence[BaseMessage]) -> list[Event]:
    """Return an event when the user has just said otherwise than the notes in the prompt: the user wins."""
    said = "\n".join(str(message.text) for message in new if opens_turn(message))
    shown = [*plan.notes, *plan.asked_notes, *plan.session_notes]
    ids = [note.id for note in overruled(shown, said)] if said and shown else []
    return [NoteOverruled(note_ids=ids, message_id=str(new[-1].id))] if ids else []
