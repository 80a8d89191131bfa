"""The page of a what-if."""

from collections.abc import Iterator, Sequence
from html import escape

from everthread.evals.baselines import FULL, TRUNCATE
from everthread.evals.pages.charts import Bar, Line, bars, key, lines
from everthread.evals.pages.layout import cards, frame, table
from everthread.evals.simulate import Row, Simulation, by_call
from everthread.evals.suites import share

__all__ = ["render_simulation"]

_COLOURS = ("--c1", "--c2", "--c3", "--c4", "--c5")
_MOST_CASES = 400
"""Rows of the table of single conversations; JSON has all of them."""

_COST = (
    ("input, not cached", "uncached", "--weak"),
    ("input, cached", "cached", "--mid"),
    ("replies", "output", "--c7"),
)
_REACH = (
    ("in the prompt", "in_prompt", "--full"),
    ("one call away: a handle is in the prompt", "by_handle", "--mid"),
    ("one search away: only in the transcript", "by_search", "--weak"),
)


def render_simulation(found: Simulation) -> str:
    """Return the report as one HTML file."""
    if not found.compared:
        lead = f"None of the {found.records:,} conversations could be run under every setting."
        return frame("What if", lead, [_conversations(found)])
    windows = list(dict.fromkeys(row.setting.window for row in found.rows))
    shown = ", ".join(f"{window:,}" for window in sorted(windows))
    lead = (
        f"{found.compared:,} of {found.records:,} recorded conversations, {_total(found, 'calls'):,} model calls each, "
        f"under every policy at a window of {shown} tokens. No model was asked."
    )
    body = [*_head(found), *_cost(found), *_growth(found, windows), *_reach(found), *_figures(found)]
    return frame("What if", lead, [*body, _conversations(found), _method(found)])


def _total(found: Simulation, name: str) -> int:
    return found.rows[0].sum(name)


def _name(row: Row, found: Simulation) -> str:
    if row.setting.policy == FULL:
        return FULL
    return row.setting.name if len({one.setting.window for one in found.rows}) > 1 else row.setting.policy


def _ours(found: Simulation) -> list[Row]:
    return [row for row in found.rows if row.setting.context is not None]


def _head(found: Simulation) -> Iterator[str]:
    ours = _ours(found)
    cheapest = min(ours, key=lambda row: row.cost.total)
    keeper = max(ours, key=lambda row: row.kept_share)
    facts = [
        (f"{sum(row.sum('prompts_over_budget') for row in ours):,}", "prompts over the window, all policies"),
        (f"{sum(row.sum('lost_messages') for row in ours):,}", "messages lost, all policies"),
        (_money(cheapest.cost.total, found), f"lowest cost of a policy: {_name(cheapest, found)}"),
    ]
    if keeper.sum("needed"):
        facts.append((f"{keeper.kept_share:.1%}", f"most needed values in the prompt: {_name(keeper, found)}"))
    yield cards(facts)


def _cost(found: Simulation) -> Iterator[str]:
    yield "<h2>What it costs, net of the prompt cache</h2>"
    prices = found.prices
    yield (
        f"<p>Prices “{escape(prices.name)}”, {escape(prices.currency)} per million tokens: input {prices.input:g}, "
        f"cached input {prices.cached_input:g}, replies {prices.output:g}. The head that a prompt shares with the one "
        "before it counts as cached. A policy that moves the head often pays for it here; full history is cheap while "
        "conversations are short, and stops working where they outgrow the window.</p>"
    )
    rows = [
        Bar(
            _name(row, found),
            tuple((name, getattr(row.cost, part), colour) for name, part, colour in _COST),
            is_quiet=row.setting.context is None,
        )
        for row in found.rows
    ]
    chart = bars("Cost by setting", rows, lambda value: _money(value, found))
    yield _figure(chart, key([(name, colour) for name, _, colour in _COST]))


def _growth(found: Simulation, windows: Sequence[int]) -> Iterator[str]:
    yield "<h2>How prompts grow</h2>"
    yield (
        "<p>Mean size of a prompt at the first, second, third … call of a conversation, tool schemas included. "
        "The red line is the window; a curve ends where fewer than a tenth of the conversations go on.</p>"
    )
    full = next(row for row in found.rows if row.setting.policy == FULL)
    for window in windows:
        rows = [row for row in _ours(found) if row.setting.window == window]
        curves = [
            Line(row.setting.policy, tuple(by_call(row)), colour)
            for row, colour in zip(rows, _cycle(len(rows)), strict=True)
        ]
        curves.append(Line(FULL, tuple(by_call(full)), "--c6", is_dashed=True))
        if len(windows) > 1:
            yield f"<h3>Window {window:,}</h3>"
        chart = lines(
            f"Prompt size by call, window {window:,}", curves, across="call", up="tokens", limit=float(window)
        )
        yield _figure(chart, key([(line.label, line.colour) for line in curves]))


def _cycle(count: int) -> list[str]:
    return [_COLOURS[place % len(_COLOURS)] for place in range(count)]


