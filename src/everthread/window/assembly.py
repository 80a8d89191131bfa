"""Assemble the prompt, stable parts first, and measure it."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from langchain_core.messages import AIMessage, BaseMessage, SystemMessage

from everthread.errors import BudgetError
from everthread.memory.rendering import render_notes
from everthread.state.marks import MARK, synthetic
from everthread.state.notes import Note
from everthread.window.budget import Budget
from everthread.window.tokens import TokenCounter
from everthread.window.turns import anchor_of, legal, question_of

_DIGEST_BYTES = 4


@dataclass(frozen=True)
class Prompt:
    """What one call sends, and what it weighs."""

    messages: list[BaseMessage]
    tokens: int
    """Tokens of messages and tool schemas."""
    breakdown: dict[str, int]
    prefix: bytes
    """Four bytes per message, to compare with the next prompt."""
    cacheable_tokens: int
    """Tokens at the head that are the same as in the previous prompt."""


@dataclass(frozen=True)
class Parts:
    """What a prompt is made of."""

    system: SystemMessage
    working_set: Sequence[BaseMessage]
    summary: str = ""
    """Rendered summary; empty when nothing was compacted."""
    session_notes: Sequence[Note] = ()
    recalled: str = ""


def summary_pair(text: str) -> list[BaseMessage]:
    """Return the summary as the synthetic request and answer that stand for what was compacted."""
    return [
        synthetic("summary_request", "Summarize the conversation so far."),
        AIMessage(content=text, additional_kwargs={MARK: {"kind": "summary"}}),
    ]


def returning_notes(notes: Sequence[Note], working_set: Sequence[BaseMessage]) -> list[Note]:
    """Return the session notes whose source turn is no longer in the working set."""
    here = {message.id for message in working_set}
    return [note for note in notes if not any(source in here for told in note.sources for source in told.message_ids)]


def inserted(parts: Parts) -> dict[str, list[BaseMessage]]:
    """Return the synthetic messages of a prompt by category."""
    notes = render_notes("Session notes", returning_notes(parts.session_notes, parts.working_set))
    return {
        "summary": summary_pair(parts.summary) if parts.summary else [],
        "session_notes": [synthetic("session_notes", notes)] if notes else [],
        "recalled": [synthetic("recalled", parts.recalled)] if parts.recalled else [],
    }


def assemble(parts: Parts, budget: Budget, counter: TokenCounter, *, previous: bytes = b"") -> Prompt:
    """Put a prompt together: system, anchor, summary, session notes, turns, recalled passages, question.

    Args:
        parts: what goes in.
        budget: what it may take.
        counter: counts tokens.
        previous: `prefix` of the thread's last prompt.

    Raises:
        BudgetError: the prompt is over the budget, or the user's question is not in it.
    """
    extra = inserted(parts)
    history = _ordered(legal(parts.working_set), extra)
    if question_of(history) is None:
        raise BudgetError("there is no message of the user to answer; send one, or `end_session` alone")
    weights = {name: sum(map(counter.message, messages)) for name, messages in extra.items()}
    weights["history"] = sum(map(counter.message, history)) - sum(weights.values())
    messages: list[BaseMessage] = [parts.system, *history]
    tokens = sum(budget.fixed.values()) + sum(weights.values())
    if tokens + budget.reply_reserve > budget.window:
        raise BudgetError(
            f"the prompt has {tokens:,} tokens and the reply reserve {budget.reply_reserve:,}, but `window` is "
            f"{budget.window:,}; raise `window` or lower `max_output_tokens`"
        )
    digests = [_digest(message) for message in messages]
    return Prompt(
        messages=messages,
        tokens=tokens,
        breakdown=budget.breakdown(weights),
        prefix=b"".join(digests),
        cacheable_tokens=_common(digests, previous, messages, counter) + _tools_if(previous, digests, budget),
    )


def _ordered(history: list[BaseMessage], extra: dict[str, list[BaseMessage]]) -> list[BaseMessage]:
    """Place the summary and session notes after the anchor, recalled passages before the question."""
    head = [*extra["summary"], *extra["session_notes"]]
    anchor, question = anchor_of(history), question_of(history)
    ordered: list[BaseMessage] = []
    for message in history:
        if message is question:
            ordered += extra["recalled"]
        ordered.append(message)
        if message is anchor:
            ordered += head
    return ordered


def _digest(message: BaseMessage) -> bytes:
    calls = message.tool_calls if isinstance(message, AIMessage) else getattr(message, "tool_call_id", "")
    told = f"{message.type}\x00{message.content!r}\x00{calls!r}"
    return hashlib.blake2b(told.encode("utf-8", "replace"), digest_size=_DIGEST_BYTES).digest()


def _common(digests: Sequence[bytes], previous: bytes, messages: Sequence[BaseMessage], counter: TokenCounter) -> int:
    """Return the tokens of the messages that open both prompts."""
    tokens = 0
    for place, digest in enumerate(digests):
        if previous[place * _DIGEST_BYTES : (place + 1) * _DIGEST_BYTES] != digest:
            break
        tokens += counter.message(messages[place])
    return tokens


def _tools_if(previous: bytes, digests: Sequence[bytes], budget: Budget) -> int:
    """Tool schemas stand ahead of everything: they are cached when the system message is."""
    same_head = bool(digests) and previous[:_DIGEST_BYTES] == digests[0]
    return budget.fixed.get("tools", 0) if same_head else 0
