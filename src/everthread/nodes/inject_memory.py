"""Resolve what the agent knows about the user, anew in every run."""

import hashlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from langchain_core.messages import BaseMessage, RemoveMessage
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore, GetOp, Item, PutOp, SearchOp
from pydantic import ValidationError

from everthread.errors import SettingsError
from everthread.ledger.events import Event, Injected, NoteBlocked, NoteOverruled, Regret
from everthread.ledger.record import now, record
from everthread.memory.guard import check, is_safe
from everthread.memory.rendering import render_notes, render_profile
from everthread.memory.selection import chosen, holding, overruled, within
from everthread.nodes.recalling import recall, shared_past
from everthread.nodes.wiring import Wiring, context_of, is_evicted, store_of, thread_of
from everthread.state import Context, Memory, Note, State, Update, namespaces
from everthread.state.marks import MARK, marks, sequence
from everthread.storage.regrets import restated, restated_reads
from everthread.storage.summaries import get_operation
from everthread.storage.transcript import archived_by_id
from everthread.window.tokens import TokenCounter
from everthread.window.turns import opens_turn

logger = logging.getLogger(__name__)

_MANY = 1_000


def inject_memory(state: State, runtime: Runtime[Context], wiring: Wiring) -> Update:
    """Render profile and notes for this run, and date the new messages.

    The store is asked every time, so a correction or an erasure on another thread is effective at
    once; the head of the prompt moves only when what was found has changed.

    Raises:
        SettingsError: the thread has no message.
    """
    context, store, thread_id = context_of(runtime), store_of(runtime), thread_of(runtime)
    messages = state.get("messages", [])
    if not messages:
        raise SettingsError("there is nothing to answer: send a message of the user, or `end_session` alone")
    known = _known(state, store, thread_id, context, wiring)
    turn = state.get("turns", 0) + sum(map(opens_turn, known.new))
    memory, digest = known.memory, _digest(known.memory)
    shared = shared_past(known.session, turn, messages, len(known.new))
    at_hand: State = {**state, "memory": memory, "summary": known.summary}
    passages, recalled = recall(at_hand, store, thread_id, context, wiring, shared)
    memory["recalled"] = _beside(memory, passages)
    event = Injected(
        changed=digest != state.get("memory_digest"),
        profile=bool(memory["profile"]),
        note_ids=memory["note_ids"],
        asked_note_ids=memory["asked_note_ids"],
        session_note_ids=[str(note["id"]) for note in memory["session_notes"]],
        tokens=wiring.counter(context).text(memory["profile"] + memory["notes"]),
    )
    events: list[Event] = [event, *([recalled] if recalled else []), *_overruled(known.shown, known.new)]
    if event.changed:
        # Only when the block is new: a note that stays refused is no news on every turn.
        events += _refused(known.stored)
    events += known.said_again.values()
    session = _session(known.session, thread_id, context, wiring, turn, shared) | {"question": messages[-1].id}
    operations = [PutOp(namespaces.SESSIONS, thread_id, session, index=False), *known.forgotten]
    record(store, thread_id, events, write=runtime.stream_writer, turn=turn, operations=operations)
    moved = "memory" if state.get("memory_digest") and event.changed else state.get("moved", "")
    return {
        "messages": [*(RemoveMessage(id=known_id) for known_id in known.again), *map(_dated, known.new)],
        "moved": moved,
        "memory": memory,
        "summary": known.summary,
        "memory_digest": digest,
        "turns": turn,
        "overflows": 0,
        "ceiling": None,
    }


@dataclass(frozen=True)
class _Known:
    """What the store has on the user and the thread of a run."""

    session: dict[str, Any]
    memory: Memory
    summary: dict[str, Any] | None
    shown: Sequence[Note]
    """Notes of the prompt."""
    stored: Sequence[Sequence[Item]]
    """Long-term and session notes as they were read."""
    new: Sequence[BaseMessage]
    """Messages that came with this run."""
    again: Sequence[str]
    """Ids of those that the transcript has already: a client may send its whole history again."""
    said_again: Mapping[str, Regret]
    """Of new messages that say what has left the prompt."""
    forgotten: Sequence[PutOp]
    """Writes after which these are no news."""


