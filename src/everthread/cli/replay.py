"""`replay`: recorded conversations through the real graph, every prompt checked."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from everthread.cli.output import counted, err, error, in_the_middle, note, out, plain, say, shortened
from everthread.errors import NotFoundError

if TYPE_CHECKING:
    from rich.progress import Progress

    from everthread.evals.records import Record
    from everthread.evals.replay import Result

__all__ = ["replay"]

_REASON_CHARACTERS = 300
_ID_COLUMNS = 40


def replay(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="Records as JSON Lines: one JSON object a line.")],
    window: Annotated[
        int | None,
        typer.Option("--window", metavar="N", help="Input limit of the model in tokens.  [default: 32000]"),
    ] = None,
    policy: Annotated[
        str,
        typer.Option("--policy", metavar="P", help="sliding_window, head_tail, token_budget, salience or summarize."),
    ] = "summarize",
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, metavar="K", help="Only the first K records.  [default: all]")
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="ID", help="Only this record, or those with this in their id; repeatable."),
    ] = None,
    toolkits: Annotated[
        Path | None,
        typer.Option(
            "--toolkits", metavar="FILE", help="System prompts and schemas.  [default: toolkits.json beside FILE]"
        ),
    ] = None,
    max_output_tokens: Annotated[
        int | None,
        typer.Option("--max-output-tokens", metavar="N", help="Reply reserve.  [default: an eighth, at most 4096]"),
    ] = None,
    count_as: Annotated[
        str | None, typer.Option("--count-as", metavar="NAME", help="Model whose tokens are counted.  [default: o200k]")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON Lines on stdout: one object a record, then the totals.")
    ] = False,
) -> None:
    """Send recorded conversations through the real graph and check every prompt.

    Exit code 1 when a prompt was over the window, tore a call from its result or missed the user's
    question, when a message was lost, or when no record could be replayed.
    """
    from everthread.evals.records import read_records
    from everthread.evals.replay import OURS, total
    from everthread.evals.replay import replay as replayed
    from everthread.state import Context

    if count_as is not None:
        _check_counted(count_as)
    context = Context.from_mapping({"window": window, "policy": policy, "max_output_tokens": max_output_tokens})
    records = chosen([record for file in files for record in read_records(file, toolkits)], only or (), limit)
    results: list[Result] = []
    for record in _with_progress(records, hidden=as_json and sys.stdout.isatty()):
        result = replayed(record, context, count_as=count_as or OURS)
        results.append(result)
        _print_trouble(result, is_first=sum(not one.is_clean for one in results) == 1)
        if as_json:
            _print_line(result.line())
    summary = total(results)
    if as_json:
        _print_line(summary)
    else:
        _print_table(results, summary)
    if not all(result.is_clean for result in results) or not summary["replayed"]:
        raise typer.Exit(1)


def _check_counted(name: str) -> None:
    """Warn of a model whose tokens can only be estimated."""
    from everthread.window.tokens import counter_for

    counter = counter_for(name)
    if not counter.exact and name not in (counter.encoding_name, "o200k"):
        note(f"the tokens of {name!r} are estimated with {counter.encoding_name}: its tokeniser is not shipped")


def chosen(records: Sequence[Record], only: Iterable[str], limit: int | None) -> list[Record]:
    """Return the records with these ids, or else with these texts in their ids, up to a limit.

    Raises:
        NotFoundError: a text is in no id.
    """
    wanted: list[Record] = []
    for name in only:
        found = [record for record in records if record.id == name] or [
            record for record in records if name in record.id
        ]
        if not found:
            raise NotFoundError(f"no record has {name!r} in its id; the first of {len(records)} is {records[0].id!r}")
        wanted += [record for record in found if record not in wanted]
    return (wanted or list(records))[:limit]


def _with_progress(records: Sequence[Record], *, hidden: bool) -> Iterator[Record]:
    """Yield the records under a progress bar on stderr, when that is a terminal."""
    with _progress(hidden=hidden or not sys.stderr.isatty()) as progress:
        task = progress.add_task("", total=len(records), name="")
        for record in records:
            progress.update(task, name=shortened(record.id, 50))
            yield record
            progress.advance(task)


@contextmanager
def _progress(*, hidden: bool) -> Iterator[Progress]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[name]}", markup=False),
    )
    with Progress(*columns, console=err(), disable=hidden, transient=True) as progress:
        yield progress


def _print_line(value: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def _print_trouble(result: Result, *, is_first: bool) -> None:
    """Say why a record was refused or failed, and show the first offending call of all."""
    if result.outcome == "refused":
        note(f"refused: {result.id}: {shortened(result.error or '', _REASON_CHARACTERS)}")
    elif result.outcome == "failed":
        error(f"{result.id}: {shortened(result.error or '', _REASON_CHARACTERS)}")
    if result.violations and is_first:
        error(f"{result.id}: {result.violations[0]}")


def _print_table(results: Sequence[Result], summary: dict[str, Any]) -> None:
    from rich.table import Table

    console = out()
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("record", no_wrap=True)
    for heading in ("turns", "calls", "largest", "evicted", "masked", "folded", "cached", "s"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("outcome", no_wrap=True)
    for result in results:
        name, *figures = _cells(result)
        # A person sees both ends of a long id; a program that reads the pipe needs all of it.
        shown = in_the_middle(name, _ID_COLUMNS) if console.is_terminal else name
        table.add_row(*map(plain, (shown, *figures)))
    console.print(table, soft_wrap=not console.is_terminal)
    say(
        f"{counted(summary['records'], 'record')}: {summary['replayed']} replayed, {summary['refused']} refused, "
        f"{summary['failed']} failed; {counted(summary['calls'], 'call')}, "
        f"{counted(summary['violations'], 'violation')}, "
        f"{summary['seconds']:.1f} s",
        "bold",
    )


def _cells(result: Result) -> list[str]:
    share = result.cacheable_prefix_tokens / result.prompt_tokens if result.prompt_tokens else 0.0
    numbers = (
        *(result.turns, result.calls, result.max_prompt_tokens),
        *(result.evicted_messages, result.masked_results, result.compactions),
    )
    verdict = counted(len(result.violations), "violation") if result.violations else result.outcome
    return [result.id, *(f"{number:,}" for number in numbers), f"{share:.0%}", f"{result.seconds:.1f}", verdict]
