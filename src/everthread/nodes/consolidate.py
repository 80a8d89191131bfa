"""End a session: session notes become long-term notes or go, all in one write."""

import hashlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast

from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore, PutOp
from langgraph.types import StreamWriter
from pydantic import BaseModel

from everthread.errors import ThreadBusyError
from everthread.ledger.events import (
    Consolidated,
    Event,
    FallbackUsed,
    MemoryFull,
    NoteBlocked,
    NoteExpired,
    NoteMerged,
    NotePromoted,
    NoteSuperseded,
)
from everthread.ledger.record import now, record
from everthread.memory.consolidate import (
    MEMORY_FULL,
    MOST_NOTES,
    Numbered,
    Plan,
    Proposal,
    Settled,
    Step,
    approved,
    given_back,
    held_back,
    numbered,
    operations,
    plan,
    read_proposal,
    refused_notes,
    released,
    settle,
    to_judge,
    validated,
)
from everthread.memory.distill.proposals import refusals
from everthread.memory.guard import Verdict
from everthread.models.calls import ModelCalls, make_calls
from everthread.models.wrapped import ChatModel
from everthread.nodes.deps import Lock, NodeDeps
from everthread.nodes.distill_notes import distill_session
from everthread.nodes.node_run import NodeRun
from everthread.nodes.prompt_plan import checked_session, readable
from everthread.nodes.second_opinion import second_opinion
from everthread.nodes.spending import metered
from everthread.nodes.structured_output import asked
from everthread.prompts import render
from everthread.state import Context, Note, State, Update, namespaces
from everthread.state.records import items
from everthread.storage.said import said_since_question

_MOST_SAVED = 5_000
KEPT = "notes kept as is"
"""What a consolidation falls back to when no plan could be chosen."""


@dataclass(frozen=True)
class NotesSnapshot:
    """What the store has of a user and a thread at one moment: what a consolidation decides on."""

    session: list[Note]
    """Session notes in the order in which they were saved."""
    long_term: list[Note]
    profile: dict[str, Any] | None
    provenance: dict[str, Any]
    """Which fields of the profile came from notes."""
    version: str
    """Digest of both lists: another one means that somebody wrote meanwhile."""
    judged: frozenset[str] = frozenset()
    """Ids of session notes that a model allowed when they were saved."""
    unreadable: int = 0
    """Session notes that cannot be read; they stay where they are."""


@dataclass(frozen=True)
class SessionEnd:
    """The end of one session: where, whose, and who may propose."""

    store: BaseStore
    thread_id: str
    user_id: str
    write: StreamWriter
    turn: int
    model: ChatModel | None = None
    """Proposes a plan; None: the rules decide."""
    schema: type[BaseModel] | None = None
    """The agent's profile, for promotion; None promotes nothing."""
    said: Sequence[PutOp] = ()
    """Writes of what the session said last; see `storage.said`."""
    judge: Callable[[Sequence[Note]], ModelCalls[list[Verdict]]] | None = None
    """Has to allow what becomes long-term and what no model has judged; None: the rules decide."""
    reads: bool = False
    """The messages were read for notes before."""
    today: str = field(default_factory=lambda: now()[:10])
    """The ISO day of all that it decides, also when midnight comes in between."""


@dataclass(frozen=True)
class Proposed:
    """What a model said about the notes that were read."""

    seen: NotesSnapshot
    shown: Numbered | None
    """The notes that it saw; None: it was not asked for a plan."""
    steps: Sequence[Step]
    failure: str
    """Why there are no steps."""
    opinions: Mapping[str, Verdict]
    """Its second opinion, by note id."""


