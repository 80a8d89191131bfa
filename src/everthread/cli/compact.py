"""`compact`: make the database file small again."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from everthread.cli.options import DEFAULT_DATABASE, AsJson, DatabaseUrl
from everthread.cli.output import counted, note, print_json, say
from everthread.cli.progress import Progress

if TYPE_CHECKING:
    from everthread.storage.reclaiming import Reclaimed

__all__ = ["compact"]


def compact(
    keep: Annotated[
        str | None,
        typer.Option(
            "--keep-checkpoints",
            metavar="TURNS",
            help="Turns that stay travelable in every thread, such as 3, or `all`.  [default: as each thread was run]",
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    database: DatabaseUrl = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """Prune old checkpoints and give the file's free space back.

    Messages, notes and the ledger stay as they are; one can no longer travel back to turns before the kept ones. A
    thread that was run to keep every checkpoint keeps them, unless a number of turns is given. Needs free disk space of
    the size of the file, and no run going on.
    """
    from everthread.storage.open import open_storage
    from everthread.storage.reclaiming import reclaim

    turns = _turns(keep)
    with open_storage(database, create=False, lock_timeout_seconds=0) as storage:
        if turns != "all" and not yes:
            note(f"time travel will reach back {_reach(turns)}; no message is lost")
            typer.confirm(
                "Prune all older checkpoints? It cannot be undone (`--yes` skips this question).", abort=True, err=True
            )
        with Progress("compacting the database") as shown:
            done = reclaim(storage, turns, shown.at)
    if as_json:
        print_json(asdict(done))
    else:
        _print(done)


def _turns(text: str | None) -> int | Literal["all", "as run"]:
    if text is None:
        return "as run"
    if text.strip().lower() == "all":
        return "all"
    if text.strip().isdecimal() and int(text) >= 1:
        return int(text)
    raise typer.BadParameter(
        f"{text!r} is no number of turns; write 1 or more, or `all`", param_hint="--keep-checkpoints"
    )


def _reach(turns: int | Literal["as run"]) -> str:
    from everthread.state import Context

    if turns == "as run":
        return f"{Context.keep_checkpoints} turns, or as many as a thread was last run with (`keep_checkpoints`)"
    return f"{counted(turns, 'turn')} in every thread, also where the runs said to keep more"


def _print(done: Reclaimed) -> None:
    say(
        f"{_megabytes(done.bytes_before)} before, {_megabytes(done.bytes_after)} after "
        f"({done.bytes_before:,} → {done.bytes_after:,} bytes).",
        "bold",
    )
    pruned = f"{counted(done.checkpoints, 'checkpoint')} and {done.summaries:,} old summaries"
    kept = f"; {counted(done.unpruned, 'thread')} kept all of theirs" if done.unpruned else ""
    say(f"Pruned {pruned} in {counted(done.threads, 'thread')}{kept}.")


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
