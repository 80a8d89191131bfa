"""The budget: what the history may take of the window."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from everthread.errors import BudgetError
from everthread.window.tokens import Accuracy, TokenCounter

OVERFLOW_STEP = 0.10
"""Share taken off the budget after each overflow: the provider refused the prompt as too long."""

MAX_OVERFLOWS = 5
"""Overflows of one prompt after which the run ends with an error."""

UNKNOWN_WINDOW = 32_000
"""Input limit of a model without a profile; overflow recovery corrects what is too much."""

_LARGEST_DEFAULT_RESERVE = 4_096


@dataclass(frozen=True)
class Budget:
    """Tokens for the history, and where the rest of the window goes."""

    window: int
    """Input limit of the model."""
    reply_reserve: int
    fixed: Mapping[str, int] = field(default_factory=dict)
    """Tokens of what is in every prompt: system, profile, notes, tools."""
    safety_fraction: float = 1.0
    ceiling: int | None = None
    """Tokens that the history may take after an overflow."""
    counted_window: int | None = None
    """The window in our tokens, when the provider's reports differ from our counts."""

    @property
    def limit(self) -> int:
        """The window in our tokens."""
        return self.window if self.counted_window is None else self.counted_window

    @property
    def room(self) -> int:
        """Tokens left when the reply reserve and everything fixed are taken off."""
        return self.limit - self.reply_reserve - sum(self.fixed.values())

    @property
    def tokens(self) -> int:
        """Tokens for the history: summary, session notes, recalled passages and messages."""
        tokens = math.floor(self.room * self.safety_fraction)
        return tokens if self.ceiling is None else min(tokens, self.ceiling)

    def breakdown(self, history: Mapping[str, int]) -> dict[str, int]:
        """Return tokens by category; they add up to the window.

        Args:
            history: tokens of summary, session_notes, recalled and history.
        """
        used = sum(history.values())
        return {
            **self.fixed,
            **history,
            "reply_reserve": self.reply_reserve,
            "safety": self.room - self.tokens + self.window - self.limit,
            "free": self.tokens - used,
        }

    def check(self) -> "Budget":
        """Return the budget itself when it leaves room for a history.

        Raises:
            BudgetError: what is in every prompt fills the window.
        """
        if math.floor(self.room * self.safety_fraction) > 0:
            return self
        parts = ", ".join(f"{name} {tokens:,}" for name, tokens in self.fixed.items() if tokens)
        needed = self.window - self.room + 1
        raise BudgetError(
            f"`window` is {self.window:,} tokens but what is in every prompt already needs more: {parts}, "
            f"reply reserve {self.reply_reserve:,}; raise `window` well above {needed:,}, bind fewer tools or "
            "shorten the instructions"
        )


def safety_fraction_for(accuracy: Accuracy, counter: TokenCounter) -> float:
    """Return the share of the budget that is used, by how far the counts can be trusted."""
    return counter.first_fraction if accuracy == "estimated" else 0.95


def stepped_down(budget: int, used: int, *, reported: tuple[int | None, int | None] = (None, None)) -> int:
    """Return the history's ceiling after an overflow: a tenth less than what was refused, or what the provider says.

    Args:
        budget: tokens the history was allowed.
        used: tokens the history took in the refused prompt.
        reported: tokens of the refused prompt and the limit, as the provider counts them, when it says so.
    """
    prompt, limit = reported
    share = 1 - OVERFLOW_STEP
    if prompt and limit and limit < prompt:
        share = min(share, share * limit / prompt)
    return math.floor(min(budget, used) * share)


def reply_reserve(window: int, max_output_tokens: int | None) -> int:
    """Return the tokens kept free for the reply: what was asked for, else an eighth of the window, at most 4,096.

    Raises:
        BudgetError: the reserve does not fit the window.
    """
    if max_output_tokens is None:
        return min(_LARGEST_DEFAULT_RESERVE, window // 8)
    if max_output_tokens >= window:
        raise BudgetError(
            f"`max_output_tokens` ({max_output_tokens:,}) leaves no room in the model's window of {window:,} tokens; "
            f"lower it below {window:,}"
        )
    return max_output_tokens
