"""Write recalled messages for the prompt: by day, oldest first, each with its speaker."""

from collections.abc import Sequence
from datetime import date

from everthread.memory.recall.passages import Passage, in_order
from everthread.memory.rendering import escape
from everthread.state.namespaces import label

HEADING = "Earlier messages of this conversation that may matter now, oldest first; others lie between them."
"""What the block says of itself; that it is data is in the memory policy."""

HEADING_OF_SEVERAL = "Earlier messages of this user's conversations that may matter now; others lie between them."

_LONGEST_ID = 40
"""Characters of a thread's id that are shown; a UUID has 36."""


def render_recalled(passages: Sequence[Passage], heading: str = HEADING) -> str:
    """Return the block for the prompt; empty when there are no passages."""
    if not passages:
        return ""
    if heading == HEADING and any(passage.thread for passage in passages):
        heading = HEADING_OF_SEVERAL
    lines = ["<recalled>", heading]
    session = None
    for passage in in_order(passages):
        if passage.session != session:
            session = passage.session
            lines.append(session_line(passage))
        lines.append(passage_line(passage))
    return "\n".join([*lines, "</recalled>"])


def passage_line(passage: Passage) -> str:
    """Return one message as a line: speaker and text, so that no delimiter in it can end the block."""
    return f"{escape(passage.speaker)}: {escape(passage.text)}"


def session_line(passage: Passage) -> str:
    """Return the heading of the messages of one day, with the thread when it is another one."""
    heading = day_line(passage.day)
    if not passage.thread:
        return heading
    name = label(passage.thread)
    return f"{heading}, conversation {name if len(name) <= _LONGEST_ID else name[:12] + '…'}"


def day_line(day: str) -> str:
    """Return the heading of a day, with its weekday: people say "last Friday"."""
    try:
        return f"## {date.fromisoformat(day):%a %Y-%m-%d}"
    except ValueError:
        return "## (no date)"