def _known(state: State, store: BaseStore, thread_id: str, context: Context, wiring: Wiring) -> _Known:
    messages = state["messages"]
    arrived = [message for message in messages if "at" not in marks(message)]
    asked = _reads(thread_id, context, state.get("summary_id"))
    archive = namespaces.transcript(thread_id)
    looked_up = [GetOp(namespaces.SESSIONS, thread_id), *(GetOp(archive, str(message.id)) for message in arrived)]
    left = restated_reads(thread_id, arrived) if is_evicted(messages) else {}
    found: list[Any] = store.batch([*asked, *looked_up, *left.values()])
    told, session, rest = found[: len(asked)], found[len(asked)], found[len(asked) + 1 :]
    again = [str(item.key) for item in rest[: len(arrived)] if item is not None]
    said_again, forgotten = restated(left, rest[len(arrived) :], again)
    memory, summary, shown = _rendered(told, store, thread_id, context, wiring.counter(context), messages)
    new = [message for message in arrived if message.id not in again]
    return _Known(
        _own(session, thread_id, context), memory, summary, shown, told[2:4], new, again, said_again, forgotten
    )


def _dated(message: BaseMessage) -> BaseMessage:
    """Return a message that arrived with its date, and without marks that only we may give."""
    ours = {key: value for key, value in marks(message).items() if key in ("seq", "previous")}
    kwargs = {**message.additional_kwargs, MARK: {**ours, "at": now()}}
    return message.model_copy(update={"additional_kwargs": kwargs})


def resolved(state: State, runtime: Runtime[Context], wiring: Wiring) -> Update:
    """Return what a run needs that no checkpoint has; empty when `inject_memory` ran in this run.

    A run that resumes after an interrupt or a crash begins in the middle of the graph.
    """
    if "memory" in state:
        return {}
    context, store, thread_id = context_of(runtime), store_of(runtime), thread_of(runtime)
    messages = state.get("messages", [])
    memory, summary = resolve(
        store, thread_id, context, wiring.counter(context), state.get("summary_id"), messages=messages
    )
    at_hand: State = {**state, "memory": memory, "summary": summary}
    shared = own_session(store, thread_id, context).get("shared")
    passages, _ = recall(at_hand, store, thread_id, context, wiring, shared)
    memory["recalled"] = _beside(memory, passages)
    return {"memory": memory, "summary": summary}


def resolve(
    store: BaseStore,
    thread_id: str,
    context: Context,
    counter: TokenCounter,
    summary_id: str | None = None,
    *,
    messages: Sequence[BaseMessage] = (),
) -> tuple[Memory, dict[str, Any] | None]:
    """Read profile and notes of the user, session notes and summary of the thread, and render the notes.

    Args:
        store: the run's store.
        thread_id: whose session notes are read.
        context: user and `notes_tokens`.
        counter: counts tokens.
        summary_id: name of the thread's summary.
        messages: the working set, to tell the notes of this branch from those of a branch that a fork left.
    """
    found = store.batch(_reads(thread_id, context, summary_id))
    memory, summary, _ = _rendered(found, store, thread_id, context, counter, messages)
    return memory, summary


def _reads(thread_id: str, context: Context, summary_id: str | None) -> list[GetOp | SearchOp]:
    return [
        get_operation(thread_id, summary_id or ""),
        GetOp(namespaces.profile(context.user_id), "profile"),
        SearchOp(namespaces.notes(context.user_id), limit=_MANY),
        SearchOp(namespaces.session_notes(thread_id), limit=_MANY),
    ]


def _rendered(
    found: Sequence[Any],
    store: BaseStore,
    thread_id: str,
    context: Context,
    counter: TokenCounter,
    messages: Sequence[BaseMessage],
) -> tuple[Memory, dict[str, Any] | None, list[Note]]:
    summary, profile, long_term, session = found
    today = datetime.now(UTC).date().isoformat()
    question = next((str(message.text) for message in reversed(messages) if opens_turn(message)), "")
    held = _safe(holding(readable(long_term), today))
    notes, asked = chosen(held, question, context.notes_tokens, counter.text)
    own = _of_this_branch(_safe(holding(readable(session), today)), store, thread_id, messages)
    session_notes = within(own, context.notes_tokens, counter.text)
    memory: Memory = {
        "today": today,
        "profile": render_profile(profile.value if isinstance(profile, Item) else None),
        "notes": render_notes("Long-term notes", notes),
        "note_ids": [note.id for note in notes],
        "asked_note_ids": [note.id for note in asked],
        "session_notes": [note.value() for note in session_notes],
        "recalled": render_notes("Long-term notes for this message", asked),
    }
    return memory, summary.value if isinstance(summary, Item) else None, [*notes, *asked, *session_notes]


