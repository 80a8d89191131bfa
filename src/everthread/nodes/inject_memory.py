"""Resolve what the agent knows about the user, anew in every run."""

import hashlib
import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from langchain_core.messages import BaseMessage, RemoveMessage
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore, GetOp, Item, PutOp, SearchOp
from pydantic import ValidationError

from everthread.errors import SettingsError
from everthread.ledger.events import Injected
from everthread.ledger.record import now, record
from everthread.memory.rendering import render_notes, render_profile
from everthread.memory.selection import within
from everthread.nodes.wiring import Wiring, context_of, store_of, thread_of
from everthread.state import Context, Memory, Note, State, Update, namespaces
from everthread.state.marks import MARK, marks, sequence
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
    arrived = [message for message in messages if "at" not in marks(message)]
    asked = _reads(thread_id, context, state.get("summary_id"))
    found: list[Any] = store.batch(
        [
            *asked,
            GetOp(namespaces.SESSIONS, thread_id),
            *(GetOp(namespaces.transcript(thread_id), str(message.id)) for message in arrived),
        ]
    )
    known = _own(found[len(asked)], thread_id, context)
    # A client may send its whole history again; what the transcript has is not new.
    again = {item.key for item in found[len(asked) + 1 :] if item is not None}
    new = [message for message in arrived if message.id not in again]
    turn = state.get("turns", 0) + sum(map(opens_turn, new))
    memory, summary = _rendered(found[: len(asked)], store, thread_id, context, wiring.counter(context), messages)
    digest = _digest(memory)
    event = Injected(
        changed=digest != state.get("memory_digest"),
        profile=bool(memory["profile"]),
        note_ids=memory["note_ids"],
        session_note_ids=[str(note["id"]) for note in memory["session_notes"]],
        tokens=wiring.counter(context).text(memory["profile"] + memory["notes"]),
    )
    session = PutOp(namespaces.SESSIONS, thread_id, _session(known, thread_id, context, wiring, turn), index=None)
    record(store, thread_id, [event], write=runtime.stream_writer, turn=turn, operations=[session])
    dated = [*(RemoveMessage(id=str(known_id)) for known_id in again), *map(_dated, new)]
    moved = "memory" if state.get("memory_digest") and event.changed else state.get("moved", "")
    return {
        "messages": dated,
        "moved": moved,
        "memory": memory,
        "summary": summary,
        "memory_digest": digest,
        "turns": turn,
        "overflows": 0,
        "ceiling": None,
    }


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
    context = context_of(runtime)
    memory, summary = resolve(
        store_of(runtime),
        thread_of(runtime),
        context,
        wiring.counter(context),
        state.get("summary_id"),
        messages=state.get("messages", []),
    )
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
    return _rendered(found, store, thread_id, context, counter, messages)


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
) -> tuple[Memory, dict[str, Any] | None]:
    summary, profile, long_term, session = found
    notes = within(_active(long_term), context.notes_tokens, counter.text)
    own = _of_this_branch(_active(session), store, thread_id, messages)
    session_notes = within(own, context.notes_tokens, counter.text)
    memory: Memory = {
        "today": datetime.now(UTC).date().isoformat(),
        "profile": render_profile(profile.value if isinstance(profile, Item) else None),
        "notes": render_notes("Long-term notes", notes),
        "note_ids": [note.id for note in notes],
        "session_notes": [note.value() for note in session_notes],
    }
    return memory, summary.value if isinstance(summary, Item) else None


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


def _active(items: Sequence[Item]) -> list[Note]:
    return [note for note in readable(items) if note.status == "active"]


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


def _session(known: dict[str, Any], thread_id: str, context: Context, wiring: Wiring, turn: int) -> dict[str, Any]:
    return {
        "thread_id": thread_id,
        "user_id": context.user_id,
        "agent": wiring.agent.name,
        "began": known.get("began") or now(),
        "last_activity": now(),
        "turns": turn,
        "consolidated_turns": known.get("consolidated_turns", 0),
    }
