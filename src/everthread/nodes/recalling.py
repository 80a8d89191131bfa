"""Find what the current question needs among the messages that left the working set."""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.store.base import BaseStore

from everthread.ledger.events import Recalled
from everthread.ledger.record import now
from everthread.memory.recall import Question
from everthread.nodes.sizing import Sizes
from everthread.nodes.wiring import Wiring, is_evicted
from everthread.state import Context, State
from everthread.state.marks import sequence
from everthread.storage.recall import mentioned, recalled, search_of
from everthread.storage.transcript import message_text
from everthread.window.turns import opens_turn

_LEAST_TOKENS = 64
"""Below this a block holds too little to help."""

_LEAST_SHARE = 0.1
"""Share of the budget that recall may take when the working set fills it."""


def recall(
    state: State, store: BaseStore, thread_id: str, context: Context, wiring: Wiring, shared: int | None
) -> tuple[str, Recalled | None]:
    """Pick messages that were evicted for the current question.

    Nothing is searched while the whole thread is in the working set.

    Args:
        state: with memory and summary of this run.
        store: the run's store.
        thread_id: whose transcript is searched.
        context: `recall_tokens` and the window.
        wiring: counts tokens.
        shared: see `shared_past`.

    Returns:
        The block for the prompt, empty when there is nothing to show, and the event.
    """
    messages = state.get("messages", [])
    if not context.recall_tokens or not is_evicted(messages):
        return "", None
    sizes = Sizes.of(state, context, wiring)
    free = max(sizes.room - sizes.used, int(sizes.budget.tokens * _LEAST_SHARE))
    limit = min(context.recall_tokens, free)
    question = asked(messages, date.fromisoformat((state.get("memory") or {}).get("today") or now()[:10]))
    if limit < _LEAST_TOKENS or not question.query:
        return "", None
    search = search_of(store, thread_id, messages, shared)
    if not (question.looks_back or question.asks_advice):
        # The prompt has what the message talks about, or nothing was ever said of it: every passage would
        # cost tokens and the cached prompt behind it, and tell nothing.
        unseen = question.unseen(_visible(state, messages, wiring))
        if not unseen or not mentioned(search, unseen):
            return "", None
    chosen, searched = recalled(search, question, limit, sizes.counter)
    event = Recalled(
        message_ids=[passage.id for passage in chosen.passages],
        scores=[round(score, 6) for score in chosen.scores],
        tokens=chosen.tokens,
        searched=searched,
    )
    return chosen.text, event if chosen.passages else None


def _visible(state: State, messages: Sequence[BaseMessage], wiring: Wiring) -> str:
    """Return what the prompt shows without the message that is to be answered."""
    memory, summary = state.get("memory") or {}, wiring.summary(state)
    last = max((place for place, message in enumerate(messages) if opens_turn(message)), default=len(messages))
    texts = [message_text(message) for message in messages[:last]]
    return "\n".join([*texts, summary[1] if summary else "", memory.get("profile", ""), memory.get("notes", "")])


def asked(messages: Sequence[BaseMessage], today: date) -> Question:
    """Read the newest message of the user, with those sent just ahead of it and what was said before.

    Args:
        messages: the working set, oldest first.
        today: the day of the run.
    """
    last = max((place for place, message in enumerate(messages) if opens_turn(message)), default=0)
    first = last
    while first and opens_turn(messages[first - 1]):
        first -= 1
    text = "\n".join(str(message.text) for message in messages[first : last + 1])
    earlier = next((message for message in reversed(messages[:first]) if opens_turn(message)), None)
    return Question.read(text, today, before=str(earlier.text) if earlier else "")


def shared_past(known: Mapping[str, Any], turn: int, messages: Sequence[BaseMessage], new: int) -> int | None:
    """Return the last place that all branches of a thread share; None as long as there is one branch.

    A fork by time travel goes on from an older checkpoint, which has fewer turns than the thread had. So does a run
    that died before it could save the turn that it had begun, but that one begins the same turn again.

    Args:
        known: the session record.
        turn: user turns with this one.
        messages: the working set, which ends with the new messages.
        new: how many are new.
    """
    earlier: int | None = known.get("shared")
    if not new or known.get("turns", 0) < turn or known.get("question") == messages[-1].id:
        return earlier
    here = sequence(messages[-new - 1]) if len(messages) > new else -1
    return here if earlier is None else min(earlier, here)
