"""Reports as one HTML file each: no network, no script, charts as inline SVG, light and dark."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from everthread.evals.baselines import FULL
from everthread.evals.simulate import Row, Simulation, by_call
from everthread.evals.suites import Cell, Report, shown
from everthread.pages import environment
from everthread.plain import counted

_COLOURS = ("--c1", "--c2", "--c3", "--c4", "--c5")
_MOST_CASES = 400
"""Rows of the table of single conversations; JSON has all of them."""

_COST = (
    ("input, not cached", "uncached", "--weak"),
    ("input, cached", "cached", "--mid"),
    ("replies", "output", "--c7"),
)
_IN_PROMPT, _GONE = ("in the prompt", "in_prompt", "--full"), ("gone", "by_search", "--bad")
_REACH = (
    _IN_PROMPT,
    ("one call away: a handle is in the prompt", "by_handle", "--mid"),
    ("one search away: only in the transcript", "by_search", "--weak"),
)


@dataclass(frozen=True)
class Bar:
    """A row of stacked parts."""

    label: str
    parts: tuple[tuple[str, float, str, str], ...]
    """Name, size, colour and the size as text."""
    end: str
    """Text behind the bar."""
    is_quiet: bool

    @property
    def size(self) -> float:
        """Return the sum of its parts."""
        return sum(size for _, size, _, _ in self.parts)


@dataclass(frozen=True)
class Curve:
    """A line of a chart."""

    label: str
    points: list[tuple[float, float]]
    colour: str
    is_dashed: bool = False


@dataclass(frozen=True)
class Chart:
    """Curves, and a level to mark."""

    curves: tuple[Curve, ...]
    limit: int

    @property
    def key(self) -> list[tuple[str, str]]:
        """Return label and colour of each curve."""
        return [(curve.label, curve.colour) for curve in self.curves]

    @property
    def right(self) -> float:
        """Return the end of the horizontal axis."""
        return max((x for curve in self.curves for x, _ in curve.points), default=1)

    @property
    def top(self) -> float:
        """Return the end of the vertical axis."""
        return 1.05 * max([self.limit, *(y for curve in self.curves for _, y in curve.points)])


@dataclass(frozen=True)
class Grid:
    """A table, with classes for some of its rows and cells."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    ours: Sequence[int] = ()
    """Places of the rows to set off."""
    marks: dict[tuple[int, int], str] = field(default_factory=dict)
    """Class of a cell, `best` or `bad`, by row and column."""


def ticks(most: float) -> list[float]:
    """Return round levels from 0 up to a value, about five of them."""
    power = 10 ** math.floor(math.log10(most / 4)) if most > 0 else 1
    step = next(power * factor for factor in (1, 2, 5, 10) if most / (power * factor) <= 6)
    return [place * step for place in range(int(most / step) + 1)]


_PAGES = environment("everthread.evals", shown=shown, ticks=ticks)


def render_report(report: Report) -> str:
    """Return the page of a suite."""
    lead = ", ".join(f"{name}: {shown(value)}" for name, value in report.settings.items())
    return _PAGES.get_template("report.html").render(title=f"Evaluation: {report.suite}", lead=lead, report=report)


def render_simulation(simulation: Simulation) -> str:
    """Return the page of a what-if."""
    page = _PAGES.get_template("simulation.html")
    cases = _cases(simulation)
    if not simulation.compared:
        lead = f"None of {counted(simulation.records, 'conversation')} could be run under every setting."
        return page.render(title="What if", lead=lead, simulation=simulation, cases=cases)
    windows = list(dict.fromkeys(row.setting.window for row in simulation.rows))
    sizes = " and ".join(f"{window:,}" for window in sorted(windows))
    lead = (
        f"{simulation.compared:,} of {counted(simulation.records, 'recorded conversation')}, "
        f"{counted(simulation.rows[0].sum('calls'), 'model call')} each, under every policy at a window of "
        f"{sizes} tokens. No model was asked."
    )
    return page.render(
        title="What if",
        lead=lead,
        simulation=simulation,
        facts=_facts(simulation),
        cost=[_cost(row, simulation) for row in simulation.rows],
        cost_key=[(name, colour) for name, _, colour in _COST],
        growth=[_growth(simulation, window) for window in windows],
        needed=simulation.rows[0].sum("needed"),
        reach=[_reach(row, simulation) for row in simulation.rows],
        reach_key=[(name, colour) for name, _, colour in (*_REACH, _GONE)],
        figures=_figures(simulation),
        refused="; ".join(f"{row.setting.name}: {row.refused:,}" for row in _ours(simulation) if row.refused),
        cases=cases,
    )


def _name(row: Row, simulation: Simulation) -> str:
    if row.setting.policy == FULL:
        return FULL
    has_windows = len({one.setting.window for one in simulation.rows}) > 1
    return row.setting.name if has_windows else row.setting.policy


def _ours(simulation: Simulation) -> list[Row]:
    return [row for row in simulation.rows if not row.setting.is_baseline]


