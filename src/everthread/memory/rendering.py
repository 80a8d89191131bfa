"""Render profile and notes for the prompt: deterministic, delimited, newest first."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

import yaml

from everthread.state.notes import Note

_DELIMITERS = ("user_profile", "memories", "memory_policy", "recalled", "summary")
_OPENING = re.compile(rf"<(?=\s*(?:/\s*)?(?:{'|'.join(_DELIMITERS)})\b)", re.IGNORECASE)
"""`< / MEMORIES>` too: a model reads more generously than a parser."""

_WAITING = {"tool": "from a tool", "assistant": "concluded by the assistant"}


def escape(text: str) -> str:
    """Return a text in one line whose delimiters can neither close nor open a block."""
    return " ".join(quotable(text).split())


def quotable(text: str) -> str:
    """Return a text whose delimiters can neither close nor open a block, with its line breaks."""
    return _OPENING.sub("<\\\\", text).strip()


def render_profile(profile: dict[str, Any] | None) -> str:
    """Render a profile as YAML front matter; empty when there is none."""
    if not profile:
        return ""
    filled = {name: value for name, value in profile.items() if value not in (None, [], {}, "")}
    if not filled:
        return ""
    text = quotable(yaml.safe_dump(filled, sort_keys=False, allow_unicode=True, width=100))
    return f"<user_profile>\n---\n{text}\n---\n</user_profile>"


def render_notes(heading: str, notes: Iterable[Note]) -> str:
    """Render notes as a Markdown list inside `<memories>`, newest first; empty when there are none."""
    return _memories(heading, map(note_line, newest_first(notes)))


def render_pins(pins: Iterable[str]) -> str:
    """Render pinned sentences word for word inside `<memories>`; empty when there are none."""
    return _memories("Standing instructions of the user", (f"- {pin}" for pin in pins))


def render_quotes(quotes: Iterable[str]) -> str:
    """Render pinned messages, each `speaker, date: text`, inside `<memories>`; empty when there are none."""
    return _memories("Messages that the user pinned", (f"- {quote}" for quote in quotes))


def _memories(heading: str, items: Iterable[str]) -> str:
    lines = "\n".join(items)
    return f"<memories>\n## {heading}\n{lines}\n</memories>" if lines else ""


def note_line(note: Note) -> str:
    """Render one note as a Markdown list item: date, text, and the keywords that the text lacks."""
    # A keyword that the text has already costs tokens and tells nothing.
    new = [word for word in note.keywords if word not in note.text.lower()]
    keywords = f" [{', '.join(new)}]" if new else ""
    # Whoever reads it must not take a page's words for the user's.
    waits = f" ({_WAITING[note.origin]}, not confirmed by the user)" if note.is_waiting else ""
    return f"- {note.date}: {escape(note.text)}{keywords}{waits}"


def newest_first(notes: Iterable[Note]) -> Sequence[Note]:
    """Order notes by when they were said, the newest first; the id decides a tie, so the order is stable."""
    return sorted(sorted(notes, key=lambda note: note.id), key=lambda note: note.when, reverse=True)
