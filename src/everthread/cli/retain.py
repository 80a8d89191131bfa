"""`retain`: delete what is no longer kept."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from everthread.cli.forget import in_words
from everthread.cli.options import DEFAULT_DATABASE, Agents, AsJson, DatabaseUrl, RetentionPolicy, Yes, load_agent
from everthread.cli.output import confirm, counted, first_of, note, print_json, print_table, progress, say
from everthread.cli.reading import when
from everthread.errors import SettingsError, StorageError
from everthread.graph.retaining import Retained, has_policy
from everthread.graph.retaining import retain as delete
from everthread.state.retention import Retention
from everthread.storage.open import open_storage
from everthread.storage.retaining import Kept
from everthread.storage.retaining import receipts as read_receipts
from everthread.storage.to_read import storage_to_read

_KEPT: dict[Kept, str] = {
    "waiting": "since an approval is awaited (answer it, or use `everthread forget --thread`)",
    "busy": "since a run has it",
    "foreign": "since an app's own graph began it (`--adopted` takes those too)",
    "failed": "since its notes could not be consolidated (the next call tries again)",
    "unreadable": "since it cannot be read (`everthread doctor` names the rows)",
}


def retain(
    retention: RetentionPolicy = None,
    agent: Agents = None,
    adopted: Annotated[
        bool, typer.Option("--adopted", help="Also threads of an app of yours that it has run with the middleware.")
    ] = False,
    receipts: Annotated[bool, typer.Option("--receipts", help="Instead: what was deleted so far.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be deleted.")] = False,
    yes: Yes = False,
    database: DatabaseUrl = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """Delete what is no longer kept: idle threads, old messages, old events.

    A session that is still open ends first, so what lasts becomes long-term notes, which stay; so do profiles, bookings
    and tickets. Threads that are in use, wait for an approval, or were made by other graphs stay too. Each deletion
    leaves a receipt, and the database is searched for the deleted texts.
    """
    if receipts:
        _print_receipts(database, as_json=as_json)
        return
    agents = [load_agent(name) for name in agent or ()]
    options: dict[str, Any] = {"lock_timeout_seconds": 0, "retention": policy_of(retention)}
    opened = storage_to_read(database, **options) if dry_run else open_storage(database, create=False, **options)
    with opened as storage:
        if not has_policy(storage, agents):
            raise SettingsError("say what is kept for how long, such as `--retention idle_days=90`; docs/retention.md")
        at = datetime.now(UTC)  # nothing grows old enough while the question waits
        if not dry_run and not yes:
            planned = delete(storage, agents, is_dry=True, adopted=adopted, at=at)
            if planned.deletions:
                print_retained(planned, shown=note)
                confirm("Delete this? It cannot be undone (`--yes` skips this question).")
        with progress("looking for what is old" if dry_run else "deleting what is old") as report:
            done = delete(storage, agents, is_dry=dry_run, adopted=adopted, at=at, progress=report)
    if as_json:
        print_json(done.as_json())
    else:
        _print_threads(done)
        print_retained(done)
    if done.left:
        raise StorageError(f"deleted, but texts of it are still in {', '.join(done.left)}")


def policy_of(text: str | None) -> Retention | None:
    """Return the policy that an option says; None when it is not given."""
    return Retention.read(text) if text else None


def print_retained(done: Retained, shown: Callable[[str], None] = say) -> None:
    """Print what went, or would go, and what stays though it is old."""
    totals = done.totals
    if done.deletions:
        shown(
            f"{counted(totals['threads'], 'idle thread')} with {counted(totals['turns'], 'turn')} "
            f"{'would go' if done.is_dry else 'went'}; of threads that stay, {counted(totals['messages'], 'message')} "
            f"and the events of {counted(totals['ledger_turns'], 'turn')}; {counted(totals['bytes'], 'byte')} in all."
        )
    else:
        shown("Nothing is old enough to go.")
    for reason, threads in done.kept.items():
        named = first_of(list(map(repr, threads)), 5)
        note(f"{counted(len(threads), 'idle thread')} not deleted, {_KEPT[reason]}: {named}")


def _print_receipts(database: str, *, as_json: bool) -> None:
    with storage_to_read(database) as storage:
        found = read_receipts(storage)
    if as_json:
        print_json(found)
    elif not found:
        note("retention has deleted nothing yet")
    else:
        columns = ("deleted", "thread", "user", "what went", "bytes")
        rows = [
            [when(one["at"]), one["thread_id"], one["user_id"] or "", *_what(one["whole"], one["erased"], one["bytes"])]
            for one in found
        ]
        print_table(columns, rows, words=columns[:4])


def _print_threads(done: Retained) -> None:
    rows = [
        [one.thread_id, one.user_id or "", when(one.last_activity), *_what(one.is_whole, one.erased, one.size)]
        for one in done.deletions
    ]
    if rows:
        columns = ("thread", "user", "last activity", "what goes" if done.is_dry else "what went", "bytes")
        print_table(columns, rows, words=columns[:4])


def _what(is_whole: bool, erased: Mapping[str, int], size: int) -> tuple[str, str]:
    """Return the cells of what goes, or went, of a thread."""
    return "all of it" if is_whole else in_words(erased), f"{size:,}"
