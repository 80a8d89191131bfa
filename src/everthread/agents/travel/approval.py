"""What the user is asked before a booking, and which answers count as a yes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from everthread.agents.travel.options import Option

_YES = frozenset(
    {"yes", "y", "yep", "yeah", "approve", "approved", "confirm", "confirmed", "absolutely", "definitely", "proceed"}
)
"""Each of these alone is a yes."""

_NO = frozenset({"no", "n", "nope", "cancel", "decline", "declined", "reject", "rejected", "stop"})
"""A text that begins with one of these is a plain no."""

_YES_PHRASES = (
    *("go ahead", "go for it", "do it", "please do", "of course"),
    *("book it", "book that", "do book", "please book"),
)

_FILLERS = frozenset(
    {"a", "ahead", "and", "book", "booking", "course", "do", "for", "go", "i", "it", "me", "now", "of", "ok", "okay"}
    | {"please", "sure", "thank", "thanks", "that", "the", "this", "to", "you"}
)
"""Words that leave a yes a yes; with any other word, such as `but`, an answer is not clear."""


@dataclass(frozen=True)
class Approval:
    """How the user answered."""

    approved: bool
    is_clear: bool
    """Whether it was a plain yes or no."""
    said: str
    """The answer as text."""
    comment: str = ""


def approval_request(option: Option, travellers: Sequence[str], note: str | None) -> dict[str, Any]:
    """Restate every detail of a booking as the JSON-like payload of an interrupt."""
    return {
        "type": "approval",
        "action": "book",
        "summary": _summary(option, travellers, note),
        "details": {
            "option_id": option.option_id,
            "kind": option.kind,
            "headline": option.headline,
            "facts": list(option.facts),
            "starts": option.starts.isoformat(),
            "ends": option.ends.isoformat(),
            "travellers": list(travellers),
            "price": option.price,
            "currency": option.currency,
            "terms": option.terms,
            "source": option.source,
            "note": note,
        },
    }


def read_approval(answer: object) -> Approval:
    """Read what an interrupt was resumed with; anything but a clear yes is no approval.

    Args:
        answer: a bool, a text, or a mapping `{"approved": bool, "comment": str}`.
    """
    if isinstance(answer, Mapping):
        inner = read_approval(answer.get("approved"))
        comment = answer.get("comment")
        return Approval(inner.approved, inner.is_clear, inner.said, _one_line(comment) if comment else "")
    if isinstance(answer, bool):
        return Approval(answer, True, "yes" if answer else "no")
    if not isinstance(answer, str):
        return Approval(False, False, _one_line(answer))
    said = _one_line(answer)
    approved = _is_yes(answer)
    return Approval(approved, approved or not _NO.isdisjoint(_words(answer)[:1]), said)


def _is_yes(text: str) -> bool:
    words = _words(text)
    if not words or "?" in text or not set(words) <= _YES | _FILLERS:
        return False
    return bool(set(words) & _YES) or any(phrase in " ".join(words) for phrase in _YES_PHRASES)


def _words(text: str) -> list[str]:
    return "".join(sign if sign.isalnum() else " " for sign in text.casefold().replace("'", "")).split()


def _one_line(value: object) -> str:
    return " ".join(str(value).split())[:300]


def _summary(option: Option, travellers: Sequence[str], note: str | None) -> str:
    days = str(option.starts) if option.starts == option.ends else f"{option.starts} to {option.ends}"
    lines = [
        f"Approve this booking? ({option.source})",
        f"What: {option.headline}",
        *(f"  {fact}" for fact in option.facts),
        f"When: {days}",
        f"Who: {', '.join(travellers)}",
        f"Price: {option.total} in total",
        f"Changes and cancellation: {option.terms}",
        *([f"Note: {note}"] if note else []),
        f"Option: {option.option_id}",
        "Only a clear yes books it.",
    ]
    return "\n".join(lines)
