"""`simulate`: recorded conversations or own threads under every policy, without a model."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from langchain_core.messages import BaseMessage, messages_from_dict

from everthread.cli.options import DEFAULT_DATABASE, AsJson, CountAs, DatabaseUrl, Jobs, Limit, Page, Toolkits
from everthread.cli.output import (
    check_writable,
    counted,
    error,
    note,
    print_json,
    print_table,
    progress,
    say,
    shortened,
    write_page,
)
from everthread.cli.replay import REASON_CHARACTERS, check_counted, read_playable
from everthread.errors import SettingsError
from everthread.evals.pages import render_simulation
from everthread.evals.parallel import cores
from everthread.evals.prices import read_prices
from everthread.evals.records import Record
from everthread.evals.replay import OURS
from everthread.evals.simulate import Row, Setting, Simulation
from everthread.evals.simulate import simulate as run_simulation
from everthread.evals.threads import record_of_thread
from everthread.state import Context
from everthread.state.context import POLICIES
from everthread.state.stored import StoredMessage
from everthread.storage.reader import open_reader
from everthread.storage.reading import ThreadView, read_thread

_WINDOW = 8_000


def simulate(
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="FILE", help="Records as JSON Lines, or folders of such files.")
    ] = None,
    thread: Annotated[
        list[str] | None, typer.Option("--thread", metavar="T", help="A thread of the database; repeatable.")
    ] = None,
    database: DatabaseUrl = DEFAULT_DATABASE,
    policy: Annotated[
        list[str] | None, typer.Option("--policy", metavar="P", help="A policy; repeatable.  [default: all five]")
    ] = None,
    window: Annotated[
        list[int] | None,
        typer.Option("--window", metavar="N", help="Input limit in tokens; repeatable.  [default: 8000]"),
    ] = None,
    pin: Annotated[
        list[str] | None, typer.Option("--pin", metavar="TEXT", help="A sentence for every prompt; repeatable.")
    ] = None,
    price: Annotated[
        Path | None,
        typer.Option(
            "--price",
            metavar="FILE|MODEL",
            help="Prices as YAML, or a model whose packaged ones are taken.  [default: a neutral example]",
        ),
    ] = None,
    limit: Limit = None,
    jobs: Jobs = None,
    toolkits: Toolkits = None,
    count_as: CountAs = None,
    html: Page = None,
    as_json: AsJson = False,
) -> None:
    """Try policies and windows on recorded conversations, or on threads of a database; no model is asked.

    Tokens, cacheable tokens, cost, what leaves the prompt, and whether what later calls needed is still there. Exit
    code 1 when a policy failed, lost a message or went over a window, or when nothing could be compared.
    """
    settings = [
        Setting.of(Context.from_mapping({"policy": one, "window": size, "pins": tuple(pin or ())}))
        for size in dict.fromkeys(window or [_WINDOW])
        for one in dict.fromkeys(policy or POLICIES)
    ]
    prices = read_prices(price)
    check_writable(html)
    check_counted(count_as)
    recorded, own = read_playable(files, toolkits) if files else (), _threads(thread, database) if thread else ()
    records = [*recorded, *own][:limit]
    if not records:
        raise SettingsError("nothing to simulate: name files of records, or threads with `--thread`")
    with progress(hidden=as_json and sys.stdout.isatty()) as show:
        show("", 0, len(records))
        simulation = run_simulation(
            records,
            settings,
            prices,
            count_as=count_as or OURS,
            jobs=jobs or cores(),
            tick=lambda done, total, name: show(name, done, total),
        )
    if html is not None:
        write_page(html, render_simulation(simulation))
    if as_json:
        print_json(simulation.document())
    elif simulation.compared:
        _print(simulation)
    if not simulation.compared or not simulation.is_clean:
        _print_trouble(simulation)
        raise typer.Exit(1)


def _threads(threads: list[str], database: str) -> list[Record]:
    with open_reader(database) as reader:
        views = [read_thread(reader, thread) for thread in threads]
    return [record_of_thread(view.thread_id, _messages(view), (view.record or {}).get("agent")) for view in views]


def _messages(view: ThreadView) -> list[BaseMessage]:
    """Return what was said on the branch that a thread is on."""
    return [_message(one) for one in view.messages if str(one.id) not in view.left_ids]


def _message(stored: StoredMessage) -> BaseMessage:
    """Return a message as LangChain's, whose classes refuse fields of each other that are empty."""
    fields = {"content": stored.content, **{name: value for name, value in vars(stored).items() if value}}
    return messages_from_dict([{"type": stored.type, "data": fields}])[0]


def _print(simulation: Simulation) -> None:
    headings = ("window", "prompt tokens", "cached", "cost", "largest", "over", "evicted", "masked", "kept", "recalls")
    has_pins = any(row.sum("pins") for row in simulation.rows)
    columns = ("policy", *headings, "rules", *(["pins"] if has_pins else []))
    rows = [_cells(row, simulation.prices.currency)[: len(columns)] for row in simulation.rows]
    baselines = [place for place, row in enumerate(simulation.rows) if row.setting.is_baseline]
    print_table(columns, rows, dim=baselines)
    say(
        f"{simulation.compared:,} of {counted(simulation.records, 'conversation')} ran under every setting and "
        f"{'is' if simulation.compared == 1 else 'are'} compared; prices: {simulation.prices.name}",
        "bold",
    )
    _print_refused(simulation)


def _print_refused(simulation: Simulation) -> None:
    """Say once for each window how many conversations it cannot hold, and why the first one is too large."""
    refused = [case for case in simulation.cases if case.outcome == "refused"]
    for window in dict.fromkeys(case.window for case in refused):
        first = next(case for case in refused if case.window == window)
        several = {case.record for case in refused if case.window == window}
        reason = shortened(first.error or "", REASON_CHARACTERS)
        note(f"window {window:,}: {counted(len(several), 'conversation')} refused; the first, {first.record}: {reason}")


def _cells(row: Row, currency: str) -> list[str]:
    is_ours = not row.setting.is_baseline
    needed = f"{row.kept_share:.1%}" if row.sum("needed") else "–"
    return [
        row.setting.policy,
        *(f"{row.setting.window:,}", f"{row.sum('prompt_tokens'):,}", f"{row.cacheable_share:.0%}"),
        *(f"{row.cost.total:.4f} {currency}", f"{row.largest_prompt:,}", f"{row.sum('prompts_over_budget'):,}"),
        *((f"{row.sum('evicted_messages'):,}", f"{row.sum('masked_results'):,}") if is_ours else ("–", "–")),
        *(needed, f"{row.recalls_needed:,}" if is_ours else "–", row.portion("rules"), row.portion("pins")),
    ]


def _print_trouble(simulation: Simulation) -> None:
    worst = next((case for case in simulation.cases if case.error or case.outcome == "failed"), None)
    if not simulation.compared:
        error(f"no conversation ran under every setting{f': {worst.error}' if worst else ''}")
        return
    for case in simulation.cases:
        if case.outcome == "failed":
            error(f"{case.record}, {case.policy}: {case.error}")
