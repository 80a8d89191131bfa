"""`compact`: make the database file small again."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from everthread.cli.options import DEFAULT_DATABASE, AsJson, DatabaseUrl
from everthread.cli.output import counted, err, note, print_json, say

if TYPE_CHECKING:
    from everthread.storage.reclaiming import Reclaimed

__all__ = ["compact"]


def compact(
    keep: Annotated[
        str | None,
        typer.Option(
            "--keep-checkpoints",
            metavar="TURNS",
            help="Turns of each thread that stay travelable, such as 3, or `all`.  [default: that of the dial, 10]",
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    database: DatabaseUrl = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """Prune old checkpoints and give the file's free space back.

    Messages, notes and the ledger stay as they are; one can no longer travel back to turns before the kept ones. Needs
    free disk space of the size of the file, and no run going on.
    """
    from everthread.storage.open import open_storage
    from everthread.storage.reclaiming import reclaim

    turns = _turns(keep)
    with open_storage(database, create=False, lock_timeout_seconds=0) as storage:
        if turns is not None and not yes:
            note(f"time travel will reach back {counted(turns, 'turn')} in every thread; no message is lost")
            typer.confirm(
                "Prune all older checkpoints? It cannot be undone (`--yes` skips this question).", abort=True, err=True
            )
        with _Bar() as bar:
            done = reclaim(storage, turns, bar.at)
    if as_json:
        print_json(asdict(done))
    else:
        _print(done)


def _turns(text: str | None) -> int | None:
    from everthread.state import Context

    if text is None:
        return Context.keep_checkpoints
    if text.strip().lower() == "all":
        return None
    if text.strip().isdecimal() and int(text) >= 1:
        return int(text)
    raise typer.BadParameter(
        f"{text!r} is no number of turns; write 1 or more, or `all`", param_hint="--keep-checkpoints"
    )


def _print(done: Reclaimed) -> None:
    say(
        f"{_megabytes(done.bytes_before)} before, {_megabytes(done.bytes_after)} after "
        f"({done.bytes_before:,} → {done.bytes_after:,} bytes).",
        "bold",
    )
    pruned = f"{counted(done.checkpoints, 'checkpoint')} and {done.summaries:,} old summaries"
    say(f"Pruned {pruned} in {counted(done.threads, 'thread')}.")


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"


class _Bar:
    """Shows on a terminal how far it is."""

    def __enter__(self) -> _Bar:
        from rich.progress import Progress

        console = err()
        self._progress = Progress(console=console, transient=True, disable=not console.is_terminal)
        self._task = self._progress.add_task("")
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def at(self, step: str, done: int, total: int) -> None:
        """Show a step."""
        self._progress.update(self._task, description=step, completed=done, total=total)