@metered
def consolidate(state: State, runtime: Runtime[Context], deps: NodeDeps) -> ModelCalls[Update]:
    """Merge the session notes into the long-term notes and clear them, all in one write.

    A model may propose the plan; every step of it is checked, and what fails is decided by the rules. With the dial
    `guard` a model has to allow what becomes long-term, unless one has done so already.
    A failure keeps old and new notes as they are and leaves an event; the next end of a session tries
    again.
    """
    run = NodeRun.of(state, runtime, deps)
    context = run.context
    session = checked_session(run.store, run.thread_id, context)
    yield from distill_session(run)
    ending = SessionEnd(
        store=run.store,
        thread_id=run.thread_id,
        user_id=context.user_id,
        write=run.write,
        turn=run.turn,
        model=deps.summarizer if deps.writes_summaries else None,
        schema=deps.agent.profile,
        said=said_since_question(run.thread_id, session.get("user_id", ""), run.messages),
        judge=partial(second_opinion, context=context, deps=deps) if context.guard == "model" else None,
        reads="session" in context.distillation,
    )
    yield from _consolidate(ending)
    # `turns` is unchanged, but a run that writes no output key returns None to its caller.
    return {"end_session": False, "turns": run.turn}


def end_session(ending: SessionEnd) -> None:
    """Consolidate the session notes of a thread that is not run, so that a live turn on it is safe."""
    make_calls(_consolidate(ending), {})


def preview(store: BaseStore, thread_id: str, user_id: str) -> Plan:
    """Return what the rules would do if the session ended now; nothing is written."""
    seen = read_notes(store, thread_id, user_id)
    return plan(seen.session, seen.long_term, now()[:10])


def read_notes(store: BaseStore, thread_id: str, user_id: str) -> NotesSnapshot:
    """Read profile and notes of the user, and session notes of the thread."""
    session = items(store, namespaces.session_notes(thread_id))
    long_term = items(store, namespaces.notes(user_id))
    saved = store.search(namespaces.ledger(thread_id), filter={"event": "note_saved"}, limit=_MOST_SAVED)
    # The ledger's keys are exact in time; the store's own times are whole seconds.
    order = {str(item.value.get("note_id")): item.key for item in sorted(saved, key=lambda item: item.key)}
    notes = sorted(readable(session), key=lambda note: (order.get(note.id, ""), note.id))
    profile = store.get(namespaces.profile(user_id), "profile")
    promoted = store.get(promotions(user_id), "fields")
    values = [[item.key, item.value] for item in sorted((*session, *long_term), key=lambda item: item.key)]
    return NotesSnapshot(
        session=notes,
        long_term=readable(long_term),
        profile=dict(profile.value) if profile else None,
        provenance=dict(promoted.value) if promoted else {},
        judged=frozenset(str(item.value.get("note_id")) for item in saved if item.value.get("guard") == "model"),
        version=hashlib.sha256(json.dumps(values, sort_keys=True, default=str).encode()).hexdigest(),
        unreadable=len(session) - len(notes),
    )


def lock_of(store: BaseStore) -> Lock:
    """Return what holds a key: across processes with a store of ours, in this process with any other."""
    locks: Any = getattr(store, "locks", None)
    return _in_process if locks is None else cast(Lock, locks.hold)


@contextmanager
def _in_process(key: str) -> Iterator[None]:
    """Hold a key among the threads of this process."""
    with _STRIPES[hash(key) % len(_STRIPES)]:
        yield


_STRIPES = [threading.Lock() for _ in range(64)]


def _consolidate(ending: SessionEnd) -> ModelCalls[None]:
    """Let a model propose a plan, without holding the user's notes meanwhile; then apply it, or that of the rules."""
    seen = read_notes(ending.store, ending.thread_id, ending.user_id)
    shown = _worth_asking(seen, ending)
    steps: Sequence[Step] | None = None
    failure, opinions = "", {}
    if shown is not None and ending.model is not None:
        steps, failure = yield from asked(ending.model, Proposal, _request(shown, ending.today), read_proposal)
    steps = steps or []
    if ending.judge is not None:
        notes = to_judge(seen.session, seen.judged, steps, shown, ending.today)
        verdicts = yield from ending.judge(notes)
        opinions = {note.id: verdict for note, verdict in zip(notes, verdicts, strict=True)}
        steps = approved(steps, shown, opinions)
    _apply(ending, Proposed(seen, shown, steps, failure, opinions))


