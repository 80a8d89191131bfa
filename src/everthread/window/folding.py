"""Choose what one compaction masks and folds."""

from collections.abc import Sequence

from langchain_core.messages import BaseMessage

from everthread.state.context import Context
from everthread.window.draft import Draft, EvictionPlan
from everthread.window.tokens import TokenCounter

BY_TURNS = "context limit"
"""Why a compaction is due that the number of turns asks for, and not their size."""


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
