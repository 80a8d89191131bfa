"""Versions of a thread's summary, and what each changed."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from everthread.cli.output import counted, note, print_json, say

if TYPE_CHECKING:
    from langgraph.store.base import BaseStore

    from everthread.cli.reading import ThreadView

__all__ = ["Version", "show_summaries", "stored"]

_PAGE = 500
_COLOURS = {"+": "green", "-": "red"}


@dataclass(frozen=True)
class Version:
    """One stored version of a summary."""

    number: int
    writer: str
    covers: int
    """Messages folded in."""
    text: str
    """As the prompt shows it."""
    changes: tuple[str, ...]
    """Lines that came (`+ `) and went (`- `) since the stored version before; all of the first one came."""
    is_current: bool

    def as_json(self) -> dict[str, Any]:
        """Return the version as JSON."""
        return {
            "version": self.number,
            "writer": self.writer,
            "covers": self.covers,
            "current": self.is_current,
            "text": self.text,
            "changes": list(self.changes),
        }


def stored(store: BaseStore, view: ThreadView) -> list[Version]:
    """Return the stored versions of a thread's summary, oldest first; pruning removes those of pruned checkpoints."""
    from everthread.agents import AGENTS, travel
    from everthread.state import Summary, namespaces
    from everthread.window.compaction import render_summary

    agent = AGENTS.get(str((view.record or {}).get("agent")), travel)
    items: list[Any] = []
    while page := store.search(namespaces.summaries(view.thread_id), limit=_PAGE, offset=len(items)):
        items += page
    found: list[Version] = []
    before = ""
    for item in sorted(items, key=lambda item: str(item.key)):
        told = Summary.model_validate(item.value)
        text = render_summary(told, agent.summary_sections)
        is_current = item.value == view.summary
        found.append(Version(told.version, told.writer, told.covers, text, tuple(_changes(before, text)), is_current))
        before = text
    return found


def _changes(before: str, after: str) -> Iterator[str]:
    """Yield what differs, line by line; the identifiers, which stand on one line, one by one."""
    for line in difflib.ndiff(_units(before), _units(after)):
        if line[0] in _COLOURS:
            yield line


def _units(text: str) -> list[str]:
    story, _, index = text.partition("## Identifiers seen earlier\n")
    lines = [line for line in story.splitlines() if line.strip()]
    return [*lines, *(f"identifier {one}" for one in index.split())]


def show_summaries(versions: Sequence[Version], thread_id: str, *, as_json: bool) -> None:
    """Print what each version changed, and the newest one whole."""
    if versions and versions[0].number > 1:
        gone = counted(versions[0].number - 1, "older version")
        note(f"{gone} went with the checkpoints that were pruned; `keep_checkpoints` says how many turns are kept")
    if as_json:
        print_json([one.as_json() for one in versions])
        return
    if not versions:
        note(f"thread {thread_id!r} has no summary: nothing has left its prompt")
        return
    for one in versions:
        mark = " · in the prompt" if one.is_current else ""
        say(f"\nversion {one.number} · by {one.writer} · covers {counted(one.covers, 'message')}{mark}", "bold")
        for line in one.changes:
            say(f"  {line}", _COLOURS[line[0]])
        if not one.changes:
            say("  no line changed", "dim")
    say("\nThe newest version as the prompt shows it", "bold")
    for line in versions[-1].text.splitlines():
        say(f"  {line}")