def _reach(found: Simulation) -> Iterator[str]:
    needed = found.rows[0].sum("needed")
    if not needed:
        return
    yield "<h2>Where is what a later call needed?</h2>"
    yield (
        f"<p>{needed:,} times, a recorded call used a value that an earlier message had. In the prompt the model just "
        "reads it. One call away, it has to read a tool result back; one search away, it has to notice that something "
        "is missing. With a baseline, what is not in the prompt is gone.</p>"
    )
    parts = (*_REACH, ("gone", "by_search", "--bad"))
    rows = []
    for row in found.rows:
        chosen = _REACH if row.setting.context is not None else (_REACH[0], parts[-1])
        sizes = tuple((name, float(row.sum(part)), colour) for name, part, colour in chosen)
        rows.append(Bar(_name(row, found), sizes, f"{row.kept_share:.1%}", is_quiet=row.setting.context is None))
    chart = bars("Needed values by where they are", rows, lambda value: f"{value:,.0f}")
    yield _figure(chart, key([(name, colour) for name, _, colour in parts]))


def _figures(found: Simulation) -> Iterator[str]:
    yield "<h2>All figures</h2>"
    columns = (
        *("setting", "prompt tokens", "cached", "cost", "largest prompt", "over the window", "turns evicted"),
        *("messages evicted", "results masked", "compactions", "needed kept", "recalls needed", "rules kept"),
        *(["pins kept"] if _total(found, "pins") else []),
    )
    cells, marks = [], {}
    for place, row in enumerate(found.rows):
        is_ours = row.setting.context is not None
        over = row.sum("prompts_over_budget")
        if over:
            marks[place, columns.index("over the window")] = "bad"
        missing = row.sum("by_handle") + row.sum("by_search")
        dropped = [row.sum(name) for name in ("evicted_turns", "evicted_messages", "masked_results", "compactions")]
        cells.append(
            [
                _name(row, found),
                *(row.sum("prompt_tokens"), f"{row.cacheable_share:.0%}", _money(row.cost.total, found)),
                *(row.largest_prompt, over),
                *(dropped if is_ours else ["–"] * 4),
                f"{row.kept_share:.1%}" if row.sum("needed") else "–",
                missing if is_ours else "–",
                *(_portion(row, name) for name in ("rules", "pins")[: len(columns) - 12]),
            ]
        )
    ours = _ours(found)
    lowest, highest = min(row.cost.total for row in ours), max(row.kept_share for row in ours)
    for place, row in enumerate(found.rows):
        if row.setting.context is not None and row.cost.total == lowest:
            marks[place, columns.index("cost")] = "best"
        if row.setting.context is not None and row.kept_share == highest:
            marks[place, columns.index("needed kept")] = "best"
    yield table(columns, cells, ours=[row.setting.context is not None for row in found.rows], marks=marks)
    if refused := {row.setting.name: row.refused for row in _ours(found) if row.refused}:
        told = escape("; ".join(f"{name}: {count:,}" for name, count in refused.items()))
        yield (
            f'<p class="note">Refused because instructions, tools and the current turn alone do not fit ({told}). '
            "All sums are over the conversations that every setting could run.</p>"
        )


def _portion(row: Row, name: str) -> str:
    whole = row.sum(name)
    return f"{share(row.sum(f'{name}_kept'), whole):.1%}" if whole else "–"


def _conversations(found: Simulation) -> str:
    columns = (
        "conversation",
        "policy",
        "window",
        "calls",
        "prompt tokens",
        "largest",
        "needed",
        "in the prompt",
        "outcome",
    )
    ours = [case for case in found.cases if case.policy not in (FULL, TRUNCATE)]
    # Those that would have hurt stand first.
    ours.sort(key=lambda case: (case.outcome == "replayed", case.in_prompt - case.needed, case.record))
    rows = [
        (
            *(case.record, case.policy, case.window, case.calls, case.prompt_tokens, case.largest_prompt),
            *(case.needed, case.in_prompt, case.outcome),
        )
        for case in ours[:_MOST_CASES]
    ]
    more = f" (the first {_MOST_CASES:,} of {len(ours):,})" if len(ours) > _MOST_CASES else ""
    return f"<details><summary>Every conversation{more}</summary>{table(columns, rows)}</details>"


def _method(found: Simulation) -> str:
    points = (
        "Every conversation runs through the real graph, with a database of its own, once for each setting. The "
        "recorded assistant's messages are the replies and recorded results answer its calls.",
        "So the replies do not change with the policy: what a model would have said to a shorter prompt is not "
        "measured here. Neither are its calls to read something back; “recalls needed” says how many there would be.",
        "Summaries are those of the rules. With a language model as summariser they read better and cost its calls.",
        "“Full history” and “truncate only” are computed from the recording: every message, and as many of the newest "
        "turns as fit. They have no memory, no recall and no transcript.",
        "“Rules kept”: standing instructions that the rules recognise in the user's messages, in how many of the "
        "prompts that must have them they are, word for word. Wordings that the rules do not know are not counted.",
    )
    told = "".join(f"<li>{escape(point)}</li>" for point in points)
    return f"<h2>How this was measured, and what it cannot tell</h2><ul>{told}</ul>"


def _figure(chart: str, legend: str) -> str:
    return f'<figure class="box">{legend}{chart}</figure>'


def _money(value: float, found: Simulation) -> str:
    sign = {"USD": "$", "EUR": "€", "GBP": "£"}.get(found.prices.currency)
    told = f"{value:,.2f}" if value >= 0.1 else f"{value:.4f}"
    return f"{sign}{told}" if sign else f"{told} {found.prices.currency}"
