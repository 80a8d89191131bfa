"""Regret: what left the prompt and was needed again, by names of calls and counts of events."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from everthread.ledger.events import Compacted, Event, Evicted, Masked, Offloaded, Recalled, Regret
from everthread.memory.text.words import content_words, stem

__all__ = ["call_name", "calls_behind", "counts", "said_name"]

_FEWEST_WORDS = 4
"""Words that hold a subject; with fewer, such as `yes please` or `the second one`, nothing is restated."""

_LONGEST = 2_000
"""Characters of a statement; what is longer was pasted."""


def call_name(name: str, arguments: Any) -> str:
    """Return the name of a call: the same tool with the same arguments has the same one, in whatever order."""
    told = json.dumps(arguments, sort_keys=True, default=str, ensure_ascii=False)
    return hashlib.blake2b(f"{name}\x00{told}".encode("utf-8", "replace"), digest_size=8).hexdigest()


def said_name(text: str) -> str:
    """Return the name of a statement: the same words in another order or form have the same one.

    Empty when it has too few words that hold a subject, or so many that it is a document.
    """
    words = sorted({stem(word) for word in content_words(text[:_LONGEST])})
    if len(words) < _FEWEST_WORDS or len(text) > _LONGEST:
        return ""
    return hashlib.blake2b(" ".join(words).encode("utf-8", "replace"), digest_size=8).hexdigest()


def calls_behind(results: Iterable[BaseMessage], among: Sequence[BaseMessage]) -> dict[str, str]:
    """Return the ids of tool results by the name of the call that each one answers.

    Args:
        results: messages; those that are no tool results are left out.
        among: messages that have the calls.
    """
    wanted = {message.tool_call_id: str(message.id) for message in results if isinstance(message, ToolMessage)}
    if not wanted:
        return {}
    return {
        call_name(call["name"], call["args"]): wanted[str(call["id"])]
        for message in among
        if isinstance(message, AIMessage)
        for call in message.tool_calls
        if call["id"] in wanted
    }


def counts(events: Sequence[Event]) -> dict[str, Any]:
    """Count what left the prompt, what was needed again and why, and what recall brought back by itself."""
    reasons: Counter[str] = Counter({"repeated_call": 0, "read_back": 0, "recall": 0, "restated": 0})
    reasons.update(event.why for event in events if isinstance(event, Regret))
    # What was masked and then evicted left once.
    gone = {event.message_id for event in events if isinstance(event, Masked | Offloaded)}
    gone |= {known for event in events if isinstance(event, Evicted | Compacted) for known in event.message_ids}
    recalls = [event for event in events if isinstance(event, Recalled) and event.by == "question"]
    return {
        "left": len(gone),
        "regrets": reasons.total(),
        "by_reason": dict(reasons),
        "recalled": sum(len(event.message_ids) for event in recalls),
    }
