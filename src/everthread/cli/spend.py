"""`spend`: what the calls of models took."""

from collections.abc import Sequence
from datetime import date
from typing import Annotated

import typer

from everthread.cli.options import DEFAULT_DATABASE, AsJson, DatabaseUrl, OneUser, thread_option
from everthread.cli.output import counted, note, print_json, print_table
from everthread.errors import SettingsError
from everthread.spend.prices import read_price_list
from everthread.state import Spend
from everthread.storage.reader import open_reader
from everthread.storage.reading import exists, unknown
from everthread.storage.spending import SpendRow, erased_calls, replies_without_usage, spend_rows

_COLUMNS = ("calls", "input", "cached", "cache write", "output", "reasoning", "cost")


def spend(
    by: Annotated[
        str, typer.Option("--by", metavar="NAMES", help="Of user, day, model, thread, purpose; separated by commas.")
    ] = "user,day,model",
    user: OneUser = None,
    thread: Annotated[str | None, thread_option("Only this thread.")] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="DAY", help="Only from this day of UTC on, as 2026-01-31.")
    ] = None,
    database: DatabaseUrl = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """Show what model calls cost, by user, day, model or thread.

    Agents with `Spend` count each call, by days of UTC. What others have spent is read from the replies that were kept,
    which leaves out summaries, notes and branches that were left.
    """
    names = list(dict.fromkeys(filter(None, map(str.strip, by.split(",")))))
    if not names:
        raise SettingsError("`--by` is empty; say for example `--by user,day`")
    day = _day(since) if since is not None else ""
    prices = read_price_list(Spend().price_file)
    with open_reader(database) as reader:
        if thread is not None and not exists(reader, thread):
            raise unknown(thread)
        rows = spend_rows(reader, names, prices, user_id=user, thread_id=thread, since=day)
        leaves_out = "thread" in names and thread is None and not as_json
        erased = erased_calls(reader, user, day) if leaves_out else 0
        silent = 0 if rows or as_json else replies_without_usage(reader, user, thread, day)
    if as_json:
        print_json({"by": names, "rows": [one.as_json() for one in rows]})
        return
    if silent:
        note(f"no usage was reported for {counted(silent, 'call')}; `Spend` counts the tokens of such calls")
    elif rows:
        table = [[*(one.group[name] for name in names), *_cells(one)] for one in rows]
        print_table([*names, *_COLUMNS], table, words=names)
        _print_remarks(rows)
    elif not erased:
        who = "nothing was spent" if user is None else f"user {user!r} has spent nothing"
        note(f"{who}{' yet' if not day and user is None else ''}{f' since {day}' if day else ''}")
    if erased:
        note(f"{counted(erased, 'call')} of threads that are erased since; `--by user` has them too")


def _day(text: str) -> str:
    """Read a day as the counters write one.

    Raises:
        SettingsError: it is none.
    """
    try:
        return date.fromisoformat(text.strip()).isoformat()
    except ValueError:
        raise SettingsError(f"`--since` must be a day such as 2026-01-31, got {text!r}") from None


def _cells(row: SpendRow) -> list[str]:
    tokens = (row.input, row.cached, row.cache_write, row.output, row.reasoning)
    cost = "unknown" if row.unpriced == row.calls and row.calls else f"{row.cost:,.4f} {row.currency}"
    return [f"{row.calls:,}", *(f"{one:,}" for one in tokens), cost]


def _print_remarks(rows: Sequence[SpendRow]) -> None:
    """Say in which rows the figures are not the whole truth."""
    unpriced, by_us = sum(one.unpriced for one in rows), sum(one.counted for one in rows)
    unanswered, replies = sum(one.unanswered for one in rows), sum(one.from_replies for one in rows)
    if unpriced:
        note(f"{counted(unpriced, 'call')} of models without a price; add one by EVERTHREAD_PRICES")
    if by_us:
        note(f"{counted(by_us, 'call')} whose provider reports no tokens; these are our own count")
    if unanswered:
        most = ", ".join(
            f"{sum(one.unanswered_most for one in rows if one.currency == currency):,.4f} {currency}"
            for currency in sorted({one.currency for one in rows if one.unanswered})
        )
        note(f"{counted(unanswered, 'call')} under way or never answered, at most {most} more")
    if replies:
        note(f"{counted(replies, 'call')} of agents without `Spend`, by the replies that were kept")
