"""`eval`: suites with figures that anyone can reproduce."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from everthread.cli.options import AsJson, Jobs, Limit, Page
from everthread.cli.output import check_writable, error, note, print_json, print_table, progress, say, write_page
from everthread.errors import SettingsError
from everthread.evals.pages import render_report
from everthread.evals.parallel import cores
from everthread.evals.suites import Options, Requirement, shown
from everthread.evals.suites import suite as suite_named


def evaluate(
    suite: Annotated[str, typer.Argument(metavar="SUITE", help="One of those above; see docs/evaluation.md.")],
    paths: Annotated[list[Path], typer.Argument(metavar="PATH", help="Files of records, or folders of them.")],
    budget: Annotated[
        int | None, typer.Option("--budget", min=1, metavar="N", help="Tokens to fill.  [default: the suite's own]")
    ] = None,
    limit: Limit = None,
    require: Annotated[
        list[str] | None,
        typer.Option("--require", metavar="NAME=VALUE", help="Exit 1 when this figure is below; repeatable."),
    ] = None,
    jobs: Jobs = None,
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
    html: Page = None,
    as_json: AsJson = False,
) -> None:
    """Measure on recorded conversations, with baselines beside our figures.

    \b
    replay         conversations      prompts that a provider refuses, and losses
    compare        conversations      two settings, --a and --b
    metrics        conversations      what memory does; also on a database

    The suites that need public data sets are in the repository: python -m benchmarks.suites.

    A suite takes of a folder what it can score, and says what it left out.

    Exit code 1 when a figure that `--require` names is missed; `NAME<=VALUE` asks for at most that value.
    """
    requirements = [Requirement.parse(text) for text in require or ()]
    chosen = suite_named(suite)
    if suite != "compare" and (a or b or judge):
        raise SettingsError("`--a`, `--b` and `--judge` belong to the suite `compare`")
    check_writable(html)
    options = Options(budget, limit, jobs or cores(), a=a, b=b, judge=judge, judge_output=judge_output, seed=seed)
    with progress(hidden=as_json and sys.stdout.isatty()) as show:
        report = chosen.run(paths, options, lambda done, total, name: show(name, done, total))
    if html is not None:
        write_page(html, render_report(report))
    if as_json:
        print_json(report.document())
    else:
        for table in report.tables:
            say(table.title, "bold")
            print_table(table.columns, [tuple(map(shown, row)) for row in table.rows])
            say()
        for remark in report.remarks:
            note(remark)
    failures = [failure for requirement in requirements if (failure := requirement.failure(report))]
    for failure in failures:
        error(failure)
    if failures:
        raise typer.Exit(1)
