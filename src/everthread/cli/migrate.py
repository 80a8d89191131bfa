"""`migrate`: copy a database to another one, and compare both."""

import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from everthread.cli.options import WAIT_SECONDS, AsJson, load_attribute
from everthread.cli.output import counted, note, print_json, progress, say
from everthread.errors import SettingsError, StorageError

if TYPE_CHECKING:
    from everthread.storage.migration import Migration

_MOST_SHOWN = 20


def migrate(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="URL of the database to copy.")],
    target: Annotated[str, typer.Argument(metavar="TARGET", help="URL of the database to copy to.")],
    allow_type: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-type", metavar="MODULE:CLASS", help="A type of an app's own in its checkpoints; may be repeated."
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be copied.")] = False,
    as_json: AsJson = False,
) -> None:
    """Copy a database to another one, such as a file to Postgres, and compare both.

    All threads with their checkpoints, notes and events, both ways between SQLite and Postgres. Nothing is
    deleted, and what TARGET has besides stays. Run it again after it was cut off, or after workers went on in SOURCE:
    what is there already is not copied twice.
    """
    # Taken when called: both bring LangGraph.
    from everthread.storage.locations import is_postgres, locate
    from everthread.storage.migration import migrate as copy
    from everthread.storage.open import open_storage

    if not is_postgres(target) and locate(target).path is None:
        raise SettingsError("a database in memory keeps nothing; name a file or a Postgres database to copy to")
    types = [_type(name) for name in allow_type or ()]
    began = time.monotonic()
    with open_storage(source, create=False, lock_timeout_seconds=WAIT_SECONDS, allowed_types=types) as old:
        try:
            new = open_storage(target, create=not dry_run, lock_timeout_seconds=WAIT_SECONDS, allowed_types=types)
        except StorageError as error:
            if not dry_run or not str(error).startswith(("there is no database", "there are no tables")):
                raise
            note(f"{str(error).partition(';')[0]} yet, so everything would be copied")
            new = open_storage("sqlite://", allowed_types=types)
        # An empty database in memory stands for one that is not there yet.
        task = f"comparing {old.url} with the target" if dry_run else f"copying {old.url} to {new.url}"
        with new, progress(task) as report:
            result = copy(old, new, report, is_dry=dry_run)
    if as_json:
        seconds = round(time.monotonic() - began, 3)
        print_json({"source": old.url, "target": new.url, "dry_run": dry_run, **asdict(result), "seconds": seconds})
    else:
        _print(result, dry_run=dry_run)
    if left := len(result.not_copied):
        raise StorageError(f"not everything was copied: {left:,} of the threads and records stayed behind")


def _type(name: str) -> type:
    """Return a class by its name.

    Raises:
        SettingsError: there is no such class.
    """
    found = load_attribute("type", name)
    if not isinstance(found, type):
        raise SettingsError(f"{name!r} is no class; write `module:Class`")
    return found


def _print(result: "Migration", *, dry_run: bool) -> None:
    verb = "to copy" if dry_run else "copied"
    say(
        f"{counted(result.threads_copied, 'thread')} of {result.threads:,} {verb}: "
        f"{counted(result.checkpoints_copied, 'checkpoint')} and {counted(result.records_copied, 'record')}.",
        "bold",
    )
    if dry_run:
        say("Nothing was copied; without `--dry-run` it is.")
        return
    say(f"In both: {counted(result.checkpoints, 'checkpoint')} and {counted(result.records, 'record')}, compared.")
    say("SHA-256 of what was compared, its beginning:", "dim")
    for name, digest in sorted(result.digests.items()):
        say(f"  {digest[:16]}  {name}", "dim")
    for one in result.not_copied[:_MOST_SHOWN]:
        note(one.reason)
    if (more := len(result.not_copied) - _MOST_SHOWN) > 0:
        note(f"and {more:,} more; `--json` lists all of them")
