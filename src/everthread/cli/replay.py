"""`replay`: recorded conversations through the real graph, every prompt checked."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from everthread.cli.output import counted, error, in_the_middle, note, say, shortened
from everthread.cli.replay_options import CountAs, Limit, Toolkits
from everthread.cli.replay_progress import progress
from everthread.cli.replay_table import print_table
from everthread.errors import NotFoundError

if TYPE_CHECKING:
    from everthread.evals.records import Record
    from everthread.evals.replay import Result

__all__ = ["check_counted", "replay"]

_REASON_CHARACTERS = 300
_ID_COLUMNS = 40


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
    from everthread.evals.replay import OURS, total
    from everthread.evals.replay import replay as replayed
    from everthread.state import Context

    check_counted(count_as)
    context = Context.from_mapping({"window": window, "policy": policy, "max_output_tokens": max_output_tokens})
    records = chosen([record for file in files for record in _read(file, toolkits)], only or (), limit)
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


def _read(path: Path, toolkits: Path | None) -> Sequence[Record]:
    """Return every record of a file that was named, and of a folder those that can be replayed."""
    from everthread.evals.picking import playable
    from everthread.evals.records import read_records

    if not path.is_dir():
        return read_records(path, toolkits)
    picked = playable([path], toolkits=toolkits)
    for remark in picked.remarks:
        note(remark)
    return picked.records


def check_counted(name: str | None) -> None:
    """Warn of a model whose tokens can only be estimated."""
    from everthread.window.tokens import counter_for

    if name is None:
        return
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
    """Yield the records under a progress bar."""
    with progress(hidden=hidden) as tick:
        for done, record in enumerate(records):
            tick(done, len(records), record.id)
            yield record


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
    headings = ("turns", "calls", "largest", "evicted", "masked", "folded", "cached", "s")
    # A person sees both ends of a long id; a program that reads the pipe needs all of it.
    longest = _ID_COLUMNS if sys.stdout.isatty() else max((len(result.id) for result in results), default=0)
    rows = [(in_the_middle(name, longest), *figures) for name, *figures in map(_cells, results)]
    print_table(("record", *headings, "outcome"), rows, words=("outcome",))
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
