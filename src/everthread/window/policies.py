"""Eviction policies: which turns leave first. Pure functions over turns; the newest turn always stays.

`token_budget` keeps a suffix that LangChain's `trim_messages` finds; `sliding_window` and `head_tail` are the same with
a budget of turns or messages.
"""

import re
from collections.abc import Callable, Sequence

from langchain_core.messages import BaseMessage, SystemMessage, trim_messages

from everthread.state.context import Context
from everthread.state.marks import was_refetched
from everthread.window.turns import Turn, opens_turn

Measure = Callable[[list[BaseMessage]], int]
"""Size of a list of messages: in tokens, or whatever a policy counts."""

Policy = Callable[[Sequence[Turn], int, Measure], list[int]]
"""Turns, the budget and a measure in tokens to the indices of turns to evict, in order."""

_WORD = re.compile(r"\w{3,}")


def token_budget(turns: Sequence[Turn], budget: int, measure: Measure) -> list[int]:
    """Return the oldest turns, so that the longest run of newest turns within the budget stays.

    Args:
        turns: oldest first.
        budget: the most that the run may measure.
        measure: of a list of messages; it never shrinks when a message is added.
    """
    messages = [message for turn in turns for message in turn.messages]
    kept = trim_messages(
        messages, max_tokens=budget, token_counter=measure, strategy="last", start_on="human", include_system=True
    )
    # A system message comes back ahead of the suffix and is no part of it.
    left = len(messages) - len(kept) + any(isinstance(message, SystemMessage) for message in kept[:1])
    gone: list[int] = []
    for index, turn in enumerate(turns[:-1]):
        # LangChain may stop at a synthetic message, since that is a human one: then the rest of the turn goes too.
        if left <= 0:
            break
        gone.append(index)
        left -= len(turn.messages)
    return gone


def sliding_window(turns: Sequence[Turn], keep: int) -> list[int]:
    """Return the turns before the last `keep` that begin with a user's message; none when there are fewer."""
    if sum(turn.question is not None for turn in turns) < keep:
        return []
    return token_budget(turns, keep, lambda messages: sum(map(opens_turn, messages)))


def head_tail(turns: Sequence[Turn], keep_messages: int) -> list[int]:
    """Return the turns outside the last `keep_messages` messages; a cut inside a turn moves forward."""
    return token_budget(turns, keep_messages, lambda messages: sum(not isinstance(m, SystemMessage) for m in messages))


def salience(turns: Sequence[Turn], budget: int, measure: Measure) -> list[int]:
    """Return the turns that matter least for the newest question, until the rest fits the budget.

    A turn matters by the words it shares with the question, rarer words counting more, by results that
    had to be fetched twice, and a little by its age; the newest turn and the one before it stay.
    """
    sizes = [measure(turn.messages) for turn in turns]
    excess = sum(sizes) - budget
    words = [set(_WORD.findall(" ".join(str(m.text) for m in turn.messages).lower())) for turn in turns]
    question = turns[-1].question if turns else None
    question_words = set(_WORD.findall(str(question.text).lower())) if question is not None else set()
    spread = {word: sum(word in of_turn for of_turn in words) for word in question_words}

    def weight(index: int) -> float:
        shared = sum(1 / spread[word] for word in question_words & words[index])
        is_refetched = any(was_refetched(message) for message in turns[index].messages)
        return shared + is_refetched + 0.5 * index / len(turns)

    evicted: list[int] = []
    for index in sorted(range(max(len(turns) - 2, 0)), key=weight):
        if excess <= 0:
            break
        evicted.append(index)
        excess -= sizes[index]
    return sorted(evicted)


BY_COUNT: dict[str, Callable[[Sequence[Turn], Context], list[int]]] = {
    "sliding_window": lambda turns, context: sliding_window(turns, context.keep_last_turns),
    "head_tail": lambda turns, context: head_tail(turns, context.keep_last_messages),
}
"""Policies that evict whatever the size."""


def by_size(policy: str) -> Policy:
    """Return what a policy does when the working set is over the budget."""
    return salience if policy == "salience" else token_budget
