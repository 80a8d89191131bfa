"""What a reply is made of."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from everthread.agents.offline.failures import told_to_the_user
from everthread.agents.offline.reading import Result, visible


@dataclass(frozen=True)
class Say:
    """Words for the user."""

    text: str


@dataclass(frozen=True)
class Call:
    """A tool to call, and what to tell the user beside its result."""

    tool: str
    args: Mapping[str, Any] = field(default_factory=dict)
    remark: str = ""
    """Said in front of the result, such as an assumption about a date."""


Step = Say | Call

_SIGN = re.compile(r"[`*_<>#|]")


def listed(values: list[str], word: str = "and") -> str:
    """Join words as a sentence does: "a, b and c"."""
    return " ".join((", ".join(values[:-1]), word, values[-1])) if len(values) > 1 else "".join(values)


def plain(text: str) -> str:
    """Return a text from memory in one line and without markup, so that it can only be read as data."""
    return " ".join(_SIGN.sub("", text).split())


def lowered(text: str) -> str:
    """Return a sentence as part of another one: no capital at its beginning, no full stop."""
    text = text.strip().rstrip(".")
    return text[:1].lower() + text[1:] if not text[:2].isupper() else text


def failure(result: Result) -> str:
    """Explain that a tool failed, in its own words, and ask on."""
    return f"That did not work: {visible(told_to_the_user(result.text), 600)}\n\nWhat shall I change?"
