"""Find what the current question needs among the messages that left the working set."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.store.base import BaseStore, GetOp

from everthread.ledger.events import Recalled
from everthread.ledger.record import now
from everthread.memory.recall import Question
from everthread.memory.rendering import note_line, render_notes
from everthread.nodes.node_run import NodeRun
from everthread.nodes.sizes import is_evicted
from everthread.nodes.steering import Steered
from everthread.state import Note, PromptPlan, namespaces
from everthread.state.marks import RECALLED, is_recalled, marks, recalled_id, sequence, synthetic
from everthread.storage.recall import (
    Search,
    mentioned,
    other_threads,
    recall_passages,
    search_of,
    within_days,
)
from everthread.storage.transcript import message_text
from everthread.window.turns import opens_turn, question_of

_LEAST_TOKENS = 64
"""Below this a block holds too little to help."""

_LEAST_SHARE = 0.1
"""Share of the budget that recall may take when the working set fills it."""


def recall(
    run: NodeRun, plan: PromptPlan, shared: int | None, asked_for: Steered
) -> tuple[list[BaseMessage], list[Recalled]]:
    """Bring back evicted messages that the current question needs, and notes that only it brings.

    They stand ahead of the question and stay in the working set until a compaction, so that the cached prompt goes on
    behind them. Nothing is recalled that is in view, and this thread is not searched while the whole of it is.

    Args:
        run: has the working set, which ends with the question; `context` has `recall_tokens` and the window.
        shared: see `shared_past`.
        asked_for: what a person brought back, which is shown ahead of it.

    Returns:
        The message for the working set and its event; both empty when there is nothing to show.
    """
    messages = run.messages
    question = question_of(messages)
    if question is None:
        return [], []
    in_view = {line for message in messages if is_recalled(message) for line in marks(message)["notes"]}
    lines = [line for line in map(note_line, plan.asked_notes) if line not in in_view]
    notes = [note for note in plan.asked_notes if note_line(note) in lines]
    passages, events = _passages(run, plan, shared, asked_for.shown_ids)
    blocks = [render_notes("Long-term notes for this message", notes), asked_for.block, passages]
    if not any(blocks):
        return [], []
    ids = [*asked_for.shown_ids, *(name for event in events for name in event.message_ids)]
    threads = [name for event in events for name in event.threads]
    content = "\n\n".join(filter(None, blocks))
    message = synthetic(RECALLED, content, before=question.id, shows=ids, notes=lines, threads=threads, at=now())
    return [message.model_copy(update={"id": recalled_id(question.id)})], events


def outdated(messages: Sequence[BaseMessage], notes: Sequence[Note], store: BaseStore, user_id: str) -> list[str]:
    """Return the ids of recalled messages that show a note which was corrected, replaced or deleted since.

    So is one that shows messages of another thread which was forgotten since.

    Args:
        notes: the long-term notes that hold.
        store: has the sessions of the user's other threads.
        user_id: whose they have to be.
    """
    recalled = [message for message in messages if is_recalled(message)]
    shown = {str(message.id): set(marks(message)["notes"]) for message in recalled}
    lines = set(map(note_line, notes)) if any(shown.values()) else set()
    threads = {str(message.id): marks(message).get("threads", []) for message in recalled}
    names = sorted({name for named in threads.values() for name in named})
    items: list[Any] = store.batch([GetOp(namespaces.SESSIONS, name) for name in names]) if names else []
    held = {name for name, item in zip(names, items, strict=True) if item and item.value.get("user_id") == user_id}
    return [name for name, known in shown.items() if not (known <= lines and held.issuperset(threads[name]))]


def _passages(
    run: NodeRun, plan: PromptPlan, shared: int | None, shown_ids: Sequence[str]
) -> tuple[str, list[Recalled]]:
    """Search the transcript when the question points at something that is not in view."""
    context, messages = run.context, run.messages
    searches = [*_searches(run, shared, shown_ids)]
    if not context.recall_tokens or not searches:
        return "", []
    size = run.size(plan)
    free = max(size.room - size.used, int(size.budget.tokens * _LEAST_SHARE))
    limit = min(context.recall_tokens, free)
    question = _question(messages, date.fromisoformat(plan.today))
    if limit < _LEAST_TOKENS or not question.query:
        return "", []
    if not (question.looks_back or question.asks_advice):
        unseen = question.unseen(_visible(plan, messages))
        searches = [search for search in searches if _tells_more(search, question, unseen, plan.today)]
    chosen, searched = recall_passages(searches, question, limit, size.counter)
    if not chosen.passages:
        return "", []
    event = Recalled(
        message_ids=[passage.id for passage in chosen.passages],
        threads=sorted({passage.thread for passage in chosen.passages if passage.thread}),
        scores=[round(score, 6) for score in chosen.scores],
        tokens=chosen.tokens,
        searched=searched,
    )
    return chosen.text, [event]


def _searches(run: NodeRun, shared: int | None, shown_ids: Sequence[str]) -> Iterator[Search]:
    """Return where to look: in what left this thread, and in the user's other threads if the run asks for them."""
    messages = run.messages
    in_view = {name for message in messages if is_recalled(message) for name in marks(message)["shows"]}
    in_view.update(shown_ids)
    if is_evicted(messages):
        search = search_of(run.store, run.thread_id, messages, shared)
        yield replace(search, hidden=search.hidden.union(in_view))
    if run.context.recall_threads == "mine":
        yield other_threads(run.store, run.thread_id, run.context.user_id, in_view)