def _facts(simulation: Simulation) -> list[tuple[str, str]]:
    """Return the figures that are read first."""
    ours = _ours(simulation)
    cheapest = min(ours, key=lambda row: row.cost.total)
    keeper = max(ours, key=lambda row: row.kept_share)
    facts = [
        (f"{sum(row.sum('prompts_over_budget') for row in ours):,}", "prompts over the window, all policies"),
        (f"{sum(row.sum('lost_messages') for row in ours):,}", "messages lost, all policies"),
        (_money(cheapest.cost.total, simulation), f"lowest cost of a policy: {_name(cheapest, simulation)}"),
    ]
    if keeper.sum("needed"):
        name = _name(keeper, simulation)
        facts.append((f"{keeper.kept_share:.1%}", f"most needed values in the prompt: {name}"))
    return facts


def _cost(row: Row, simulation: Simulation) -> Bar:
    sizes = [(name, getattr(row.cost, part), colour) for name, part, colour in _COST]
    parts = tuple((name, size, colour, _money(size, simulation)) for name, size, colour in sizes)
    return Bar(_name(row, simulation), parts, _money(row.cost.total, simulation), row.setting.is_baseline)


def _growth(simulation: Simulation, window: int) -> Chart:
    rows = [row for row in _ours(simulation) if row.setting.window == window]
    full = next(row for row in simulation.rows if row.setting.policy == FULL)
    curves = [
        Curve(row.setting.policy, list(by_call(row)), _COLOURS[place % len(_COLOURS)]) for place, row in enumerate(rows)
    ]
    return Chart((*curves, Curve(FULL, list(by_call(full)), "--c6", is_dashed=True)), window)


def _reach(row: Row, simulation: Simulation) -> Bar:
    # What a baseline does not show is gone: it has no transcript to search.
    chosen = (_IN_PROMPT, _GONE) if row.setting.is_baseline else _REACH
    parts = tuple((name, row.sum(part), colour, f"{row.sum(part):,}") for name, part, colour in chosen)
    return Bar(_name(row, simulation), parts, f"{row.kept_share:.1%}", row.setting.is_baseline)


def _figures(simulation: Simulation) -> Grid:
    has_pins = bool(simulation.rows[0].sum("pins"))
    ours = _ours(simulation)
    lowest, highest = min(row.cost.total for row in ours), max(row.kept_share for row in ours)
    rows, marks = [], {}
    for place, row in enumerate(simulation.rows):
        cells = _cells(row, simulation)
        if not has_pins:
            del cells["pins kept"]
        columns = list(cells)
        if row.sum("prompts_over_budget"):
            marks[place, columns.index("over the window")] = "bad"
        if not row.setting.is_baseline and row.cost.total == lowest:
            marks[place, columns.index("cost")] = "best"
        if not row.setting.is_baseline and row.kept_share == highest:
            marks[place, columns.index("needed kept")] = "best"
        rows.append(list(cells.values()))
    return Grid(columns, rows, [place for place, row in enumerate(simulation.rows) if row in ours], marks)


def _cells(row: Row, simulation: Simulation) -> dict[str, Cell]:
    is_ours = not row.setting.is_baseline
    return {
        "setting": _name(row, simulation),
        "prompt tokens": row.sum("prompt_tokens"),
        "cached": f"{row.cacheable_share:.0%}",
        "cost": _money(row.cost.total, simulation),
        "largest prompt": row.largest_prompt,
        "over the window": row.sum("prompts_over_budget"),
        "turns evicted": row.sum("evicted_turns") if is_ours else "–",
        "messages evicted": row.sum("evicted_messages") if is_ours else "–",
        "results masked": row.sum("masked_results") if is_ours else "–",
        "compactions": row.sum("compactions") if is_ours else "–",
        "needed kept": f"{row.kept_share:.1%}" if row.sum("needed") else "–",
        "recalls needed": row.recalls_needed if is_ours else "–",
        "rules kept": row.portion("rules"),
        "pins kept": row.portion("pins"),
    }


def _cases(simulation: Simulation) -> dict[str, Any]:
    columns = ("conversation", "policy", "window", "calls", "prompt tokens", "largest prompt", "needed")
    ours = [case for case in simulation.cases if not case.is_baseline]
    # Those that would have hurt come first.
    ours.sort(key=lambda case: (case.outcome == "replayed", case.in_prompt - case.needed, case.record))
    rows = [
        (
            *(case.record, case.policy, case.window, case.calls, case.prompt_tokens, case.largest_prompt),
            *(case.needed, case.in_prompt, case.outcome),
        )
        for case in ours[:_MOST_CASES]
    ]
    return {"columns": (*columns, "in the prompt", "outcome"), "rows": rows, "total": len(ours)}


def _money(value: float, simulation: Simulation) -> str:
    currency = simulation.prices.currency
    sign = {"USD": "$", "EUR": "€", "GBP": "£"}.get(currency)
    amount = f"{value:,.2f}" if value >= 0.1 else f"{value:.4f}"
    return f"{sign}{amount}" if sign else f"{amount} {currency}"