def _beside(memory: Memory, passages: str) -> str:
    """Return what stands ahead of the question: notes that it brings, then what was recalled for it."""
    return "\n\n".join(filter(None, (memory["recalled"], passages)))


def _of_this_branch(
    notes: Sequence[Note], store: BaseStore, thread_id: str, messages: Sequence[BaseMessage]
) -> list[Note]:
    """Return the notes whose source this branch has: in its working set, or archived from a place that it left."""
    if not notes:
        return []
    here = {message.id for message in messages}
    places = {sequence(message) for message in messages}
    sources = {note.id: [known for told in note.sources for known in told.message_ids] for note in notes}
    elsewhere = [known for ids in sources.values() for known in ids if known not in here]
    archived = {message.id: sequence(message) for message in archived_by_id(store, thread_id, elsewhere)}
    return [
        note
        for note in notes
        if not sources[note.id]
        or any(known in here or archived.get(known, min(places, default=0)) not in places for known in sources[note.id])
    ]


def _safe(notes: Sequence[Note]) -> list[Note]:
    """Leave out what the guard refuses: a note may be older than the guard, or come from elsewhere."""
    return [note for note in notes if is_safe(note.text)]


def _refused(found: Sequence[Sequence[Item]]) -> list[Event]:
    """Return an event for each stored note that the guard keeps out of the prompt."""
    notes = [note for items in found for note in readable(items) if note.status == "active" and not is_safe(note.text)]
    return [
        NoteBlocked(
            category=verdict.category,
            rule=verdict.rule,
            message_ids=[known for source in note.sources for known in source.message_ids],
        )
        for note, verdict in ((note, check(note.text)) for note in notes)
    ]


def _overruled(shown: Sequence[Note], new: Sequence[BaseMessage]) -> list[Event]:
    """Return an event when the user has just said otherwise than the notes in the prompt: the user wins."""
    said = "\n".join(str(message.text) for message in new if opens_turn(message))
    ids = [note.id for note in overruled(shown, said)] if said and shown else []
    return [NoteOverruled(note_ids=ids, message_id=str(new[-1].id))] if ids else []


def readable(items: Sequence[Item]) -> list[Note]:
    """Return the notes that can be read."""
    notes = []
    for item in items:
        try:
            notes.append(Note.model_validate(item.value))
        except ValidationError as error:
            # One unreadable note must not cost the user every turn; it stays where it is.
            logger.warning("left out note %s: %d fields are not valid", item.key, error.error_count())
    return notes


def _digest(memory: Memory) -> str:
    told = "\x00".join((memory["today"], memory["profile"], memory["notes"]))
    return hashlib.sha256(told.encode()).hexdigest()[:8]


def own_session(store: BaseStore, thread_id: str, context: Context) -> dict[str, Any]:
    """Return the session record of a thread; empty for a new one.

    Raises:
        SettingsError: the thread belongs to another user, whose messages and notes it holds.
    """
    return _own(store.get(namespaces.SESSIONS, thread_id), thread_id, context)


def _own(item: Item | None, thread_id: str, context: Context) -> dict[str, Any]:
    known = dict(item.value) if item else {}
    if known and known.get("user_id") != context.user_id:
        raise SettingsError(
            f"thread {thread_id!r} belongs to another user than {context.user_id!r}; use a thread of their own"
        )
    return known


def _session(
    known: dict[str, Any], thread_id: str, context: Context, wiring: Wiring, turn: int, shared: int | None
) -> dict[str, Any]:
    return {
        "thread_id": thread_id,
        "user_id": context.user_id,
        "agent": wiring.agent.name,
        "began": known.get("began") or now(),
        "last_activity": now(),
        "turns": turn,
        "consolidated_turns": known.get("consolidated_turns", 0),
        "shared": shared,
    }
