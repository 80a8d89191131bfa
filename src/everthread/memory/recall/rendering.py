"""Write recalled messages for the prompt: by day, oldest first, each with its speaker."""

from collections.abc import Sequence
from datetime import date

from everthread.memory.recall.passages import Passage
from everthread.memory.rendering import escape

HEADING = "Earlier messages of this conversation that may matter now, oldest first; others lie between them."
"""What the block says of itself; that it is data is in the memory policy."""


def render_recalled(passages: Sequence[Passage], heading: str = HEADING) -> str:
    """Return the block for the prompt; empty when there are no passages."""
    if not passages:
        return ""
    lines = ["<recalled>", heading]
    day = None
    for passage in sorted(passages, key=lambda one: (one.seq, one.id)):
        if passage.day != day:
            day = passage.day
            lines.append(day_line(day))
        lines.append(passage_line(passage))
    return "\n".join([*lines, "</recalled>"])


def passage_line(passage: Passage) -> str:
    """Return one message as a line: speaker and text, so that no delimiter in it can end the block."""
    return f"{escape(passage.speaker)}: {escape(passage.text)}"


def day_line(day: str) -> str:
    """Return the heading of a day, with its weekday: people say "last Friday"."""
    try:
        return f"## {date.fromisoformat(day):%a %Y-%m-%d}"
    except ValueError:
        return "## (no date)"
