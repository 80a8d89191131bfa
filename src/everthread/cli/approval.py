"""Show what a run asks, in full."""

from collections.abc import Mapping
from typing import Any

import yaml

__all__ = ["YES", "question"]

YES = frozenset({"y", "yes"})
"""The answers that approve; everything else, the end of the input too, declines."""


def question(value: Any) -> str:
    """Return the text of an interrupt: the agent's own words, or every field of what it sent."""
    if isinstance(value, Mapping):
        summary = value.get("summary")
        if isinstance(summary, str) and summary.strip():
            return summary.strip()
        return yaml.safe_dump(dict(value), sort_keys=False, allow_unicode=True).strip()
    return str(value)
