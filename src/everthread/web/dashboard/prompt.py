"""A prompt as the page shows it: every message with its tag and size, and what became of it since the call before."""

import difflib
import json
from collections.abc import Sequence
from dataclasses import dataclass

from langchain_core.messages import AIMessage, BaseMessage

from everthread.calls import PromptChange, PromptPart, SentPrompt
from everthread.storage.reading import role_of

_PINNED = ("## Standing instructions of the user\n", "## Messages that the user pinned\n")
"""Headings of pins, in the block that they share with session notes."""

_MOST_COMPARED = 40_000
"""Characters of two texts up to which their lines are compared."""


@dataclass(frozen=True)
class Shown:
    """A message of a prompt."""

    place: int
    """From 0."""
    id: str
    """Of the thread's message, in any form; empty for what Everthread adds and what is missing."""
    role: str
    tag: str
    text: str
    tokens: int
    missing: str
    change: PromptChange | None
    """How it came or changed since the call before; None when it is as it was."""


def shown_parts(sent: SentPrompt, changes: Sequence[PromptChange]) -> list[Shown]:
    """Return the messages of a prompt, in order."""
    return [
        Shown(
            place=place,
            id=str(part.message.id) if part.message and part.tag in ("kept", "masked") else "",
            role=role_of(part.message) if part.message else "",
            tag=_tag_of(part),
            text=text_of(part.message) if part.message else "",
            tokens=size or 0,
            missing=part.missing,
            change=next((one for one in changes if one.after is part), None),
        )
        for place, (part, size) in enumerate(zip(sent.parts or (), sent.sizes(), strict=True))
    ]


def _tag_of(part: PromptPart) -> str:
    is_pinned = part.form == "session_notes" and any(heading in part.text for heading in _PINNED)
    return "pinned" if is_pinned else part.tag


def text_of(message: BaseMessage) -> str:
    """Return all that a message sends: its text, other content as JSON, and its calls."""
    content = message.content if isinstance(message.content, str) else json.dumps(message.content, indent=1)
    calls = message.tool_calls if isinstance(message, AIMessage) else ()
    called = [f"{call['name']}({json.dumps(call['args'], ensure_ascii=False)})" for call in calls]
    return "\n".join([*filter(None, [content]), *called])


def changed_lines(change: PromptChange) -> list[tuple[str, str]]:
    """Return the lines that changed in a message, each with `+`, `-` or a blank ahead of it."""
    old, new = (text_of(one.message) if one and one.message else "" for one in (change.before, change.after))
    if len(old) + len(new) > _MOST_COMPARED:
        return [(" ", "too long to compare line by line")]
    lines = list(difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=1))[2:]
    return [(line[:1], line[1:]) for line in lines if not line.startswith("@@")]
