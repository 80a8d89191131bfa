"""Plan what leaves the working set: before a model call, so that the prompt holds its budget, or by a compaction."""

from collections.abc import Sequence
from math import ceil

from langchain_core.messages import BaseMessage

from everthread.errors import BudgetError
from everthread.state.context import Context
from everthread.window.draft import Draft, EvictionPlan
from everthread.window.policies import BY_COUNT, by_size, token_budget
from everthread.window.tokens import TokenCounter

_ANCHOR_SHARE = 0.25
"""An anchor above this share of the budget is shortened, so that it never costs the recent turns."""

UNANSWERED = 200
"""Tokens that answers to cut-off calls may add to the sum of the messages' sizes."""

_SMALLEST_SHARE = 60
"""Tokens below which the results of the newest round are not cut any further."""

_LEAST_SHARE = 7 / 8
"""Of a wider window, which is for the prompt at the least; the reply takes the rest."""

BY_TURNS = "context limit"
"""Why a compaction is due that the number of turns asks for, and not their size."""


def plan_trim(
    messages: Sequence[BaseMessage], *, room: int, context: Context, counter: TokenCounter, reads_back: bool = True
) -> EvictionPlan:
    """Plan what leaves the working set; nothing does while it fits, unless the policy counts turns or messages.

    Args:
        messages: the working set, oldest first, each with an id of its own.
        room: tokens that the messages may take.
        context: policy and watermarks.
        counter: counts the tokens of a message.
        reads_back: whether the model has a tool that takes the handles of stand-ins; without one they have none.

    Raises:
        BudgetError: the newest message of the user, the anchor and the newest tool round do not fit.
    """
    draft = Draft(messages, counter, reads_back=reads_back)
    reason = ""
    if context.policy in BY_COUNT:
        draft.evict_turns(BY_COUNT[context.policy](draft.turns, context))
        reason = f"policy {context.policy}" if draft.evicted else ""
    if draft.tokens > room:
        reason = "over budget"
        _shrink(draft, room, context)
    if draft.tokens > room:
        raise BudgetError(_refusal(draft, room, context, counter))
    return draft.plan(reason)


def _refusal(draft: Draft, room: int, context: Context, counter: TokenCounter) -> str:
    """Say what does not fit, and how much wider the window has to be."""
    fraction = counter.first_fraction if context.safety_fraction is None else context.safety_fraction
    wider = ceil((draft.tokens - room) / (fraction * _LEAST_SHARE))
    if room <= 0:
        return (
            f"pinned sentences and notes of the session need {-room:,} tokens more than the budget for the "
            f"conversation has; unpin or shorten some, or raise `window` by {wider:,}"
        )
    question = draft.turns[-1].groups[0].messages[0]
    return (
        f"what must stay needs {draft.tokens:,} tokens but the budget for the conversation is {room:,} "
        f"(the newest message alone has {draft.sizes[str(question.id)]:,}); shorten the message or raise `window` "
        f"by {wider:,}"
    )


def _shrink(draft: Draft, budget: int, context: Context) -> None:
    """Go down to the low watermark, the cheapest step first; no step is taken once the budget is held.

    Old tool results are masked, then turns leave as the policy says. Only when the newest turn is too large by itself
    are its own results masked, the anchor shortened, its older tool rounds evicted and its newest results cut.
    """
    target = int(budget * context.low_watermark)
    earlier, current = draft.turns[:-1], draft.turns[-1]
    policy = by_size(context.policy)
    if policy is token_budget:
        # Turns that could not stay even with stubs for results: to mask them first would be work for nothing. The
        # newest of them is left, so that what follows decides as if all of them were there.
        draft.evict_turns(token_budget(draft.turns, budget, draft.least)[:-1])
    draft.mask_results((group for turn in earlier for group in turn.groups), target)
    # `salience` may hold on to more than fits; then age decides.
    for evict in (policy, token_budget):
        if draft.tokens > budget:
            # The anchor stays; the rest of the target is for turns.
            room = max(target - draft.anchor_tokens, 0)
            draft.evict_turns(evict(draft.turns, room, draft.beside_anchor))
    if draft.tokens > budget:
        draft.mask_results(current.groups[:-1], target)
    if draft.tokens > budget and draft.anchor_tokens > budget * _ANCHOR_SHARE:
        draft.shorten_anchor()
    if draft.tokens > budget:
        for group in current.groups[:-1]:
            if draft.tokens > target and group.messages[0] is not current.question and not group.unanswered:
                draft.evict(group)
    # An equal share of what is left for each of the newest results, as often as it takes.
    share = context.tool_output_tokens
    while draft.tokens > budget and current.groups[-1].results and share >= _SMALLEST_SHARE:
        share //= 2
        draft.cut_results(current.groups[-1], share)


def plan_fold(
    messages: Sequence[BaseMessage], *, target: int, kept: int, context: Context, counter: TokenCounter
) -> EvictionPlan:
    """Plan one compaction down to a target.

    Old tool results are masked first, which costs nothing and is often enough; then the oldest turns
    are folded, whole. Of the last `keep_last_turns` as many stay word for word as fit `kept`: when they
    alone fill the room, every turn would compact again. The newest turn and the anchor always stay.

    Args:
        messages: the working set, oldest first.
        target: tokens that should be left.
        kept: tokens that the last turns may take.
        context: `keep_last_turns`, `context_limit`.
    """
    draft = Draft(messages, counter)
    turns = draft.turns
    by_turns = context.context_limit is not None and len(turns) > context.context_limit
    keep = context.keep_last_turns
    while keep > 1 and not by_turns and sum(draft.tokens_of(turn.messages) for turn in turns[-keep:]) > kept:
        keep -= 1
    foldable = range(len(turns) - keep)
    # When masking everything could not be enough, what is about to be folded need not be masked before.
    least = sum(draft.least(turn.messages) for turn in turns[:-1]) + draft.tokens_of(turns[-1].messages)
    first = len(foldable) if least > target else 0
    draft.mask_results((group for turn in turns[first:-1] for group in turn.groups), target)
    # One call that folds all it may is worth more than many that fold a turn each.
    if draft.tokens > target or by_turns:
        draft.evict_turns(foldable)
    return draft.plan(BY_TURNS if by_turns else "high watermark")
