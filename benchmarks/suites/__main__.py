"""Measure the product on public data sets, with baselines beside its figures.

    python -m benchmarks.suites SUITE FILE… [--require NAME=VALUE] [--json] [--html FILE]

Files are records as JSON Lines, or folders of such files, of which a suite takes what it can score.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import cast

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from everthread.errors import EverthreadError, SettingsError
from everthread.evals.pages import render_report
from everthread.evals.parallel import cores
from everthread.evals.suites import Options, Report, Requirement, Suite, Table, Tick, shown

SUITES = {
    "consolidation": "does the newest value win, and nothing else go? (gold.updates)",
    "constraints": "do the user's rules survive small windows? (any conversation)",
    "distillation": "are the right notes written? (gold.preferences, gold.slots)",
    "guard": "is what must not be remembered blocked, and nothing else? (text and label)",
    "injection": "is the preference that a question needs in the prompt? (gold.questions)",
    "retention": "is the evidence for a question in the prompt? (gold.questions)",
    "precision": "does a question bring what it needs and nothing else? (the folder of PrecisionMemBench)",
    "threads": "is it, when each session is a thread of its own? (gold.questions)",
}
"""Names of the suites, each a module of this package, with the question that it answers."""

ON_POSTGRES = ("retention", "threads")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a suite, print its report, and return 1 when a requirement is missed, 2 when it was used wrongly."""
    options = _parser().parse_args(arguments)
    try:
        requirements = [Requirement.parse(text) for text in options.require]
        report = run(options.suite, options.paths, _options(options))
        print(json.dumps(report.document(), indent=2) if options.json else markdown(report))
        if options.html is not None:
            options.html.write_text(render_report(report), encoding="utf-8")
        failures = [failure for one in requirements if (failure := one.failure(report))]
    except EverthreadError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2 if isinstance(error, SettingsError) else 1
    for failure in failures:
        print(f"error: {failure}", file=sys.stderr)
    return 1 if failures else 0


def _options(given: argparse.Namespace) -> Options:
    if given.database is not None and given.suite not in ON_POSTGRES:
        raise SettingsError(f"--database is for {' and '.join(ON_POSTGRES)}; {given.suite} keeps nothing in Postgres")
    return Options(given.budget, given.limit, given.jobs, given.database)


def run(name: str, paths: Sequence[Path], options: Options) -> Report:
    """Run a suite under a progress bar.

    Raises:
        RecordError: a file cannot be read, or holds nothing that this suite can use.
    """
    suite = cast(Suite, import_module(f"{__package__}.{name}"))
    with _progress() as tick:
        return suite.run(paths, options, tick)


def markdown(report: Report) -> str:
    """Return the tables and remarks of a report."""
    parts = [f"## {report.suite}", ", ".join(f"{name}: {shown(value)}" for name, value in report.settings.items())]
    return "\n\n".join([*parts, *map(_table, report.tables), *report.remarks])


def _table(table: Table) -> str:
    lines = [table.columns, ["---", *["---:"] * (len(table.columns) - 1)], *(map(shown, row) for row in table.rows)]
    return "\n".join([f"### {table.title}", "", *(f"| {' | '.join(line)} |" for line in lines)])


@contextmanager
def _progress() -> Iterator[Tick]:
    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}", markup=False))
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total, name: bar.update(task, completed=done, total=total, description=name)


def _parser() -> argparse.ArgumentParser:
    suites = "\n".join(f"  {name:<15}{question}" for name, question in SUITES.items())
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.suites",
        description=f"{(__doc__ or '').partition(chr(10))[0]}\n\nsuites:\n{suites}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("suite", metavar="SUITE", choices=SUITES, help="one of those above")
    parser.add_argument("paths", metavar="FILE", type=Path, nargs="+", help="records as JSON Lines, or a folder")
    parser.add_argument(
        "--require",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="exit with 1 when this figure is lower; NAME<=VALUE: when it is higher; repeatable",
    )
    parser.add_argument("--budget", metavar="N", type=int, help="tokens to fill (default: the suite's own)")
    parser.add_argument("--limit", metavar="K", type=int, help="only the first K records")
    parser.add_argument("--jobs", metavar="N", type=int, default=cores(), help="processes (default: one a core)")
    parser.add_argument("--database", metavar="URL", help="keep the conversations in this Postgres, not in memory")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--html", metavar="FILE", type=Path, help="write a page to open in a browser")
    return parser


if __name__ == "__main__":
    sys.exit(main())
