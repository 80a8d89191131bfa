"""`compact`: prune old checkpoints and reclaim disk space."""

from dataclasses import asdict
from typing import Annotated, Literal

import typer

from everthread.cli.options import DEFAULT_DATABASE, AsJson, DatabaseUrl, Yes
from everthread.cli.output import confirm, counted, note, print_json, progress, say
from everthread.state import Context
from everthread.storage.open import open_storage
from everthread.storage.reclaiming import reclaim


def compact(
    keep: Annotated[
        str | None,
        typer.Option(
            "--keep-checkpoints",
            metavar="TURNS",
            help="Turns back to which each thread can still travel, such as 3, or `all`.  [default: as it was run]",
        ),
    ] = None,
    adopted: Annotated[
        bool,
        typer.Option(
            "--adopted", help="Also what an app of yours wrote itself, in threads that it has run with the middleware."
        ),
    ] = False,
    yes: Yes = False,
    database: DatabaseUrl = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """Prune old checkpoints and reclaim disk space.

    Messages, notes and the ledger stay as they are; one can no longer travel back to turns before the kept ones. A
    thread that was run to keep every checkpoint keeps them, unless a number of turns is given. Checkpoints that another
    app wrote stay, unless `--adopted` is given. Needs free disk space of the size of the file, and no run going on.
    """
    turns = _turns(keep)
    with open_storage(database, create=False, lock_timeout_seconds=0) as storage:
        if turns != "all" and not yes:
            note(f"time travel will reach back {_reach(turns)}; no message is lost")
            if adopted:
                note("checkpoints go that another app wrote; the newest one stays, with its state and open approvals")
            confirm("Prune all older checkpoints? It cannot be undone (`--yes` skips this question).")
        with progress("compacting the database") as report:
            reclaimed = reclaim(storage, turns, report, adopted=adopted)
    if as_json:
        print_json(asdict(reclaimed))
        return
    before, after = reclaimed.bytes_before, reclaimed.bytes_after
    say(f"{before / 1e6:,.1f} MB before, {after / 1e6:,.1f} MB after ({before:,} → {after:,} bytes).", "bold")
    pruned = f"{counted(reclaimed.checkpoints, 'checkpoint')} and {reclaimed.summaries:,} old summaries"
    kept = f"; {counted(reclaimed.unpruned, 'thread')} kept all of theirs" if reclaimed.unpruned else ""
    say(f"Pruned {pruned} in {counted(reclaimed.threads, 'thread')}{kept}.")


def _turns(text: str | None) -> int | Literal["all", "as run"]:
    if text is None:
        return "as run"
    if text.strip().lower() == "all":
        return "all"
    if text.strip().isdecimal() and int(text) >= 1:
        return int(text)
    raise typer.BadParameter(
        f"{text!r} is not a number of turns; write 1 or more, or `all`", param_hint="--keep-checkpoints"
    )


def _reach(turns: int | Literal["as run"]) -> str:
    if turns == "as run":
        return f"{Context.keep_checkpoints} turns, or as many as a thread was last run with (`keep_checkpoints`)"
    return f"{counted(turns, 'turn')} in every thread, also where the runs said to keep more"
