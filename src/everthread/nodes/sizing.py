"""Size the working set against its budget."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from langchain_core.messages import BaseMessage

from everthread.nodes.wiring import Wiring, parts_of
from everthread.state import Context, Memory, State, Summary
from everthread.window.assembly import Parts, reserved
from everthread.window.budget import Budget
from everthread.window.compaction import Limits
from everthread.window.eviction import BY_COUNT, UNANSWERED
from everthread.window.pricing import pays
from everthread.window.tokens import TokenCounter
from everthread.window.turns import last_turn as newest_turn
from everthread.window.turns import split


@dataclass(frozen=True)
class Sizes:
    """What the working set takes, and what it may take."""

    budget: Budget
    parts: Parts
    counter: TokenCounter
    summary: Summary | None
    limits: Limits

    @classmethod
    def of(cls, state: State, context: Context, wiring: Wiring) -> "Sizes":
        """Measure a state.

        Raises:
            BudgetError: what is in every prompt fills the window.
        """
        # The reader of handles counts in any case: masking something binds it.
        budget = wiring.budget(state, context, reads_back=True)
        known = wiring.summary(state)
        return cls(
            budget=budget,
            parts=parts_of(state, context, wiring),
            counter=wiring.counter(context),
            summary=known[0] if known else None,
            limits=_limits(budget.tokens, context),
        )

    @cached_property
    def used(self) -> int:
        """Tokens of the working set as it stands."""
        return sum(self.counter.sizes(self.parts.working_set))

    @cached_property
    def room(self) -> int:
        """Tokens that the messages may take as things stand."""
        return self.budget.tokens - reserved(self.parts, self.counter)

    @property
    def room_least(self) -> int:
        """Tokens that the messages may take when the summary gives way, all but the standing instructions."""
        if self.summary is None:
            return self.room
        standing = sum(self.counter.text(rule) + 3 for rule in self.summary.standing)
        return self.room + max(self.counter.text(self.parts.summary) - standing - 40, 0)

    def limits_for(self, used: int) -> Limits:
        """Return the limits of a summary that fits beside messages of so many tokens."""
        now = self.counter.text(self.parts.summary) if self.parts.summary else 0
        return self.limits.within(min(self.room - used + now, self.limits.total))


def _limits(budget: int, context: Context) -> Limits:
    """Return what a summary may take: under every policy but `summarize` only the user's rules."""
    limits = Limits.of(budget)
    return limits if context.policy == "summarize" else Limits(0, 0, limits.standing)


def fits(state: State, context: Context, wiring: Wiring) -> bool:
    """Tell whether `trim` has surely nothing to do, so that the graph can go on without it."""
    if context.policy in BY_COUNT:
        return False
    room = wiring.budget(state, context, reads_back=True).tokens - wiring.beside(state, context)
    return _used(state, context, wiring) <= room - UNANSWERED


def is_full(state: State, context: Context, wiring: Wiring) -> bool:
    """Tell whether a compaction is due: over the high watermark with no reason to wait, or over `context_limit`.

    Above the watermark the prompt's cached head is worth more than what a compaction saves, until the
    next turn might no longer fit; `trim` holds the budget when it is longer than expected.
    """
    messages: Sequence[BaseMessage] = state.get("messages", [])
    if context.policy != "summarize" or not messages:
        return False
    if context.context_limit is not None and len(split(messages)) > context.context_limit:
        return True
    if _is_below(state, context, wiring):
        return False
    # What was recalled leaves the prompt by itself, so it is no reason to compact; the next turn recalls again.
    memory = state.get("memory") or {}
    recalled = wiring.counter(context).text(memory.get("recalled", ""))
    if recalled:
        without: Memory = {**state["memory"], "recalled": ""}
        state = {**state, "memory": without}
    sizes = Sizes.of(state, context, wiring)
    if recalled and _is_below(state, context, wiring):
        return False
    used = sizes.used
    growth, left = last_turn(sizes) + recalled, int(sizes.room * context.low_watermark)
    calls = max(2 * (sizes.room - left) // growth, 1)
    return sizes.room - used < growth or pays(saved=used - left, reread=left, calls=calls)


def _used(state: State, context: Context, wiring: Wiring) -> int:
    return sum(wiring.counter(context).sizes(state.get("messages", [])))


def _is_below(state: State, context: Context, wiring: Wiring) -> bool:
    """Tell whether the prompt is below the high watermark."""
    budget = wiring.budget(state, context, reads_back=True).tokens
    return _used(state, context, wiring) + wiring.beside(state, context) <= budget * context.high_watermark


def last_turn(sizes: Sizes) -> int:
    """Return the tokens of the newest turn, which is what the next one may need."""
    return max(newest_turn(sizes.parts.working_set).tokens(sizes.counter.message), 1)
