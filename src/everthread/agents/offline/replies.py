"""What a reply is made of, and how text from elsewhere may be shown in it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from everthread.agents.offline.prompt import Result


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
    """Said ahead of the result, such as an assumption about a date."""


Step = Say | Call

_FOR_THE_MODEL = re.compile(
    r"[;,]\s{0,9}(?:or |and |so )?(?:ask|tell|check|work it out|pass|search|offer|leave it out|split|call|shorten)\b"
    r".{0,500}$"
    r"|\s{0,9}\b(?:Tell the user|Correct the arguments|Find out what|Search again)\b.{0,500}$",
    re.IGNORECASE,
)
"""Advice of a tool to the model, after what happened: `…; ask the user for the right dates.`"""


def plain(text: str, limit: int = 300) -> str:
    """Return a text on one line and without markup, so that it can only be read as data."""
    return " ".join(re.sub(r"[`*_<>#|]", "", text).split())[:limit]


def visible(text: str, limit: int = 2_500) -> str:
    """Return a tool's text without control characters, cut at a whole line or word."""
    text = "".join(sign for sign in text if sign in "\n\t" or sign.isprintable()).strip()
    if len(text) <= limit:
        return text
    end = max(text.rfind("\n", 0, limit), text.rfind(" ", 0, limit))
    return f"{text[: end if end > limit // 2 else limit].rstrip()} …"


def for_user(text: str) -> str:
    """Return what a tool tells the model about a failure as a sentence for the user, without the advice."""
    text = re.sub(r"^(?:Error:\s*)+", "", text.strip())
    text = _FOR_THE_MODEL.sub("", text.rstrip(". ")).rstrip(". ").replace("`", "")
    text = re.sub(r"\bthe user(?=['’]s\b)", "your", text, flags=re.IGNORECASE).replace("your's", "your")
    return f"{re.sub(r'(?i)this user has|the user has', 'you have', text).replace('the user', 'you')}."


def failure(result: Result) -> str:
    """Explain that a tool failed, in its own words, and ask on."""
    return f"That did not work: {visible(for_user(result.text), 600)}\n\nWhat shall I change?"