def _worth_asking(seen: NotesSnapshot, ending: SessionEnd) -> Numbered | None:
    """Return the notes to show to the model; None when there is no model, or nothing that the rules cannot decide.

    A note that stands alone has nothing to be merged with, and one that says the same as another merges by rules.
    """
    if ending.model is None:
        return None
    try:
        shown = numbered(seen.session, seen.long_term, ending.today)
        added = plan(seen.session, seen.long_term, ending.today).added
    except Exception:  # noqa: BLE001 - the rules will fail in the same way, and say so in an event
        return None
    return shown if added and len(shown.session) + len(shown.long_term) > 1 else None


def _request(shown: Numbered, today: str) -> str:
    long_term, session = shown.lines(shown.long_term), shown.lines(shown.session)
    return render("consolidate", today=today, long_term=long_term, session=session)


def _apply(ending: SessionEnd, proposed: Proposed) -> None:
    """Read again, decide and write, while nobody else changes the user's notes."""
    try:
        with lock_of(ending.store)(namespaces.user_key(ending.user_id)):
            fresh = read_notes(ending.store, ending.thread_id, ending.user_id)
            _record(ending, *_events_and_writes(ending, fresh, proposed))
    except ThreadBusyError:
        _record(ending, [FallbackUsed(step="consolidate", reason="ThreadBusyError", used=KEPT)], [])


def _events_and_writes(ending: SessionEnd, fresh: NotesSnapshot, proposed: Proposed) -> tuple[list[Event], list[PutOp]]:
    """Return events and writes; those of a failure when the plan cannot be made at all."""
    try:
        refused: Mapping[str, Verdict] = {}
        if ending.judge is not None:
            refused = refused_notes(fresh.session, fresh.judged, proposed.opinions, ending.today)
        allowed = replace(fresh, session=[note for note in fresh.session if note.id not in refused])
        chosen, failure = _planned(allowed, proposed, ending.today)
        settled = settle(chosen.after(), fresh.profile, fresh.provenance, ending.schema, ending.today)
        chosen = held_back(chosen, [note for note in fresh.session if note.id in refused], refused)
    except Exception as error:  # noqa: BLE001 - notes are kept, and the session is ended at the next try
        return [FallbackUsed(step="consolidate", reason=type(error).__name__, used=KEPT)], []
    events: list[Event] = [FallbackUsed(step="consolidate", reason=failure, used="rules")] if failure else []
    if fresh.unreadable:
        events.append(FallbackUsed(step="consolidate", reason=f"{fresh.unreadable} unreadable notes", used=KEPT))
    events += [*_blocked(fresh, proposed), *_events(chosen, settled)]
    writes = [
        *operations(chosen, ending.user_id, ending.thread_id, settled.notes),
        *_profile_writes(ending.user_id, fresh, settled),
        # Only a consolidated session is closed, so that a sweep comes back to one that was not.
        *([] if chosen.kept or fresh.unreadable else _session_closed(ending)),
    ]
    return events, writes


def _blocked(fresh: NotesSnapshot, proposed: Proposed) -> list[Event]:
    """Return the events of what a model did not allow."""
    notes = {note.id: note for note in (*fresh.session, *fresh.long_term)}
    events: list[Event] = []
    for name, verdict in proposed.opinions.items():
        note = notes.get(name.partition("/")[0])
        if note is not None and not verdict.allowed:
            events.append(
                NoteBlocked(category=verdict.category, rule=verdict.rule, message_ids=note.message_ids, guard="model")
            )
    return events


def _planned(fresh: NotesSnapshot, proposed: Proposed, today: str) -> tuple[Plan, str]:
    """Return the plan, and why the model's proposal was not taken as a whole."""
    by_rules = plan(fresh.session, fresh.long_term, today)
    if proposed.shown is None:
        return by_rules, ""
    if fresh.version != proposed.seen.version:
        return by_rules, "the notes changed meanwhile"
    if proposed.failure:
        return by_rules, proposed.failure
    chosen = validated(proposed.steps, proposed.shown, fresh.session, fresh.long_term, today)
    return chosen, refusals("steps", chosen.refused.values())


