"""Check prompts by what is sent, independently of the code that assembles them."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from everthread.memory.text.words import same_start
from everthread.models.scripted import Tools
from everthread.state.marks import is_masked, is_synthetic
from everthread.state.reducer import clean
from everthread.window.tokens import TokenCounter

OVERRUN = "overrun"
ORPHAN = "orphan_tool_message"
UNANSWERED = "unanswered_call"
MISSING_QUESTION = "missing_question"
MISSING_ANCHOR = "missing_anchor"
MISPLACED_SYSTEM = "misplaced_system"
LOST = "lost_message"
REPEATED = "repeated_message"
DISORDERED = "disordered_messages"

_ANCHOR_HEAD = 40
"""Characters that an anchor keeps at the least when it is shortened."""


@dataclass(frozen=True)
class Violation:
    """Something that a provider refuses or a user would miss."""

    what: str
    call: int
    """Number of the model call, from 1; 0 when it is not about one call."""
    tokens: int
    """Tokens of the prompt; 0 when it is not about one call."""
    detail: str

    def __str__(self) -> str:
        where = f"call {self.call}, {self.tokens:,} tokens: " if self.call else ""
        return f"{where}{self.what.replace('_', ' ')}: {self.detail}"


class PromptChecker:
    """Check and measure every prompt of one thread.

    Args:
        window: input limit of the model in tokens.
        reserve: tokens that must stay free for the reply.
        instructions: what the system message must begin with.
    """

    def __init__(self, *, window: int, reserve: int, counter: TokenCounter, instructions: str) -> None:
        self.window = window
        self.violations: list[Violation] = []
        self.calls = 0
        self.max_prompt_tokens = 0
        self.prompt_tokens = 0
        self.cacheable_prefix_tokens = 0
        self.sizes: list[tuple[int, int]] = []
        """Of each prompt: its tokens, and those at its head that the one before had too."""
        self._reserve = reserve
        self._counter = counter
        self._instructions = instructions.strip()
        self._anchor: HumanMessage | None = None
        self._question: HumanMessage | None = None
        self._messages: list[BaseMessage] = []
        self._tools: Tools = []
        self._tool_tokens = 0

    def expect(self, messages: Iterable[BaseMessage]) -> None:
        """Note what the user says next: the first message of all is the anchor, the newest the question."""
        for message in messages:
            if isinstance(message, HumanMessage):
                self._anchor = self._anchor or message
                self._question = message

    def count(self, what: str) -> int:
        """Return how often something was violated."""
        return sum(violation.what == what for violation in self.violations)

    def check(self, messages: list[BaseMessage], tools: Tools) -> None:
        """Check one prompt as it is sent."""
        self.calls += 1
        before, self._messages = self._messages, list(messages)
        tools_before, self._tools = self._tools, tools
        if tools != tools_before:
            self._tool_tokens = self._counter.tools(tools)
        tokens = self._counter.messages(messages) + self._tool_tokens
        self.max_prompt_tokens = max(self.max_prompt_tokens, tokens)
        self.prompt_tokens += tokens
        cacheable = self._common(tools_before, before) if before else 0
        self.cacheable_prefix_tokens += cacheable
        self.sizes.append((tokens, cacheable))
        for what, detail in self._problems(messages, tokens):
            self.violations.append(Violation(what, self.calls, tokens, detail))

    def _problems(self, messages: list[BaseMessage], tokens: int) -> Iterable[tuple[str, str]]:
        if tokens + self._reserve > self.window:
            over = tokens + self._reserve - self.window
            yield OVERRUN, f"with the reply reserve of {self._reserve:,} it is {over:,} over the window"
        orphans, unanswered = broken_pairs(messages)
        yield from ((ORPHAN, f"the result of {call!r} does not follow its call") for call in orphans)
        yield from ((UNANSWERED, f"the call {call!r} has no result right after it") for call in unanswered)
        yield from self._missing(messages)

    def _missing(self, messages: list[BaseMessage]) -> Iterable[tuple[str, str]]:
        first = messages[0]
        if not isinstance(first, SystemMessage) or not str(first.text).startswith(self._instructions):
            yield MISPLACED_SYSTEM, "the prompt does not begin with the agent's instructions"
        if any(isinstance(message, SystemMessage) for message in messages[1:]):
            yield MISPLACED_SYSTEM, "a system message stands inside the conversation"
        said = [message for message in messages if isinstance(message, HumanMessage) and not is_synthetic(message)]
        if self._question is not None and not (said and _same(said[-1], self._question)):
            yield MISSING_QUESTION, f"the user's newest message {self._question.id!r} is not there word for word"
        if self._anchor is not None and not any(_stands_for(message, self._anchor) for message in said):
            yield MISSING_ANCHOR, f"the user's first message {self._anchor.id!r} is not there"

    def _common(self, tools_before: Tools, before: list[BaseMessage]) -> int:
        """Return the tokens that open both prompts; tool schemas come first, as providers render them."""
        if self._tools == tools_before:
            common = same_start(*(list(map(_as_sent, messages)) for messages in (before, self._messages)))
            return self._tool_tokens + sum(map(self._counter.message, self._messages[:common]))
        common = same_start(tools_before, self._tools)
        return self._counter.tools(self._tools[:common]) if common else 0


def broken_pairs(messages: Iterable[BaseMessage]) -> tuple[list[str], list[str]]:
    """Return the call ids of results without a call, and of calls without a result.

    As providers have it, the results stand right after the assistant message with the calls, each once.
    """
    orphans: list[str] = []
    unanswered: list[str] = []
    waiting: list[str] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            if message.tool_call_id in waiting:
                waiting.remove(message.tool_call_id)
            else:
                orphans.append(message.tool_call_id)
            continue
        unanswered += waiting
        waiting = [str(call["id"]) for call in message.tool_calls] if isinstance(message, AIMessage) else []
    return orphans, unanswered + waiting


def compare(sent: Sequence[BaseMessage], kept: Sequence[BaseMessage]) -> list[Violation]:
    """Return what a thread lost, repeats or has in another order than it was sent.

    Args:
        sent: every message that the thread received, in order.
        kept: what can be read back, oldest first.
    """
    expected, actual = [_identity(message) for message in sent], [_identity(message) for message in kept]
    gone, extra = Counter(expected) - Counter(actual), Counter(actual) - Counter(expected)
    violations = [
        Violation(what, 0, 0, f"{kind} message {name!r}")
        for what, several in ((LOST, gone), (REPEATED, extra))
        for kind, name, *_ in several.elements()
    ]
    if not violations and expected != actual:
        place = same_start(expected, actual)
        violations.append(Violation(DISORDERED, 0, 0, f"from {expected[place][0]} message {expected[place][1]!r} on"))
    return violations


def _identity(message: BaseMessage) -> tuple[str, str, str, str]:
    """Return what makes a message itself: a result is known by its call, since the graph names it anew."""
    calls = [(call["id"], call["name"], call["args"]) for call in getattr(message, "tool_calls", [])]
    name = message.tool_call_id if isinstance(message, ToolMessage) else message.id
    return message.type, str(name), repr(_content(message)), repr(calls)


def _content(message: BaseMessage) -> Any:
    return clean(message.content) if isinstance(message.content, str) else message.content


def _as_sent(message: BaseMessage) -> object:
    """Return what reaches the provider: ids and our marks do not."""
    calls = [(call["id"], call["name"], call["args"]) for call in getattr(message, "tool_calls", [])]
    return message.type, message.content, calls, getattr(message, "tool_call_id", None)


def _same(message: BaseMessage, expected: HumanMessage) -> bool:
    return message.id == expected.id and message.content == _content(expected)


def _stands_for(message: BaseMessage, anchor: HumanMessage) -> bool:
    """Tell whether this is the anchor, whole or shortened with a handle to the rest."""
    if message.id != anchor.id:
        return False
    head = str(message.text)[:_ANCHOR_HEAD]
    return _same(message, anchor) or (is_masked(message) and clean(str(anchor.text)).startswith(head))
