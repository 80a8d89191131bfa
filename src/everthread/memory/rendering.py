"""Render profile and notes for the prompt: deterministic, delimited, newest first."""

from collections.abc import Iterable, Sequence
from typing import Any

import yaml

from everthread.state.notes import Note

_DELIMITERS = ("user_profile", "memories", "memory_policy", "recalled", "summary")


def escape(text: str) -> str:
    """Keep text inside its block: a delimiter in it can neither close nor open one."""
    for name in _DELIMITERS:
        text = text.replace(f"</{name}", f"<\\/{name}").replace(f"<{name}", f"<\\{name}")
    return " ".join(text.split())


def render_profile(profile: dict[str, Any] | None) -> str:
    """Render a profile as YAML front matter; empty when there is none."""
    if not profile:
        return ""
    told = {name: value for name, value in profile.items() if value not in (None, [], {}, "")}
    if not told:
        return ""
    text = yaml.safe_dump(told, sort_keys=False, allow_unicode=True, width=100).strip()
    for name in _DELIMITERS:
        text = text.replace(f"</{name}", f"<\\/{name}")
    return f"<user_profile>\n---\n{text}\n---\n</user_profile>"


def render_notes(heading: str, notes: Iterable[Note]) -> str:
    """Render notes as a Markdown list inside `<memories>`, newest first; empty when there are none."""
    lines = [note_line(note) for note in newest_first(notes)]
    if not lines:
        return ""
    return f"<memories>\n## {heading}\n" + "\n".join(lines) + "\n</memories>"


def render_pins(pins: Iterable[str]) -> str:
    """Render pinned sentences word for word inside `<memories>`; empty when there are none."""
    lines = [f"- {pin}" for pin in pins]
    return "<memories>\n## Standing instructions of the user\n" + "\n".join(lines) + "\n</memories>" if lines else ""


def note_line(note: Note) -> str:
    """Render one note as a Markdown list item: date, text and keywords."""
    keywords = f" [{', '.join(note.keywords)}]" if note.keywords else ""
    return f"- {note.date}: {escape(note.text)}{keywords}"


def newest_first(notes: Iterable[Note]) -> Sequence[Note]:
    """Order notes by date, the newest first; the id decides a tie, so the order is stable."""
    return sorted(sorted(notes, key=lambda note: note.id), key=lambda note: note.date, reverse=True)
