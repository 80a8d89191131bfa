"""Assemble the prompt, stable parts first, and measure it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from zlib import crc32

from langchain_core.messages import AIMessage, BaseMessage, SystemMessage

from everthread.errors import BudgetError
from everthread.memory.rendering import render_notes, render_pins, render_quotes
from everthread.memory.text.words import same_start
from everthread.state.marks import MARK, is_recalled, is_synthetic, synthetic
from everthread.state.notes import Note
from everthread.state.steering import Quote
from everthread.window.budget import Budget
from everthread.window.tokens import TokenCounter
from everthread.window.turns import legal, opens_turn, question_of

CHECKSUM_BYTES = 4
"""Of the tools and of each message, in `Prompt.prefix`."""


@dataclass(frozen=True)
class Prompt:
    """What one call sends, and what it weighs."""

    messages: list[BaseMessage]
    tokens: int
    """Tokens of messages and tool schemas."""
    breakdown: dict[str, int]
    prefix: bytes
    """Four bytes for the tools and for each message, to compare with the next prompt."""
    cacheable_tokens: int
    """Tokens at the head that are the same as in the previous prompt."""
    returned_pins: int
    """Pins that the conversation no longer shows and that stand in a block of their own."""
    head_moved: bool
    """Something ahead of the newest messages of the previous prompt is not as it was."""


@dataclass(frozen=True)
class Parts:
    """What a prompt is made of."""

    system: SystemMessage
    working_set: Sequence[BaseMessage]
    memory: BaseMessage | None = None
    """What stands behind the system message; None when that has it all. `budget.fixed` counts it."""
    summary: str = ""
    """Rendered summary; empty when nothing was compacted."""
    session_notes: Sequence[Note] = ()
    pins: Sequence[str] = ()
    """Sentences that must be in the prompt word for word."""
    quotes: Sequence[Quote] = ()
    """Messages of which the same is true."""


def summary_pair(text: str) -> tuple[BaseMessage, ...]:
    """Return the summary as the synthetic request and answer that stand for what was compacted."""
    return (
        synthetic("summary_request", "Summarize the conversation so far."),
        AIMessage(content=text, additional_kwargs={MARK: {"kind": "summary"}}),
    )


def returning_notes(notes: Sequence[Note], working_set: Sequence[BaseMessage]) -> list[Note]:
    """Return the session notes whose source turn is no longer in the working set."""
    here = {message.id for message in working_set}
    return [note for note in notes if here.isdisjoint(note.message_ids)]


def inserted(
    parts: Parts, notes: Sequence[Note], pins: Sequence[str], quotes: Sequence[Quote] = ()
) -> dict[str, Sequence[BaseMessage]]:
    """Return the synthetic messages of a prompt by category."""
    pinned = [render_pins(pins), render_quotes(quote.line for quote in quotes)]
    blocks = [block for block in (*pinned, render_notes("Session notes", notes)) if block]
    return {
        "summary": summary_pair(parts.summary) if parts.summary else (),
        "session_notes": (synthetic("session_notes", "\n".join(blocks)),) if blocks else (),
    }


def reserved(parts: Parts, counter: TokenCounter) -> int:
    """Return the tokens of what stands beside the messages: summary, session notes, pins.

    All session notes and pins count, since an eviction may bring back any of them.
    """
    extra = inserted(parts, parts.session_notes, parts.pins, parts.quotes)
    return sum(sum(counter.sizes(block)) for block in extra.values())


def assemble(parts: Parts, budget: Budget, counter: TokenCounter, *, previous: bytes = b"", tools: str = "") -> Prompt:
    """Put a prompt together: system, anchor, summary, session notes, turns with what was recalled for their questions.

    Args:
        previous: `prefix` of the thread's last prompt.
        tools: what tells one list of bound tools from another; they stand ahead of the system message.

    Raises:
        BudgetError: the prompt is over the budget, or the user's question is not in it.
    """
    history = legal(parts.working_set)
    if question_of(history) is None:
        raise BudgetError("there is no message of the user to answer; send one, or `end_session` alone")
    notes = returning_notes(parts.session_notes, parts.working_set)
    blocks = inserted(parts, notes, ())
    head = [parts.system, parts.memory] if parts.memory else [parts.system]
    messages = [*head, *_ordered(history, blocks)]
    # A pin that the conversation itself shows needs no second place.
    returned = verify(messages, parts.pins)
    quoted = _unquoted(messages, parts.quotes)
    if returned or quoted:
        blocks = inserted(parts, notes, returned, quoted)
        messages = [*head, *_ordered(history, blocks)]
        if missing := [*verify(messages, parts.pins), *_unquoted(messages, parts.quotes)]:
            raise BudgetError(f"{len(missing)} pinned sentences are not in the prompt word for word; shorten them")
    sizes = counter.sizes(messages)
    weights = {name: sum(counter.sizes(block)) for name, block in blocks.items()}
    weights["recalled"] = sum(size for message, size in zip(messages, sizes, strict=True) if is_recalled(message))
    # Whatever of the conversation no block of ours is.
    weights["history"] = sum(sizes[len(head) :]) - sum(weights.values())
    tokens = sum(budget.fixed.values()) + sum(weights.values())
    if tokens + budget.reply_reserve > budget.limit:
        raise BudgetError(
            f"the prompt has {tokens:,} tokens and the reply reserve {budget.reply_reserve:,}, but `window` is "
            f"{budget.limit:,}; raise `window` or lower `max_output_tokens`"
        )
    checksums = [_checksum(tools), *map(message_checksum, messages)]
    before = [previous[place : place + CHECKSUM_BYTES] for place in range(0, len(previous), CHECKSUM_BYTES)]
    same = same_start(checksums, before)
    return Prompt(
        messages=messages,
        tokens=tokens,
        breakdown=budget.breakdown(weights),
        prefix=b"".join(checksums),
        cacheable_tokens=budget.fixed.get("tools", 0) + sum(sizes[: same - 1]) if same else 0,
        returned_pins=len(returned) + len(quoted),
        head_moved=same < len(before),
    )


def verify(prompt: Sequence[BaseMessage], pins: Sequence[str]) -> list[str]:
    """Return the pins that neither the user nor a block of ours says in the prompt, word for word, in their order.

    A reply or a page with the same words may quote them to say that they do not hold; so may a line of the summary, but
    for those that are nothing else.
    """
    if not pins:
        return []
    texts = [
        str(message.text) for message in prompt if message.type in ("human", "system") and not is_recalled(message)
    ]
    summaries = [str(message.text) for message in prompt if message.type == "ai" and is_synthetic(message)]
    lines = {line for text in summaries for line in text.splitlines()}
    return [pin for pin in pins if f"- {pin}" not in lines and not any(pin in text for text in texts)]


def _unquoted(prompt: Sequence[BaseMessage], quotes: Sequence[Quote]) -> list[Quote]:
    """Return the pinned messages that neither their speaker nor a block of ours says in the prompt."""
    others = [str(message.text) for message in prompt if message.type != "human"]
    return [
        quote
        for quote in quotes
        if verify(prompt, [quote.text]) and (quote.speaker == "user" or not any(quote.text in text for text in others))
    ]


def _ordered(history: Sequence[BaseMessage], blocks: Mapping[str, Sequence[BaseMessage]]) -> list[BaseMessage]:
    """Place the summary and session notes after the anchor."""
    anchor = next(place for place, message in enumerate(history) if opens_turn(message))
    return [*history[: anchor + 1], *blocks["summary"], *blocks["session_notes"], *history[anchor + 1 :]]


def message_checksum(message: BaseMessage) -> bytes:
    """Return four bytes that tell what a provider caches of a message from anything else."""
    calls = message.tool_calls if isinstance(message, AIMessage) else getattr(message, "tool_call_id", "")
    return _checksum(f"{message.type}\x00{message.content}\x00{calls}")


def _checksum(text: str) -> bytes:
    return crc32(text.encode("utf-8", "replace")).to_bytes(CHECKSUM_BYTES, "big")
