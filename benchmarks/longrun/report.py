"""Results as Markdown tables."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from longrun.contenders import JOINED, JOINED_DELTA, OURS, OURS_DEFAULTS
from longrun.thread import MODES
from longrun.workload import WORKLOADS

Row = Mapping[str, Any]

LEGEND = """\
CPU, wall and database are per turn of a thread, or per tool round where one request is the whole thread; in brackets,
how many times what Everthread with recall off takes. *mode*: `sync` is `invoke`, `async` is `ainvoke` with one thread,
`async-8` with eight at once. *end / around 100*: CPU of the last 100 turns over that of turns 51 to 150. *prompt
tokens*, *largest*: exact, o200k, tools included. *over the window*: prompts that a provider would refuse.
*cacheable*: share of the prompt tokens that repeat the head of the prompt before. *priced tokens*: input tokens for
each turn, a cached one counted as 0.1, the summariser's included. *orphans*, *unanswered*: tool results without their
call and calls without a result, over all prompts. *no question*: prompts that lack the user's current message. *rule of
turn 1*: share of prompts that hold the user's first instruction word for word. *turn 1 readable*: where the first
question and the first tool results can still be read in full."""

_PEER = "SummarizationMiddleware"
_PEER_ARCHIVING = "SummarizationMiddleware, archiving"


@dataclass(frozen=True)
class Mark:
    """What a figure of ours may be, as a multiple of a peer's in the same run."""

    ours: str
    peer: str
    figure: str
    at_most: float
    modes: Sequence[str] = ("sync", "async", "async-8")
    workloads: str = "ab"


MARKS = (
    Mark(OURS, _PEER, "cpu_ms", 1.25, modes=("sync",)),
    Mark(OURS, _PEER, "cpu_ms", 1.0, modes=("async", "async-8")),
    Mark(OURS, _PEER_ARCHIVING, "cpu_ms", 1.0),
    Mark(OURS_DEFAULTS, _PEER, "cpu_ms", 1.5),
    Mark(JOINED, _PEER, "cpu_ms", 1.5),
    Mark(JOINED_DELTA, _PEER, "cpu_ms", 1.5),
    Mark(OURS_DEFAULTS, _PEER, "priced_tokens", 0.75, workloads="a"),
    Mark(OURS_DEFAULTS, _PEER, "priced_tokens", 0.45, workloads="b"),
    Mark(OURS_DEFAULTS, "deepagents", "priced_tokens", 0.95, workloads="a"),
    Mark(OURS_DEFAULTS, "deepagents", "priced_tokens", 1.0, workloads="b"),
)

CACHEABLE = {OURS: 0.88, OURS_DEFAULTS: 0.86, JOINED: 0.86, JOINED_DELTA: 0.86}
"""Least share of a prompt of workload a that repeats the head of the prompt before."""


def markdown(rows: Sequence[Row]) -> str:
    """Return a table for each workload, size, durability and mode, with Everthread as the unit of the ratios."""
    parts = []
    for (name, turns, durability, mode), group in groupby(sorted(rows, key=_order), key=_place):
        workload = WORKLOADS[name]
        size = f"{turns:,} rounds" if workload.single_turn else f"{turns:,} turns"
        title = f"### Workload {name}: {workload.title} · {size} · durability `{durability}` · {mode}"
        runs = list(group)
        parts.append("\n\n".join(filter(None, (title, table(runs), marks(runs)))))
    return "\n\n".join(parts)


def marks(rows: Sequence[Row]) -> str:
    """Return our ratios to peers of the same run, and whether each meets its mark."""
    runs = {row["contender"]: row for row in rows}
    lines = []
    for mark in MARKS:
        ours, peer = (runs.get(name, {}) for name in (mark.ours, mark.peer))
        is_meant = ours.get("mode") in mark.modes and str(ours.get("workload")) in mark.workloads
        if is_meant and ours.get(mark.figure) and peer.get(mark.figure):
            ratio = ours[mark.figure] / peer[mark.figure]
            verdict = "met" if ratio <= mark.at_most else "missed"
            lines.append(
                f"- {_FIGURES[mark.figure]} of {mark.ours} / {mark.peer}: {ratio:.2f} (≤ {mark.at_most}: {verdict})"
            )
    for name, at_least in CACHEABLE.items():
        share = runs.get(name, {}).get("cacheable_share")
        if share and runs[name].get("workload") == "a":
            verdict = "met" if share >= at_least else "missed"
            lines.append(f"- repeated head of {name}: {share:.1%} (≥ {at_least:.0%}: {verdict})")
    return "\n".join(lines)


