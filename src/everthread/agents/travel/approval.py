"""What the user is asked before a booking, and which answers count as a yes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter

from everthread.agents.travel.options import Details, Option
from everthread.memory.text.consent import answer_of, approves

_DETAILS = TypeAdapter(Details)


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
        "details": {**_DETAILS.dump_python(option, mode="json"), "travellers": list(travellers), "note": note},
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
    approved = approves(answer)
    return Approval(approved, approved or answer_of(answer)[0] == "no", said)


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
