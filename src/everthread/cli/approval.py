"""Show what a run asks, in full."""

from collections.abc import Mapping
from typing import Any

import yaml

from everthread.agents.travel.approval import read_approval

__all__ = ["is_yes", "question"]


def is_yes(answer: str) -> bool:
    """Tell whether an answer approves: "yes please" and "go ahead" do, "ok" and "yes, but …" do not."""
    return read_approval(answer).approved


def question(value: Any) -> str:
    """Return the text of an interrupt: the agent's own words, or every field of what it sent."""
    if isinstance(value, Mapping):
        summary = value.get("summary")
        if isinstance(summary, str) and summary.strip():
            return summary.strip()
        return yaml.safe_dump(dict(value), sort_keys=False, allow_unicode=True).strip()
    return str(value)
