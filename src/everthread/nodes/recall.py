"""Find what the current question needs among the messages that left the working set."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.runtime import Runtime

from everthread.ledger.events import Recalled
from everthread.memory.recall import Question
from everthread.nodes.deps import NodeDeps, context_of, store_of, thread_of
from everthread.nodes.sizes import PromptSize, is_evicted
from everthread.state import Context, PromptPlan, State
from everthread.state.marks import sequence
from everthread.storage.recall import mentioned, recalled, search_of
from everthread.storage.transcript import message_text
from everthread.window.turns import opens_turn

_LEAST_TOKENS = 64
"""Below this a block holds too little to help."""

_LEAST_SHARE = 0.1
"""Share of the budget that recall may take when the working set fills it."""


def recall(
    state: State, plan: PromptPlan, runtime: Runtime[Context], deps: NodeDeps, shared: int | None
) -> tuple[PromptPlan, Recalled | None]:
    """Pick messages that were evicted for the current question.

    Nothing is searched while the whole thread is in the working set.

    Args:
        state: the working set, which ends with the question.
        plan: of this turn, without passages.
        runtime: store and thread; `context` has `recall_tokens` and the window.
        deps: the run's model.
        shared: see `shared_past`.

    Returns:
        The plan with the passages, and the event when there are any.
    """
    context, messages = context_of(runtime), state.get("messages", [])
    if not context.recall_tokens or not is_evicted(messages):
        return plan, None
    size = PromptSize.of(state, plan, deps.model_for(context))
    free = max(size.room - size.used, int(size.budget.tokens * _LEAST_SHARE))
    limit = min(context.recall_tokens, free)
    question = _question(messages, date.fromisoformat(plan.today))
    if limit < _LEAST_TOKENS or not question.query:
        return plan, None
    search = search_of(store_of(runtime), thread_of(runtime), messages, shared)
    if not (question.looks_back or question.asks_advice):
        # The prompt has what the message talks about, or nothing was ever said of it: every passage would
        # cost tokens and the cached prompt behind it, and tell nothing.
        unseen = question.unseen(_visible(plan, messages))
        if not unseen or not mentioned(search, unseen):
            return plan, None
    found, searched = recalled(search, question, limit, size.counter)
    if not found.passages:
        return plan, None
    event = Recalled(
        message_ids=[passage.id for passage in found.passages],
        scores=[round(score, 6) for score in found.scores],
        tokens=found.tokens,
        searched=searched,
    )
    return replace(plan, recalled="\n\n".join(filter(None, (plan.recalled, found.text)))), event


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
    earlier = next((message for message in reversed(messages[:first]) if opens_turn(message)), None)
    return Question.read(text, today, before=str(earlier.text) if earlier else "")


def shared_past(session: Mapping[str, Any], turn: int, messages: Sequence[BaseMessage], new: int) -> int | None:
    """Return the last place that all branches of a thread share; None as long as there is one branch.

    A fork by time travel goes on from an older checkpoint, which has fewer turns than the thread had. So does a run
    that died before it could save the turn that it had begun, but that one begins the same turn again.

    Args:
        session: the session record.
        turn: user turns with this one.
        messages: the working set, which ends with the new messages.
        new: how many are new.
    """
    earlier: int | None = session.get("shared")
    if not new or session.get("turns", 0) < turn or session.get("question") == messages[-1].id:
        return earlier
    here = sequence(messages[-new - 1]) if len(messages) > new else -1
    return here if earlier is None else min(earlier, here)
