"""Assemble the prompt, stable parts first, and measure it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from zlib import crc32

from langchain_core.messages import AIMessage, BaseMessage, SystemMessage

from everthread.errors import BudgetError
from everthread.memory.rendering import render_notes, render_pins
from everthread.state.marks import MARK, marks, synthetic
from everthread.state.notes import Note
from everthread.window.budget import Budget
from everthread.window.tokens import TokenCounter
from everthread.window.turns import anchor_of, legal, question_of
from everthread.window.verification import verify

_DIGEST_BYTES = 4

_RECALLED = b"\x00\x00"
"""Begins the digest of recalled passages and of nothing else."""


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
    summary: str = ""
    """Rendered summary; empty when nothing was compacted."""
    session_notes: Sequence[Note] = ()
    pins: Sequence[str] = ()
    """Sentences that must be in the prompt word for word."""
    recalled: str = ""
    """Rendered passages for the current question; empty when none were recalled."""


# The same few blocks stand in every prompt of a turn, and a message that is made anew is counted anew.
@lru_cache(maxsize=64)
def summary_pair(text: str) -> tuple[BaseMessage, ...]:
    """Return the summary as the synthetic request and answer that stand for what was compacted."""
    return (
        synthetic("summary_request", "Summarize the conversation so far."),
        AIMessage(content=text, additional_kwargs={MARK: {"kind": "summary"}}),
    )


@lru_cache(maxsize=64)
def _block(kind: str, text: str) -> BaseMessage:
    return synthetic(kind, text)


def returning_notes(notes: Sequence[Note], working_set: Sequence[BaseMessage]) -> list[Note]:
    """Return the session notes whose source turn is no longer in the working set."""
    here = {message.id for message in working_set}
    return [note for note in notes if not any(source in here for told in note.sources for source in told.message_ids)]


def inserted(parts: Parts, notes: Sequence[Note], pins: Sequence[str]) -> dict[str, Sequence[BaseMessage]]:
    """Return the synthetic messages of a prompt by category.

    Args:
        parts: summary and recalled passages.
        notes: session notes to show.
        pins: sentences to show.
    """
    blocks = [block for block in (render_pins(pins), render_notes("Session notes", notes)) if block]
    return {
        "summary": summary_pair(parts.summary) if parts.summary else (),
        "session_notes": (_block("session_notes", "\n".join(blocks)),) if blocks else (),
        "recalled": (_block("recalled", parts.recalled),) if parts.recalled else (),
    }


def reserved(parts: Parts, counter: TokenCounter) -> int:
    """Return the tokens of what stands beside the messages: summary, session notes, pins, recalled passages.

    All session notes and pins count, since an eviction may bring back any of them.
    """
    extra = inserted(parts, parts.session_notes, parts.pins)
    return sum(sum(counter.sizes(block)) for block in extra.values())


def assemble(parts: Parts, budget: Budget, counter: TokenCounter, *, previous: bytes = b"", tools: str = "") -> Prompt:
    """Put a prompt together: system, anchor, summary, session notes, turns, recalled passages, question.

    Args:
        parts: what goes in.
        budget: what it may take.
        counter: counts tokens.
        previous: `prefix` of the thread's last prompt.
        tools: what tells one list of bound tools from another; they stand ahead of the system message.

    Raises:
        BudgetError: the prompt is over the budget, or the user's question is not in it.
    """
    said = legal(parts.working_set)
    if question_of(said) is None:
        raise BudgetError("there is no message of the user to answer; send one, or `end_session` alone")
    notes = returning_notes(parts.session_notes, parts.working_set)
    extra = inserted(parts, notes, ())
    history = _ordered(said, extra)
    # A pin that the conversation itself shows needs no second place.
    returned = verify([parts.system, *history], parts.pins)
    if returned:
        extra = inserted(parts, notes, returned)
        history = _ordered(said, extra)
        if missing := verify([parts.system, *history], parts.pins):
            raise BudgetError(f"{len(missing)} pinned sentences are not in the prompt word for word; shorten them")
    messages: list[BaseMessage] = [parts.system, *history]
    sizes = counter.sizes(messages)
    weights = {name: sum(counter.sizes(block)) for name, block in extra.items()}
    # Whatever of the conversation no block of ours is.
    weights["history"] = sum(sizes) - sizes[0] - sum(weights.values())
    tokens = sum(budget.fixed.values()) + sum(weights.values())
    if tokens + budget.reply_reserve > budget.limit:
        raise BudgetError(
            f"the prompt has {tokens:,} tokens and the reply reserve {budget.reply_reserve:,}, but `window` is "
            f"{budget.limit:,}; raise `window` or lower `max_output_tokens`"
        )
    prefix = b"".join((_checksum(tools), *map(_digest, messages)))
    same = _same(prefix, previous)
    cacheable = budget.fixed.get("tools", 0) + sum(sizes[: same - 1]) if same else 0
    return Prompt(
        messages=messages,
        tokens=tokens,
        breakdown=budget.breakdown(weights),
        prefix=prefix,
        cacheable_tokens=cacheable,
        returned_pins=len(returned),
        head_moved=same < _head(previous),
    )


def _ordered(history: list[BaseMessage], extra: dict[str, Sequence[BaseMessage]]) -> list[BaseMessage]:
    """Place the summary and session notes after the anchor, recalled passages before the question."""
    anchor, question = anchor_of(history), question_of(history)
    if anchor is None or question is None:
        return list(history)
    first = next(place for place, message in enumerate(history) if message is anchor) + 1
    last = len(history) - 1 - next(back for back, message in enumerate(reversed(history)) if message is question)
    ordered = [*history[:first], *extra["summary"], *extra["session_notes"], *history[first:]]
    place = last if last < first else last + len(ordered) - len(history)
    return [*ordered[:place], *extra["recalled"], *ordered[place:]]


def _digest(message: BaseMessage) -> bytes:
    if marks(message).get("kind") == "recalled":
        return _RECALLED + _checksum(str(message.content))[len(_RECALLED) :]
    calls = message.tool_calls if isinstance(message, AIMessage) else getattr(message, "tool_call_id", "")
    return _checksum(f"{message.type}\x00{message.content}\x00{calls}")


def _head(prefix: bytes) -> int:
    """Return how many digests of a prefix are of its head: recalled passages and what follows change every turn."""
    places = range(0, len(prefix), _DIGEST_BYTES)
    marked = (place for place in places if prefix.startswith(_RECALLED, place))
    return next(marked, len(prefix)) // _DIGEST_BYTES


def _checksum(text: str) -> bytes:
    checksum = crc32(text.encode("utf-8", "replace")).to_bytes(_DIGEST_BYTES, "big")
    return b"\x01" + checksum[1:] if checksum.startswith(_RECALLED) else checksum


def _same(prefix: bytes, previous: bytes) -> int:
    """Return how many digests open both prefixes."""
    if prefix.startswith(previous):
        return len(previous) // _DIGEST_BYTES
    pairs = enumerate(zip(prefix, previous, strict=False))
    shorter = min(len(prefix), len(previous))
    return next((place for place, (one, other) in pairs if one != other), shorter) // _DIGEST_BYTES
