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

__all__ = ["check_writable", "evaluate", "progress", "write_page"]


def evaluate(
    suite: Annotated[str, typer.Argument(metavar="SUITE", help="What to measure; see docs/evaluation.md.")],
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
    jobs: Annotated[
        int | None, typer.Option("--jobs", min=1, metavar="N", help="Processes.  [default: one a core]")
    ] = None,
    a: Annotated[str, typer.Option("--a", metavar="DIALS", help="compare: first side, as KEY=VALUE,KEY=VALUE.")] = "",
    b: Annotated[str, typer.Option("--b", metavar="DIALS", help="compare: second side.")] = "",
    judge: Annotated[
        str | None, typer.Option("--judge", metavar="NAME", help="compare: a model that grades, provider:name.")
    ] = None,
    judge_output: Annotated[
        Path | None,
        typer.Option("--judge-output", metavar="FILE", help="What it answered.  [default: judge.jsonl]"),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Of everything random.")] = 7,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="OUT", help="Write a report to open in a browser.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")] = False,
) -> None:
    """Measure on recorded conversations, with baselines beside our figures.

    Any records as `replay` reads them: replay (violations), constraints (rules that survive), compare (two
    settings), metrics (also on a database).

    Records with answers that are known: retention (questions with evidence), distillation and injection
    (preferences), consolidation (values that changed), guard (labelled notes). docs/evaluation.md says how each
    looks.

    Exit code 1 when a figure that `--require` names is missed; `NAME<=VALUE` asks for at most that value.
    """
    from everthread.evals.parallel import cores
    from everthread.evals.suites import Options
    from everthread.evals.suites import suite as named

    wanted = [_requirement(text) for text in require or ()]
    if suite != "compare" and (a or b or judge):
        raise SettingsError("`--a`, `--b` and `--judge` belong to the suite `compare`")
    check_writable(html)
    options = Options(
        budget=budget,
        limit=limit,
        jobs=jobs or cores(),
        a=a,
        b=b,
        judge=judge,
        judge_output=judge_output,
        seed=seed,
    )
    with progress(hidden=as_json and sys.stdout.isatty()) as tick:
        report = named(suite).run(paths, options, tick)
    if html is not None:
        from everthread.evals.pages import render_report

        write_page(html, render_report(report))
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


def check_writable(path: Path | None) -> None:
    """Say before an hour of work that its page has nowhere to go.

    Raises:
        SettingsError: there is no such folder, or it is a folder itself.
    """
    if path is not None and (path.is_dir() or not path.absolute().parent.is_dir()):
        raise SettingsError(f"cannot write {str(path)!r}: it must be a file in a folder that exists")


def write_page(path: Path, page: str) -> None:
    """Write a report.

    Raises:
        SettingsError: the file cannot be written.
    """
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as failure:
        raise SettingsError(f"cannot write {str(path)!r}: {failure.strerror}") from failure
    note(f"the report is in {path}")


@contextmanager
def progress(*, hidden: bool) -> Iterator[Tick]:
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
            table.add_row(*(plain(_shown(cell)) for cell in row))
        say(one.title, "bold")
        console.print(table, soft_wrap=not console.is_terminal)
        say()
    for remark in report.remarks:
        note(remark)


def _shown(cell: str | int | float) -> str:
    if isinstance(cell, float):
        return f"{cell:.3f}" if abs(cell) < 100 else f"{cell:,.0f}"
    return f"{cell:,}" if isinstance(cell, int) else cell
