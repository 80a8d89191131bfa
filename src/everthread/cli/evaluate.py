"""`eval`: suites with figures that anyone can make again."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from everthread.cli.output import err, error, note, out, plain, print_json, say, shortened
from everthread.errors import SettingsError

if TYPE_CHECKING:
    from everthread.evals.suites import Report, Tick

__all__ = ["evaluate"]


def evaluate(
    suite: Annotated[str, typer.Argument(metavar="SUITE", help="retention, distillation, injection or consolidation.")],
    paths: Annotated[list[Path], typer.Argument(metavar="PATH", help="Files of records, or folders of them.")],
    budget: Annotated[
        int | None, typer.Option("--budget", min=1, metavar="N", help="Tokens to fill.  [default: the suite's own]")
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, metavar="K", help="Only the first K records.  [default: all]")
    ] = None,
    require: Annotated[
        list[str] | None,
        typer.Option("--require", metavar="NAME=VALUE", help="Exit 1 when this figure is below; repeatable."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")] = False,
) -> None:
    """Measure on recorded conversations, with baselines beside our figures.

    Exit code 1 when a figure that `--require` names is missed; `NAME<=VALUE` asks for at most that value.
    """
    from everthread.evals.suites import Options
    from everthread.evals.suites import suite as named

    wanted = [_requirement(text) for text in require or ()]
    with _progress(hidden=as_json and sys.stdout.isatty()) as tick:
        report = named(suite).run(paths, Options(budget=budget, limit=limit), tick)
    if as_json:
        print_json(report.document())
    else:
        _print(report)
    if sum(not _is_met(report, *one) for one in wanted):
        raise typer.Exit(1)


def _requirement(text: str) -> tuple[str, bool, float]:
    """Read `name=value` (at least) or `name<=value` (at most)."""
    name, sign, value = text.partition("=")
    try:
        if not sign:
            raise ValueError
        return name.removesuffix("<").removesuffix(">").strip(), name.endswith("<"), float(value)
    except ValueError:
        raise SettingsError(f"`--require` takes NAME=VALUE or NAME<=VALUE, got {text!r}") from None


def _is_met(report: Report, name: str, is_most: bool, value: float) -> bool:
    if name not in report.figures:
        raise SettingsError(f"there is no figure {name!r}; there are {', '.join(sorted(report.figures))}")
    seen = report.figures[name]
    if seen <= value if is_most else seen >= value:
        return True
    error(f"{name} is {seen:g}, and must be at {'most' if is_most else 'least'} {value:g}")
    return False


@contextmanager
def _progress(*, hidden: bool) -> Iterator[Tick]:
    """Show a bar on stderr, when that is a terminal."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[name]}", markup=False),
    )
    with Progress(*columns, console=err(), disable=hidden or not sys.stderr.isatty(), transient=True) as progress:
        task = progress.add_task("", total=None, name="")
        yield lambda done, total, name: progress.update(task, completed=done, total=total, name=shortened(name, 50))


def _print(report: Report) -> None:
    from rich.table import Table

    console = out()
    for one in report.tables:
        table = Table(box=None, pad_edge=False, header_style="bold")
        for place, column in enumerate(one.columns):
            table.add_column(column, justify="right" if place else "left", no_wrap=True)
        for row in one.rows:
            table.add_row(*(plain(f"{cell:.3f}" if isinstance(cell, float) else str(cell)) for cell in row))
        say(one.title, "bold")
        console.print(table, soft_wrap=not console.is_terminal)
        say()
    for remark in report.remarks:
        note(remark)