def _tells_more(search: Search, question: Question, unseen: Sequence[str], today: str) -> bool:
    """Tell whether something was said of what the prompt does not show, or on a day that the question names.

    Otherwise the prompt has what the message talks about, or nothing was ever said of it: every passage would cost
    tokens and tell nothing.
    """
    if unseen and mentioned(search, unseen):
        return True
    # By the words of the days, which few messages have: any others would be read one by one for their dates.
    # Nothing was said on a day to come, and travellers name little else.
    return any(
        mentioned(within_days(search, span.first.isoformat(), span.last.isoformat()), [span.words()])
        for span in question.spans
        if span.first.isoformat() <= today
    )


def _visible(plan: PromptPlan, messages: Sequence[BaseMessage]) -> str:
    """Return what the prompt shows without the message that is to be answered."""
    last = max((place for place, message in enumerate(messages) if opens_turn(message)), default=len(messages))
    texts = [message_text(message) for message in messages[:last]]
    return "\n".join([*texts, plan.summary_text, plan.profile, plan.notes_block])


def _question(messages: Sequence[BaseMessage], today: date) -> Question:
    """Read the newest message of the user, with those sent just ahead of it and what was said before."""
    last = max((place for place, message in enumerate(messages) if opens_turn(message)), default=0)
    first = last
    while first and opens_turn(messages[first - 1]):
        first -= 1
    text = "\n".join(str(message.text) for message in messages[first : last + 1])
    earlier = question_of(messages[:first])
    return Question.read(text, today, before=str(earlier.text) if earlier else "")


def shared_past(session: Mapping[str, Any], turn: int, messages: Sequence[BaseMessage], new: int) -> int | None:
    """Return the last place that all branches of a thread share; None as long as there is one branch.

    A fork by time travel goes on from an older checkpoint, which has fewer turns than the thread had. So does a run
    that died before it could save the turn that it had begun, but that one begins the same turn again.

    Args:
        turn: user turns with this one.
        messages: the working set, which ends with the new messages.
        new: how many are new.
    """
    earlier: int | None = session.get("shared")
    if not new or session.get("turns", 0) < turn or session.get("question") == messages[-1].id:
        return earlier
    here = sequence(messages[-new - 1]) if len(messages) > new else -1
    return here if earlier is None else min(earlier, here)