_FIGURES = {"cpu_ms": "CPU", "priced_tokens": "priced tokens"}


def settings(rows: Sequence[Row]) -> str:
    """Return what each contender was set to, and what it warned of; the first thread of each tells."""
    lines = []
    for name in dict.fromkeys(row["contender"] for row in rows):
        row = next((row for row in rows if row["contender"] == name and "settings" in row), None)
        if row is not None:
            lines.append(f"- {name}: `{json.dumps(row['settings'])}`")
            lines += [f"  - warned: {warning}" for warning in row.get("warnings", [])]
    return "\n".join(lines)


def table(rows: Sequence[Row]) -> str:
    """Return one table, a contender a line."""
    ours = next((row for row in rows if row["contender"] == OURS and row["status"] != "error"), None)
    lines = [[title for title, _ in _COLUMNS], ["---", *["---:"] * (len(_COLUMNS) - 1)]]
    for row in rows:
        if row.get("cpu_ms") is None:
            lines.append([row["contender"], f"{row['status']}: {row.get('error', '')}", *[""] * (len(_COLUMNS) - 2)])
        else:
            lines.append([cell(row, ours) for _, cell in _COLUMNS])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _place(row: Row) -> tuple[str, int, str, str]:
    return (row["workload"], row["turns"], row["durability"], row["mode"])


def _order(row: Row) -> tuple[object, ...]:
    return (row["workload"], row["turns"], row["durability"], list(MODES).index(row["mode"]))


def _name(row: Row, ours: Row | None) -> str:
    stopped = f" (stopped at {row['units']:,} after {row['seconds']:.0f} s)" if row["status"] == "stopped" else ""
    return f"{row['contender']}{stopped}"


def _cost(name: str, form: str, scale: float = 1.0) -> Callable[[Row, Row | None], str]:
    def cell(row: Row, ours: Row | None) -> str:
        value = row.get(name)
        if value is None:
            return "–"
        ratio = f" ({value / ours[name]:.2f}×)" if ours and ours is not row and ours.get(name) else ""
        return f"{value * scale:{form}}{ratio}"

    return cell


def _value(name: str, form: str = ",") -> Callable[[Row, Row | None], str]:
    def cell(row: Row, ours: Row | None) -> str:
        value = row.get(name)
        return "–" if value is None else f"{value:{form}}"

    return cell


def _rule(row: Row, ours: Row | None) -> str:
    kept = 1 - row["prompts_without_rule"] / row["prompts"] if row["prompts"] else 0.0
    return f"{kept:.0%}, {'yes' if row['rule_in_last_prompt'] else 'no'}"


_COLUMNS: Sequence[tuple[str, Callable[[Row, Row | None], str]]] = (
    ("contender", _name),
    ("CPU ms", _cost("cpu_ms", ".1f")),
    ("wall ms", _value("wall_ms", ".1f")),
    ("end / around 100", _value("growth", ".2f")),
    ("database kB", _cost("database_bytes_per_unit", ".1f", 1e-3)),
    ("prompt tokens", _value("prompt_tokens_mean")),
    ("largest", _value("prompt_tokens_max")),
    ("over the window", _value("prompts_over_window")),
    ("cacheable", _value("cacheable_share", ".1%")),
    ("priced tokens", _cost("priced_tokens", ",.0f")),
    ("orphans", _value("orphans")),
    ("unanswered", _value("unanswered_calls")),
    ("no question", _value("prompts_without_question")),
    ("rule of turn 1 in prompts, at the end", _rule),
    ("summariser calls", _value("summarizer_calls")),
    ("turn 1 readable", _value("turn_1", "")),
)
