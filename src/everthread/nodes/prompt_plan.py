"""Make the plan of a turn: what the store knows of user and thread, rendered and measured."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from langchain_core.messages import BaseMessage, SystemMessage
from langgraph.store.base import BaseStore, GetOp, Item, SearchOp
from pydantic import ValidationError

from everthread.memory.guard import is_safe
from everthread.memory.rendering import render_notes, render_profile
from everthread.memory.rules import Rules
from everthread.memory.selection import chosen, holding, within
from everthread.nodes.deps import NodeDeps
from everthread.prompts import render
from everthread.state import Agent, Context, Note, PromptPlan, Summary, namespaces
from everthread.state.marks import sequence, synthetic
from everthread.state.records import StoredItem
from everthread.state.steering import Quote, Steering, steering_of
from everthread.storage.owners import check_kept_by_us, check_owner
from everthread.storage.transcript import archived_by_id
from everthread.window.compaction import render_summary
from everthread.window.tokens import TokenCounter
from everthread.window.turns import opens_turn

logger = logging.getLogger(__name__)

_MANY = 1_000


@dataclass(frozen=True)
class StoredMemory:
    """What the store knows of a user and a thread."""

    session_record: Mapping[str, Any]
    """Of the thread; empty for a new one."""
    profile: dict[str, Any] | None
    long_term: Sequence[Note]
    session: Sequence[Note]
    summary: Summary | None
    steering: Sequence[Steering] = ()
    """What a person asked for of the prompts to come, oldest first."""


def read_memory(store: BaseStore, thread_id: str, context: Context, summary_id: str | None) -> StoredMemory:
    """Read profile and notes of the user, session notes, summary and session record of the thread.

    Raises:
        SettingsError: the thread belongs to another user, or an app keeps it by `Transcript`.
    """
    operations: list[GetOp | SearchOp] = [
        GetOp(namespaces.SESSIONS, thread_id),
        GetOp(namespaces.summaries(thread_id), summary_id or ""),
        GetOp(namespaces.profile(context.user_id), "profile"),
        SearchOp(namespaces.notes(context.user_id), limit=_MANY),
        SearchOp(namespaces.session_notes(thread_id), limit=_MANY),
        SearchOp(namespaces.steering(thread_id), limit=_MANY),
    ]
    results: list[Any] = store.batch(operations)
    record, summary, profile, long_term, session, steering = results
    session_record = _owned(record, thread_id, context)
    check_kept_by_us(session_record, thread_id)
    return StoredMemory(
        session_record=session_record,
        profile=profile.value if profile else None,
        long_term=readable(long_term),
        session=readable(session),
        summary=Summary.model_validate(summary.value) if summary else None,
        steering=steering_of(steering),
    )


def make_plan(
    memory: StoredMemory,
    messages: Sequence[BaseMessage],
    store: BaseStore,
    thread_id: str,
    context: Context,
    deps: NodeDeps,
) -> PromptPlan:
    """Choose, render and measure what stands beside the messages.

    Args:
        messages: the working set: its question brings notes, its ids tell the notes of this branch from others.
        context: `notes_tokens` and `pins`.
    """
    counter, today = deps.model_for(context).counter, datetime.now(UTC).date().isoformat()
    question = next((str(message.text) for message in reversed(messages) if opens_turn(message)), "")
    notes, asked = chosen(
        usable_notes(memory.long_term, today, deps.rules), question, context.notes_tokens, counter.text
    )
    own = _of_this_branch(usable_notes(memory.session, today, deps.rules), store, thread_id, messages)
    session = within(own, context.notes_tokens, counter.text)
    profile, block = render_profile(memory.profile), render_notes("Long-term notes", notes)
    if deps.head is None:
        head, behind = system_message(deps.agent, today, profile, block), None
    else:
        head, behind = deps.head, synthetic("memory", _memory_text(today, profile, block)) if deps.remembers else None
    plan = PromptPlan(
        context=context,
        today=today,
        system=head,
        memory=behind,
        profile=profile,
        notes_block=block,
        sizes=_head_sizes([head, behind] if behind else [head], profile, block, counter),
        notes=tuple(notes),
        asked_notes=tuple(asked),
        session_notes=tuple(session),
        pins=tuple(dict.fromkeys((*context.pins, *_constraints(session), *_sentences(memory.steering)))),
        quotes=tuple(_quotes(memory.steering, store, thread_id, messages)),
    )
    return with_summary(plan, memory.summary, deps.agent)


def _constraints(notes: Sequence[Note]) -> list[str]:
    """Return the constraints among notes, which are pinned; words that the user has not confirmed never are."""
    return [note.text for note in notes if note.kind == "constraint" and not note.is_waiting]


def _sentences(steering: Sequence[Steering]) -> list[str]:
    """Return the sentences that a person pinned."""
    return [one.text for one in steering if one.action == "pin" and not one.message_id]


def _quotes(
    steering: Sequence[Steering], store: BaseStore, thread_id: str, messages: Sequence[BaseMessage]
) -> list[Quote]:
    """Return the messages that a person pinned and that this branch has."""
    pinned = [one for one in steering if one.action == "pin" and one.message_id]
    known = _known_here([one.message_id for one in pinned], store, thread_id, messages)
    return [Quote(one.text, one.speaker, one.date) for one in pinned if one.message_id in known]


def with_summary(plan: PromptPlan, summary: Summary | None, agent: Agent) -> PromptPlan:
    """Return the plan with another summary."""
    text = render_summary(summary, agent.summary_sections) if summary else ""
    return replace(plan, summary=summary, summary_text=text)


def system_message(agent: Agent, today: str, profile: str = "", notes: str = "") -> SystemMessage:
    """Return the head of the prompt: instructions, memory policy, date, profile, long-term notes."""
    return SystemMessage(f"{agent.instructions.strip()}\n\n{_memory_text(today, profile, notes)}")


def _memory_text(today: str, profile: str, notes: str) -> str:
    """Return what the head of the prompt says beside the instructions: memory policy, date, profile, notes."""
    return "\n\n".join(filter(None, [render("memory_policy"), f"Today is {today}.", profile, notes]))


def checked_session(store: BaseStore, thread_id: str, context: Context) -> dict[str, Any]:
    """Return the session record of a thread, once it is found to be this user's; empty for a new one.

    On a LangGraph server there is no `GuardedGraph` that has checked it already.

    Raises:
        SettingsError: the thread belongs to another user, whose messages and notes it holds.
    """
    return _owned(store.get(namespaces.SESSIONS, thread_id), thread_id, context)


def _owned(item: Item | None, thread_id: str, context: Context) -> dict[str, Any]:
    session = None if item is None else dict(item.value)
    check_owner(session, thread_id, context.user_id)
    return session or {}


def readable(items: Sequence[StoredItem]) -> list[Note]:
    """Return the notes that can be read."""
    notes = []
    for item in items:
        try:
            notes.append(Note.model_validate(item.value))
        except ValidationError as error:
            # One unreadable note must not cost the user every turn; it stays where it is.
            logger.warning("left out note %s: %d fields are not valid", item.key, error.error_count())
    return notes


def usable_notes(notes: Sequence[Note], today: str, rules: Rules) -> list[Note]:
    """Return the notes that hold today and pass the guard: some are older than the guard, or come from elsewhere."""
    return [note for note in holding(notes, today) if is_safe(note.text, rules, is_own=note.quotes_user)]


def _head_sizes(head: Sequence[BaseMessage], profile: str, notes: str, counter: TokenCounter) -> dict[str, int]:
    sizes = {"profile": counter.text(profile), "notes": counter.text(notes)}
    return {"system": counter.messages(head) - sum(sizes.values()), **sizes}


def _of_this_branch(
    notes: Sequence[Note], store: BaseStore, thread_id: str, messages: Sequence[BaseMessage]
) -> list[Note]:
    """Return the notes whose source this branch has: in its working set, or archived from a place that it left."""
    sources = {note.id: [name for source in note.sources for name in source.message_ids] for note in notes}
    known = _known_here([name for names in sources.values() for name in names], store, thread_id, messages)
    return [note for note in notes if not sources[note.id] or known.intersection(sources[note.id])]


def _known_here(names: Sequence[str], store: BaseStore, thread_id: str, messages: Sequence[BaseMessage]) -> set[str]:
    """Return which messages this branch has: in its working set, or archived from a place that it left."""
    if not names:
        return set()
    here = {str(message.id) for message in messages}
    places = {sequence(message) for message in messages}
    elsewhere = [name for name in names if name not in here]
    archived = {str(one.id): sequence(one) for one in archived_by_id(store, thread_id, elsewhere)}
    return {name for name in names if name in here or archived.get(name, min(places, default=0)) not in places}
