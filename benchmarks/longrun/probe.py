"""Look at every prompt that reaches the model: its size, what a provider could have cached, and what is missing."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

from everthread.evals.checks import broken_pairs
from everthread.window.tokens import TokenCounter

Tools = Sequence[dict[str, Any]]


def new_counter() -> TokenCounter:
    """Return an exact counter for gpt-4.1 with a cache of its own.

    `counter_for` shares one cache in the process: counting there would count for Everthread, too.
    """
    return TokenCounter("o200k_base", exact=True)


@dataclass
class Probe:
    """What the prompts of one thread have shown so far."""

    rule: str
    """Sentence of turn 1 that must stay."""
    window: int
    """Input limit of the model in tokens."""
    question: str = ""
    """The user's current message."""
    counter: TokenCounter = field(default_factory=new_counter)
    prompts: int = 0
    tokens: int = 0
    largest: int = 0
    fixed_tokens: int = 0
    """Tokens of the system messages and the tool schemas in the last prompt."""
    over_window: int = 0
    """Prompts that a provider would have refused."""
    pairs_tokens: int = 0
    """Tokens of all prompts that had one before them."""
    repeated_tokens: int = 0
    """Tokens at the head of these that were the same in the prompt before."""
    orphans: int = 0
    """Tool results without their call, over all prompts."""
    unanswered: int = 0
    """Calls without a result, over all prompts."""
    without_question: int = 0
    without_rule: int = 0
    last_has_rule: bool = False
    _previous: list[tuple[object, ...]] = field(default_factory=list)

    def saw(self, messages: Sequence[BaseMessage], tools: Tools) -> int:
        """Take note of a prompt and return its tokens."""
        sizes = [self.counter.tools(list(tools)), *map(self.counter.message, messages)]
        parts = [("tools", repr(tools)), *map(_part, messages)]
        size = sum(sizes) + 3
        self.prompts += 1
        self.tokens += size
        self.largest = max(self.largest, size)
        self.fixed_tokens = sizes[0] + sum(
            n for n, message in zip(sizes[1:], messages, strict=True) if message.type == "system"
        )
        self.over_window += size > self.window
        if self._previous:
            self.pairs_tokens += size
            self.repeated_tokens += self._repeated(parts, sizes)
        self._previous = parts
        self._look_for_gaps(messages)
        return size

    def _repeated(self, parts: Sequence[tuple[object, ...]], sizes: Sequence[int]) -> int:
        """Return the tokens that open both prompts, as a provider matches them: also inside a message."""
        tokens = 0
        for part, earlier, size in zip(parts, self._previous, sizes, strict=False):
            if part != earlier:
                if part[0] == earlier[0] and isinstance(part[1], str) and isinstance(earlier[1], str):
                    tokens += max(self.counter.text(_common(part[1], earlier[1])) - 1, 0)
                break
            tokens += size
        return tokens

    def _look_for_gaps(self, messages: Sequence[BaseMessage]) -> None:
        orphans, unanswered = broken_pairs(messages)
        self.orphans += len(orphans)
        self.unanswered += len(unanswered)
        texts = [str(message.text) for message in messages if message.type != "system"]
        systems = [str(message.text) for message in messages if message.type == "system"]
        self.without_question += not any(self.question in text for text in texts)
        # langmem puts its summary into a system message.
        self.last_has_rule = any(self.rule in text for text in (*texts, *systems))
        self.without_rule += not self.last_has_rule

    @property
    def cacheable_share(self) -> float | None:
        """Share of the prompt tokens that repeat the head of the prompt before."""
        return self.repeated_tokens / self.pairs_tokens if self.pairs_tokens else None

    def report(self) -> dict[str, Any]:
        """Return the figures."""
        return {
            "prompts": self.prompts,
            "prompt_tokens_mean": round(self.tokens / self.prompts) if self.prompts else None,
            "prompt_tokens_max": self.largest,
            "fixed_tokens": self.fixed_tokens,
            "prompts_over_window": self.over_window,
            "cacheable_share": self.cacheable_share,
            "orphans": self.orphans,
            "unanswered_calls": self.unanswered,
            "prompts_without_question": self.without_question,
            "prompts_without_rule": self.without_rule,
            "rule_in_last_prompt": self.last_has_rule,
        }


def _part(message: BaseMessage) -> tuple[object, ...]:
    calls = repr(message.tool_calls) if isinstance(message, AIMessage) else getattr(message, "tool_call_id", "")
    content = message.content if isinstance(message.content, str) else repr(message.content)
    return (message.type, content, calls)


def _common(text: str, earlier: str) -> str:
    """Return how both texts begin."""
    pairs = enumerate(zip(text, earlier, strict=False))
    return text[: next((place for place, (one, other) in pairs if one != other), min(len(text), len(earlier)))]
