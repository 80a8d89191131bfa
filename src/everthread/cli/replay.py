"""`replay`: recorded conversations through the real graph, every prompt checked."""

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from everthread.cli.options import CountAs, Limit, Toolkits
from everthread.cli.output import counted, error, note, print_table, progress, say, shortened
from everthread.errors import NotFoundError
from everthread.evals.picking import playable
from everthread.evals.records import Record, read_records
from everthread.evals.replay import OURS, Result, total
from everthread.evals.replay import replay as replay_record
from everthread.evals.suites import share
from everthread.state import Context
from everthread.window.tokens import counter_for

REASON_CHARACTERS = 300
"""Of a refusal or a failure."""

_WIDTH = 100
"""Columns of the table."""

_COLUMNS = ("record", "turns", "calls", "largest", "evicted", "masked", "folded", "cached", "s", "outcome")


def replay(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE", help="Records as JSON Lines, or folders of such files.")
    ],
    window: Annotated[
        int | None,
        typer.Option("--window", metavar="N", help="Input limit of the model in tokens.  [default: 32000]"),
    ] = None,
    policy: Annotated[
        str,
        typer.Option("--policy", metavar="P", help="sliding_window, head_tail, token_budget, salience or summarize."),
    ] = "summarize",
    limit: Limit = None,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="ID", help="Only this record, or those with this in their id; repeatable."),
    ] = None,
    toolkits: Toolkits = None,
    max_output_tokens: Annotated[
        int | None,
        typer.Option("--max-output-tokens", metavar="N", help="Reply reserve.  [default: an eighth, at most 4096]"),
    ] = None,
    count_as: CountAs = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON Lines on stdout: one object a record, then the totals.")
    ] = False,
) -> None:
    """Send recorded conversations through the real graph and check every prompt.

    Exit code 1 when a prompt was over the window, tore a call from its result or missed the user's
    question, when a message was lost, or when no record could be replayed.
    """
    check_counted(count_as)
    context = Context.from_mapping({"window": window, "policy": policy, "max_output_tokens": max_output_tokens})
    records = _chosen([record for file in files for record in _read(file, toolkits)], only or (), limit)
    results: list[Result] = []
    with progress(hidden=as_json and sys.stdout.isatty()) as report:
        for record in records:
            report(record.id, len(results), len(records))
            results.append(replay_record(record, context, count_as=count_as or OURS))
            _print_trouble(results[-1], is_first=sum(not one.is_clean for one in results) == 1)
            if as_json:
                _print_line(results[-1].line())
    summary = total(results)
    if as_json:
        _print_line(summary)
    else:
        print_table(_COLUMNS, _narrowed(list(map(_cells, results))), words=("outcome",))
        say(
            f"{counted(summary['records'], 'record')}: {summary['replayed']} replayed, {summary['refused']} refused, "
            f"{summary['failed']} failed; {counted(summary['calls'], 'call')}, "
            f"{counted(summary['violations'], 'violation')}, {summary['seconds']:.1f} s",
            "bold",
        )
    if not all(result.is_clean for result in results) or not summary["replayed"]:
        raise typer.Exit(1)


def check_counted(name: str | None) -> None:
    """Warn of a model whose tokens can only be estimated."""
    if name is None:
        return
    counter = counter_for(name)
    if not counter.exact and name not in (counter.encoding_name, "o200k"):
        note(f"the tokens of {name!r} are estimated with {counter.encoding_name}: its tokeniser is not shipped")


def _read(path: Path, toolkits: Path | None) -> Sequence[Record]:
    """Return every record of a file that was named, and of a folder those that can be replayed."""
    if not path.is_dir():
        return read_records(path, toolkits)
    return read_playable([path], toolkits)


def read_playable(paths: Sequence[Path], toolkits: Path | None) -> Sequence[Record]:
    """Return the records that can be replayed, and say what was left out."""
    picked = playable(paths, toolkits=toolkits)
    for remark in picked.remarks:
        note(remark)
    return picked.records


def _chosen(records: Sequence[Record], only: Iterable[str], limit: int | None) -> list[Record]:
    """Return the records with these ids, or else with these texts in their ids, up to a limit.

    Raises:
        NotFoundError: a text is in no id.
    """
    chosen: dict[str, Record] = {}
    for name in only:
        exact = [record for record in records if record.id == name]
        matching = exact or [record for record in records if name in record.id]
        if not matching:
            raise NotFoundError(f"no record has {name!r} in its id; the first of {len(records)} is {records[0].id!r}")
        chosen |= {record.id: record for record in matching}
    return (list(chosen.values()) or list(records))[:limit]


def _print_line(value: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def _print_trouble(result: Result, *, is_first: bool) -> None:
    """Say why a record was refused or failed, and show the first offending call of all."""
    reason = f"{result.id}: {shortened(result.error or '', REASON_CHARACTERS)}"
    if result.outcome == "refused":
        note(f"refused: {reason}")
    elif result.outcome == "failed":
        error(reason)
    if result.violations and is_first:
        error(f"{result.id}: {result.violations[0]}")


def _narrowed(rows: list[list[str]]) -> list[list[str]]:
    """Shorten the ids in the middle, so that a line of the table has at most `_WIDTH` columns."""
    others = [max(len(cell) for cell in column) for column in zip(_COLUMNS, *rows, strict=True)][1:]
    room = max(_WIDTH - sum(width + 2 for width in others), 12)
    head = room // 2 - 1
    return [
        [name if len(name) <= room else f"{name[:head]}…{name[len(name) - (room - head - 1) :]}", *cells]
        for name, *cells in rows
    ]


def _cells(result: Result) -> list[str]:
    cached = share(result.cacheable_prefix_tokens, result.prompt_tokens)
    numbers = (
        *(result.turns, result.calls, result.max_prompt_tokens),
        *(result.evicted_messages, result.masked_results, result.compactions),
    )
    verdict = counted(len(result.violations), "violation") if result.violations else result.outcome
    return [result.id, *(f"{number:,}" for number in numbers), f"{cached:.0%}", f"{result.seconds:.1f}", verdict]