def _events(chosen: Plan, settled: Settled) -> list[Event]:
    merged = [
        NoteMerged(note_id=note_id, into=note.id) for note_id, note in chosen.merged.items() if note_id != note.id
    ]
    superseded = [NoteSuperseded(note_id=note_id, by=by) for note_id, by in chosen.superseded.items()]
    expired = [NoteExpired(note_id=note_id, reason=reason) for note_id, reason in chosen.expired.items()]
    promoted = [NotePromoted(note_id=one.note_id, field=one.field) for one in settled.promoted]
    taken = [NotePromoted(note_id=one.note_id, field=one.field, taken_back=True) for one in settled.reverted]
    no_room = sorted(name for name, reason in chosen.kept.items() if reason == MEMORY_FULL)
    full = [MemoryFull(note_ids=no_room, limit=MOST_NOTES)] if no_room else []
    done = Consolidated(
        added=[note.id for note in chosen.added],
        merged=sorted(chosen.merged),
        superseded=sorted(chosen.superseded),
        dropped=chosen.dropped,
        expired=chosen.expired,
        marked=chosen.marked,
        kept=chosen.kept,
        planner=chosen.planner,
    )
    return [*expired, *merged, *superseded, *taken, *promoted, *full, done]


def _profile_writes(user_id: str, fresh: NotesSnapshot, settled: Settled) -> list[PutOp]:
    writes = []
    if settled.profile != (fresh.profile or {}):
        writes.append(PutOp(namespaces.profile(user_id), "profile", settled.profile, index=False))
    if settled.provenance != fresh.provenance:
        writes.append(PutOp(promotions(user_id), "fields", settled.provenance or None, index=False))
    return writes


def promotions(user_id: str) -> namespaces.Namespace:
    """Namespace of which fields of the profile came from notes; its only key is `fields`."""
    return namespaces.user(user_id, "promotions")


def changed_by_hand(store: BaseStore, user_id: str, changed: Mapping[str, Note]) -> list[PutOp]:
    """Return the writes of a correction by hand, with the fields of the profile that it takes back.

    Args:
        store: where the notes are; the caller holds the user's key.
        changed: long-term notes as they are from now on, by id.
    """
    fresh = read_notes(store, "", user_id)
    notes = {**{note.id: note for note in fresh.long_term}, **changed}
    settled = released(notes, fresh.profile or {}, fresh.provenance)
    writes = [PutOp(namespaces.notes(user_id), note.id, note.value(), index=None) for note in changed.values()]
    return [*writes, *_profile_writes(user_id, fresh, settled)]


def imported(store: BaseStore, user_id: str, profile: Mapping[str, Any]) -> list[PutOp]:
    """Return the writes of a profile from a trusted system: all its fields are that system's from now on."""
    fresh = read_notes(store, "", user_id)
    notes = given_back({note.id: note for note in fresh.long_term}, profile)
    return [
        PutOp(namespaces.profile(user_id), "profile", dict(profile), index=False),
        PutOp(promotions(user_id), "fields", None),
        *(PutOp(namespaces.notes(user_id), note.id, note.value(), index=None) for note in notes.values()),
    ]


def _record(ending: SessionEnd, events: Sequence[Event], writes: Sequence[PutOp]) -> None:
    operations = [*writes, *ending.said]
    record(ending.store, ending.thread_id, events, write=ending.write, turn=ending.turn, operations=operations)


def _session_closed(ending: SessionEnd) -> list[PutOp]:
    """Note in the session's record up to which turn it is consolidated, and read for notes."""
    item = ending.store.get(namespaces.SESSIONS, ending.thread_id)
    if item is None:
        return []
    turns = item.value.get("turns", 0)
    value = {**item.value, "consolidated_turns": turns, "consolidated_at": now()}
    if ending.reads:
        value["read_turns"] = turns
    return [PutOp(namespaces.SESSIONS, ending.thread_id, value, index=None)]
