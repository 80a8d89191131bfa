"""Measure the next prompt against its budget; the one place where nodes and edges get their sizes from."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from langchain_core.messages import BaseMessage

from everthread.nodes.deps import ModelWithTools
from everthread.state import Context, PromptPlan, State, Summary
from everthread.state.marks import is_recalled, sequence
from everthread.window.assembly import Parts, reserved
from everthread.window.budget import Budget, reply_reserve, safety_fraction_for
from everthread.window.calibration import Calibration
from everthread.window.compaction import HEADINGS, Limits
from everthread.window.eviction import UNANSWERED
from everthread.window.masking import handles_in
from everthread.window.policies import BY_COUNT
from everthread.window.pricing import calls_until_full, is_worth_now
from everthread.window.tokens import TokenCounter
from everthread.window.turns import legal, newest_turn, split


@dataclass(frozen=True)
class PromptSize:
    """What the next prompt takes and may take, in tokens."""

    budget: Budget
    parts: Parts
    counter: TokenCounter
    summary: Summary | None
    limits: Limits
    """What a summary may take."""

    @classmethod
    def of(cls, state: State, plan: PromptPlan, model: ModelWithTools, *, reads_back: bool = True) -> "PromptSize":
        """Measure the prompt of a state.

        Args:
            state: messages, calibration and ceiling.
            plan: the turn's plan, with window, reply reserve, safety fraction and policy of the run.
            reads_back: count the readers of what left the prompt as bound; masking or evicting something binds them.

        Raises:
            BudgetError: what is in every prompt fills the window.
        """
        budget = _budget(state, plan, model, reads_back=reads_back)
        limits = Limits.of(budget.tokens)
        if plan.context.policy != "summarize":
            # Under every other policy only the user's own rules are kept of what leaves.
            limits = Limits(0, 0, limits.constraints)
        return cls(budget, parts_of(plan, state.get("messages", [])), model.counter, plan.summary, limits)

    @cached_property
    def used(self) -> int:
        """Tokens of the messages."""
        return sum(self.counter.sizes(self.parts.working_set))

    @cached_property
    def room(self) -> int:
        """Tokens that the messages may take beside the summary, session notes and pins."""
        return self.budget.tokens - reserved(self.parts, self.counter)

    @property
    def room_without_story(self) -> int:
        """Tokens that the messages may take when the summary shrinks to the user's own rules."""
        if self.summary is None:
            return self.room
        return self.room + max(self.counter.text(self.parts.summary) - self.rules_tokens(self.summary.constraints), 0)

    def rules_tokens(self, rules: Collection[str]) -> int:
        """Return the tokens of a summary that has only rules of the user."""
        return sum(self.counter.text(rule) + 3 for rule in rules) + HEADINGS

    @property
    def last_turn(self) -> int:
        """Tokens of the newest turn, which is what the next one may need."""
        return max(sum(self.counter.sizes(legal(newest_turn(self.parts.working_set)))), 1)

    def watermarks(self, context: Context) -> tuple[int, int]:
        """Return the tokens of the history down to which evictions go, and above which they begin."""
        tokens = self.budget.tokens
        high = context.high_watermark if context.policy == "summarize" else 1.0
        return int(tokens * context.low_watermark), int(tokens * high)

    @property
    def fits(self) -> bool:
        """Whether the messages surely fit, with what answers to cut-off calls may add."""
        return self.used <= self.room - UNANSWERED

    def limits_beside(self, used: int) -> Limits:
        """Return the limits of a summary that fits beside messages of so many tokens."""
        summary = self.counter.text(self.parts.summary) if self.parts.summary else 0
        return self.limits.within(min(self.room - used + summary, self.limits.total))

    def without(self, messages: Sequence[BaseMessage]) -> "PromptSize":
        """Return the size of the same prompt without some of its messages."""
        ids = {message.id for message in messages}
        kept = [message for message in self.parts.working_set if message.id not in ids]
        return replace(self, parts=replace(self.parts, working_set=kept))


def needs_trim(size: PromptSize, context: Context) -> bool:
    """Tell whether `trim` may have something to do."""
    return context.policy in BY_COUNT or not size.fits


def is_full(size: PromptSize, context: Context) -> bool:
    """Tell whether a compaction is due: over the high watermark with no reason to wait, or over `context_limit`.

    Above the watermark the prompt's cached head is worth more than what a compaction saves, until the
    next turn might no longer fit; `trim` holds the budget when it is longer than expected. This is by what a compaction
    aims at; `nodes.summarize` asks again with what it would fold.
    """
    messages = size.parts.working_set
    if context.policy != "summarize" or not messages:
        return False
    if context.context_limit is not None and len(split(messages)) > context.context_limit:
        return True
    room, used = size.room, size.used
    if used + size.budget.tokens - room <= size.budget.tokens * context.high_watermark:
        return False
    growth, left = size.last_turn, int(room * context.low_watermark)
    calls = calls_until_full(room=room, used=left, growth=growth)
    return is_worth_now(headroom=room - used, growth=growth, saved=used - left, reread=left, calls=calls)


def parts_of(plan: PromptPlan, messages: Sequence[BaseMessage]) -> Parts:
    """Return what the next prompt is made of."""
    return Parts(
        system=plan.system,
        memory=plan.memory,
        working_set=messages,
        summary=plan.summary_text,
        session_notes=plan.session_notes,
        pins=plan.pins,
        quotes=plan.quotes,
    )


def calibration_of(state: State, model: ModelWithTools) -> Calibration:
    """Return what the provider's reports have taught about our counts of this model."""
    saved: dict[str, Any] | None = state.get("calibration")
    if saved and saved.get("model") == model.name:
        return Calibration.from_json(saved)
    return Calibration(exact=model.counter.exact)


def has_readers(state: State) -> bool:
    """Tell whether the readers are bound: since the first handle was shown or the first message evicted.

    Where recall looks into the user's other threads there is something to read from the beginning.

    They stay bound when that handle has left: providers put tools ahead of everything, so every
    change of the list costs the whole cached prompt.
    """
    messages, plan = state.get("messages", []), state.get("plan")
    has_others = plan is not None and plan.context.recall_threads == "mine"
    return state.get("reads_back", False) or has_others or is_evicted(messages) or bool(handles_in(messages))


def is_evicted(messages: Sequence[BaseMessage]) -> bool:
    """Tell whether messages of the thread have left the working set."""
    own = [message for message in messages if not is_recalled(message)]
    # Places count from 0: a thread that has lost nothing has as many messages as its newest place says, or more.
    return bool(own) and sequence(own[-1]) >= len(own)


def input_limit(context: Context, model: ModelWithTools) -> int:
    """Return the most tokens that a prompt and its reply may take: the dial, else the model's own profile."""
    return model.window if context.window is None else context.window


def _budget(state: State, plan: PromptPlan, model: ModelWithTools, *, reads_back: bool) -> Budget:
    context = plan.context
    window = input_limit(context, model)
    calibration = calibration_of(state, model)
    default = safety_fraction_for(calibration.accuracy, model.counter)
    budget = Budget(
        window=window,
        counted_window=min(calibration.inverse(window), 2 * window) if calibration.anchors else None,
        reply_reserve=reply_reserve(window, context.max_output_tokens),
        fixed={**plan.sizes, "tools": model.bound(reads_back=reads_back).tool_tokens},
        safety_fraction=default if context.safety_fraction is None else context.safety_fraction,
        ceiling=state.get("ceiling"),
    )
    if calibration.anchors and budget.room <= 0:
        # Reports that leave no room at all are wrong, or the window is: our own count decides.
        budget = replace(budget, counted_window=None)
    return budget.check()
