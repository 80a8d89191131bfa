"""Choose what one compaction masks and folds."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from langchain_core.messages import BaseMessage

from everthread.state.context import Context
from everthread.state.marks import is_kept
from everthread.window.masking import STUB_IDENTIFIERS, STUB_TOKENS, stubs
from everthread.window.tokens import TokenCounter
from everthread.window.turns import anchor_of, split

_SMALLEST_STUB = STUB_TOKENS + 30
"""A stub is no smaller: its head, its tail, and the marker with the handle."""


@dataclass
class Fold:
    """What one compaction masks and folds."""

    folded: list[BaseMessage] = field(default_factory=list)
    masked: dict[str, BaseMessage] = field(default_factory=dict)
    """Stand-ins by message id."""
    by_turns: bool = False
    """The number of turns asked for it, not their size."""
    tokens_before: int = 0
    tokens_after: int = 0


def plan_fold(
    messages: Sequence[BaseMessage], *, target: int, kept: int, context: Context, counter: TokenCounter
) -> Fold:
    """Plan one compaction down to a target.

    Old tool results are masked first, which costs nothing and is often enough; then the oldest turns
    are folded, whole. Of the last `keep_last_turns` as many stay word for word as fit `kept`: when they
    alone fill the room, every turn would compact again. The newest turn and the anchor always stay.

    Args:
        messages: the working set, oldest first.
        target: tokens that should be left.
        kept: tokens that the last turns may take.
        context: `keep_last_turns`, `context_limit`.
        counter: counts tokens.
    """
    turns = split(messages)
    anchor = anchor_of(messages)
    fold = Fold(tokens_before=sum(counter.sizes(messages)))
    fold.by_turns = context.context_limit is not None and len(turns) > context.context_limit
    keep = context.keep_last_turns
    while keep > 1 and not fold.by_turns and sum(t.tokens(counter.message) for t in turns[-keep:]) > kept:
        keep -= 1
    foldable = turns[:-keep]
    left, shortened = fold.tokens_before, stubs(counter)
    results = [result for turn in turns[:-1] for group in turn.groups for result in group.results]
    sizes = {str(result.id): counter.text(str(result.text)) for result in results}
    most = sum(max(size - _SMALLEST_STUB, 0) for size in sizes.values())
    # When masking everything could not be enough, what is about to be folded need not be masked before.
    first = len(foldable) if left - most > target else 0
    open_to_masks = [result for turn in turns[first:-1] for group in turn.groups for result in group.results]
    # What had to be fetched twice is masked last.
    for result in sorted(open_to_masks, key=is_kept):
        if left > target and sizes[str(result.id)] > STUB_TOKENS + STUB_IDENTIFIERS + 40:
            stand_in, size = shortened(result)
            fold.masked[str(result.id)] = stand_in
            left += size - counter.message(result)
    # One call that folds all it may is worth more than many that fold a turn each.
    for turn in foldable if left > target or fold.by_turns else ():
        for message in turn.messages:
            if message is not anchor:
                fold.folded.append(message)
                left -= counter.message(fold.masked.pop(str(message.id), message))
    fold.tokens_after = left
    return fold
