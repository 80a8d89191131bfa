"""Eviction policies: which turns leave first. Pure functions over turns, newest turn never touched."""

import re
from collections.abc import Callable, Sequence

from everthread.state.marks import is_kept
from everthread.window.turns import Turn

Policy = Callable[[Sequence[Turn], Sequence[int], int], list[int]]
"""Turns, their sizes in tokens and the budget to the indices of turns to evict, in order."""

_WORD = re.compile(r"\w{3,}")


def sliding_window(turns: Sequence[Turn], keep: int) -> list[int]:
    """Return the turns before the last `keep` that begin with a user's message.

    Fewer turns, or none with a user's message: nothing goes.
    """
    starts = [index for index, turn in enumerate(turns) if turn.question is not None]
    return list(range(starts[-keep])) if len(starts) >= keep else []


def head_tail(turns: Sequence[Turn], keep_messages: int) -> list[int]:
    """Return the turns outside the last `keep_messages` messages; a cut inside a turn moves forward."""
    left = keep_messages
    for index in range(len(turns) - 1, -1, -1):
        left -= len(turns[index].messages)
        if left < 0:
            # The newest turn always stays: without a question there is nothing to answer.
            return list(range(min(index + 1, len(turns) - 1)))
    return []


def token_budget(turns: Sequence[Turn], sizes: Sequence[int], budget: int) -> list[int]:
    """Return the oldest turns, so that the longest run of newest turns within the budget stays.

    One pass from the newest turn back; the newest turn stays whatever its size.
    """
    used = 0
    for index in range(len(turns) - 1, -1, -1):
        used += sizes[index]
        if used > budget and index < len(turns) - 1:
            return list(range(index + 1))
    return []


def salience(turns: Sequence[Turn], sizes: Sequence[int], budget: int) -> list[int]:
    """Return the turns that matter least for the newest question, until the rest fits the budget.

    A turn matters by the words it shares with the question, rarer words counting more, by results that
    had to be fetched twice, and a little by its age; the newest turn and the one before it stay.
    """
    excess = sum(sizes) - budget
    words = [set(_WORD.findall(" ".join(str(m.text) for m in turn.messages).lower())) for turn in turns]
    question = turns[-1].question if turns else None
    asked = set(_WORD.findall(str(question.text).lower())) if question is not None else set()
    spread = {word: sum(word in told for told in words) for word in asked}

    def weight(index: int) -> float:
        shared = sum(1 / spread[word] for word in asked & words[index])
        missed = any(is_kept(message) for message in turns[index].messages)
        return shared + missed + 0.5 * index / len(turns)

    evicted: list[int] = []
    for index in sorted(range(max(len(turns) - 2, 0)), key=weight):
        if excess <= 0:
            break
        evicted.append(index)
        excess -= sizes[index]
    return sorted(evicted)


BY_SIZE: dict[str, Policy] = {
    "sliding_window": token_budget,
    "head_tail": token_budget,
    "token_budget": token_budget,
    "summarize": token_budget,
    "salience": salience,
}
"""What each policy does when the working set is over the budget."""
