"""`demo`: two sessions of the travel agent, played and checked."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from everthread.cli.options import AsJson
from everthread.cli.output import note, out, print_json, say, shortened, wrapped

if TYPE_CHECKING:
    from everthread.cli.demonstration import Claim, Demonstration, Scene
    from everthread.cli.endings import Ending

__all__ = ["demo"]

_INTRODUCTION = (
    "Two sessions of the travel concierge, through the real graph and a real database.\n"
    "The model is the offline one: pattern matching, not a language model. Flights and prices are a sandbox."
)


def demo(
    database: Annotated[
        str | None,
        typer.Option("--database", metavar="URL", help="Play in this database.  [default: a temporary one]"),
    ] = None,
    window: Annotated[
        int, typer.Option("--window", metavar="N", help="Input limit in tokens; a small one makes the bar readable.")
    ] = 16_000,
    as_json: AsJson = False,
) -> None:
    """Play two short sessions without a key, and check them.

    Shows what is said, which tools are called, what is in each prompt, and what lasts after the session. Exits with 1
    when something that it claims does not hold.
    """
    from everthread.cli.demonstration import claims, play

    view: Any = _Quiet() if as_json else _View()
    with tempfile.TemporaryDirectory(prefix="everthread-") as folder:
        url = database or f"sqlite:///{Path(folder) / 'demo.db'}"
        view.begin(url)
        played = play(url, window=window, on_scene=view.scene, on_ending=view.ending)
    checked = claims(played)
    view.end(checked)
    if as_json:
        print_json(_as_json(played, checked, database))
    if not all(claim.holds for claim in checked):
        raise typer.Exit(1)
    if database is not None and not as_json:
        note(f"everthread show {played.threads[0]} --database {database} shows the first thread")


class _Quiet:
    """Shows nothing on the way: the JSON has everything."""

    def begin(self, url: str) -> None:
        """Ignore."""

    def scene(self, scene: Scene) -> None:
        """Ignore."""

    def ending(self, ending: Ending) -> None:
        """Ignore."""

    def end(self, checked: list[Claim]) -> None:
        """Ignore."""


class _View:
    """Prints each turn when it is over."""

    def __init__(self) -> None:
        self._thread = ""

    def begin(self, url: str) -> None:
        """Say what is played, and with what."""
        say(_INTRODUCTION)
        say(f"Database: {url}", "dim")

    def scene(self, scene: Scene) -> None:
        """Print what was said, called, answered and sent."""
        from everthread.cli.prompt_view import bar, headline, legend
        from everthread.cli.screen import called_as

        if scene.thread_id != self._thread:
            self._thread = scene.thread_id
            say(f"\n── thread {scene.thread_id} {'─' * 50}", "bold")
        say()
        _told("you    ", scene.said, "bold")
        for call in scene.turn.calls.values():
            _told("       → ", called_as(call), "dim")
            _told("       ← ", shortened(call.result or "no result"), "dim")
        for asked, _ in scene.turn.asked:
            _told("       ", f"asked for approval, declined by the demo: {shortened(str(asked))}", "yellow")
        first, *rest = scene.turn.reply.splitlines() or [""]
        _told("agent  ", first)
        for line in rest:
            _told(" " * (7 + len(line) - len(line.lstrip())), line.lstrip())
        prompt = scene.turn.prompt
        if prompt is not None:
            _told("       ", headline(prompt), "dim")
            drawn = bar(prompt)
            drawn.pad_left(7)
            out().print(drawn)
            _told("       ", legend(prompt), "dim")

    def ending(self, ending: Ending) -> None:
        """Print what became of the session notes."""
        from everthread.cli.endings import print_ending

        say("\nend of the session", "bold")
        print_ending(ending)

    def end(self, checked: list[Claim]) -> None:
        """Print what was claimed, whether it holds, and by what it shows."""
        say("\nchecked", "bold")
        for claim in checked:
            say(f"  {'✓' if claim.holds else '✗'} {claim.claim}", "" if claim.holds else "bold red")
            _told("      ", claim.evidence, "dim")
        say(f"{sum(claim.holds for claim in checked)} of {len(checked)} claims hold", "bold")


def _told(head: str, text: str, style: str = "") -> None:
    """Print a line behind a head; what does not fit goes on below, as far in."""
    first, *rest = wrapped(text, len(head))
    say(f"{head}{first}".rstrip(), style)
    for line in rest:
        say(f"{' ' * len(head)}{line}", style)


def _as_json(played: Demonstration, checked: list[Claim], database: str | None) -> dict[str, Any]:
    from dataclasses import asdict

    sessions = []
    for thread_id in played.threads:
        turns = [scene.as_json() for scene in played.scenes if scene.thread_id == thread_id]
        ended = played.ending if played.ending is not None and played.ending.thread_id == thread_id else None
        sessions.append(
            {"thread_id": thread_id, "turns": turns, "consolidation": None if ended is None else ended.as_json()}
        )
    return {
        "model": "offline",
        "remark": _INTRODUCTION,
        "database": database,
        "user_id": played.user_id,
        "sessions": sessions,
        "long_term_notes": [found.value() for found in played.lasting],
        "claims": [asdict(claim) for claim in checked],
        "ok": all(claim.holds for claim in checked),
    }
