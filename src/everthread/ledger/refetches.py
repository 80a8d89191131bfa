"""Refetches: what was needed again after it had left the prompt. An eviction that is followed by one was a mistake."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from everthread.ledger.events import Compacted, Event, Evicted, Masked, Offloaded, Recalled, Refetch
from everthread.memory.text.words import content_words, stem

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

_FEWEST_WORDS = 4
"""Words that hold a subject; with fewer, such as `yes please` or `the second one`, nothing is restated."""

_LONGEST = 2_000
"""Characters of a statement; what is longer was pasted."""


def call_key(name: str, arguments: Any) -> str:
    """Return a key for a call: the same for the same tool and arguments, in whatever order."""
    text = json.dumps(arguments, sort_keys=True, default=str, ensure_ascii=False)
    return hashlib.blake2b(f"{name}\x00{text}".encode("utf-8", "replace"), digest_size=8).hexdigest()


def statement_key(text: str) -> str:
    """Return a key for a statement: the same for the same words in another order or form.

    Empty when it has too few words that hold a subject, or so many that it is a document.
    """
    words = sorted({stem(word) for word in content_words(text[:_LONGEST])})
    if len(words) < _FEWEST_WORDS or len(text) > _LONGEST:
        return ""
    return hashlib.blake2b(" ".join(words).encode("utf-8", "replace"), digest_size=8).hexdigest()


def results_by_call(results: Iterable["BaseMessage"], among: Sequence["BaseMessage"]) -> dict[str, str]:
    """Return the ids of tool results by the key of the call that each one answers.

    Args:
        results: messages; those that are no tool results are left out.
        among: messages that have the calls.
    """
    # Taken when called: what the ledger has is counted without LangChain too.
    from langchain_core.messages import AIMessage, ToolMessage

    wanted = {message.tool_call_id: str(message.id) for message in results if isinstance(message, ToolMessage)}
    if not wanted:
        return {}
    return {
        call_key(call["name"], call["args"]): wanted[str(call["id"])]
        for message in among
        if isinstance(message, AIMessage)
        for call in message.tool_calls
        if call["id"] in wanted
    }


def refetch_counts(events: Sequence[Event]) -> dict[str, Any]:
    """Count what left the prompt, what was needed again and why, and what recall brought back by itself."""
    reasons: Counter[str] = Counter({"repeated_call": 0, "read_back": 0, "recall": 0, "restated": 0})
    reasons.update(event.why for event in events if isinstance(event, Refetch))
    # What was masked and then evicted left once.
    gone = {event.message_id for event in events if isinstance(event, Masked | Offloaded)}
    gone |= {one for event in events if isinstance(event, Evicted | Compacted) for one in event.message_ids}
    recalls = [event for event in events if isinstance(event, Recalled) and event.by == "question"]
    return {
        "left": len(gone),
        "refetches": reasons.total(),
        "by_reason": dict(reasons),
        "recalled": sum(len(event.message_ids) for event in recalls),
    }
