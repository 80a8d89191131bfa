"""The suite `compare`: two configurations side by side on the same conversations, the baselines beside them.

Each conversation runs through the real graph once with the dials of `--a` and once with those of `--b`. The difference
B − A is taken conversation by conversation, and its 95 % interval is a bootstrap over conversations (2,000 resamples,
percentiles, seeded): an interval that has 0 in it shows no difference. Conversations that one side refuses are left
out.

With a judge, a language model sees the last prompt of both sides and the recorded reply, and says which prompt better
lets an assistant give that reply.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from langchain_core.messages import AIMessage, BaseMessage

from everthread.errors import SettingsError
from everthread.evals.baselines import BASELINES
from everthread.evals.judge import Judge, judge_named
from everthread.evals.parallel import spread
from everthread.evals.picking import Picked, playable
from everthread.evals.prices import Prices, read_prices
from everthread.evals.records import Record
from everthread.evals.replay import OURS, trace
from everthread.evals.simulate import Case, Setting, simulate_one
from everthread.evals.suites import Options, Report, Table, Tick, share
from everthread.plain import counted
from everthread.state import Context

WINDOW = 8_000
RESAMPLES = 2_000
_COVERED = 0.95
_JUDGED = 40
"""Conversations that a judge sees: each costs a call with two prompts in it."""


@dataclass(frozen=True)
class Interval:
    """A mean difference, and between what it lies."""

    mean: float
    low: float
    high: float

    @property
    def verdict(self) -> str:
        """Say which side has more, if the data can tell."""
        return "b more" if self.low > 0 else "a more" if self.high < 0 else "no difference shown"


def run(paths: Sequence[Path], options: Options, tick: Tick) -> Report:
    """Compare two configurations.

    Raises:
        SettingsError: a dial does not exist or is out of range, or both sides are the same.
        RecordError: a file cannot be read, or no conversation could be played on both sides.
    """
    window = options.budget or WINDOW
    a, b = dials(options.a, window), dials(options.b, window)
    if a == b:
        raise SettingsError("both sides have the same dials; give `--a KEY=VALUE,…` and `--b KEY=VALUE,…`")
    settings = [Setting.of(a, "A"), Setting.of(b, "B")]
    widest = max(setting.window for setting in settings)
    settings += [Setting(name, widest) for name in BASELINES]
    picked = playable(paths, options.limit)
    records = picked.records
    cases = spread(partial(simulate_one, settings=settings), records, options.jobs, tick)
    both = [row for row in cases if all(case.outcome == "replayed" for case in row)]
    report = _report(both, settings, options, picked)
    if options.judge is None:
        return report
    chosen = [record for record, row in zip(records, cases, strict=True) if row in both][:_JUDGED]
    return _judged(report, chosen, (a, b), options, tick)


def dials(text: str, window: int) -> Context:
    """Read dials such as `policy=salience,recall_tokens=0`.

    Args:
        text: names and values; a value is read as YAML, and what has a comma in it stands in brackets.
        window: the window when the dials name none.

    Raises:
        SettingsError: a name is no dial, or a value is out of range.
    """
    values: dict[str, Any] = {"window": window}
    for part in _parts(text):
        name, sign, value = part.partition("=")
        if not sign or not name.strip():
            raise SettingsError(f"dials are written KEY=VALUE,KEY=VALUE, got {part.strip()!r}")
        try:
            values[name.strip()] = yaml.safe_load(value)
        except yaml.YAMLError:
            raise SettingsError(f"the value of `{name.strip()}` cannot be read: {value!r}") from None
    return Context.from_mapping(values)


def _parts(text: str) -> list[str]:
    """Split at commas outside of brackets."""
    parts, depth = [""], 0
    for sign in text:
        depth += {"[": 1, "]": -1}.get(sign, 0)
        if sign == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += sign
    return [part for part in parts if part.strip()]


Measure = Callable[[Case, Prices], float]

MEASURES: dict[str, Measure] = {
    "tokens_per_call": lambda case, prices: share(case.prompt_tokens, case.calls),
    "cacheable": lambda case, prices: share(case.cacheable_tokens, case.prompt_tokens),
    "cost": lambda case, prices: prices.cost(case.sizes, case.output_tokens).total,
    "largest_prompt": lambda case, prices: float(case.largest_prompt),
    "over_window": lambda case, prices: float(case.prompts_over_budget),
    "needed_kept": lambda case, prices: share(case.in_prompt, case.needed, empty=1.0),
    "recalls_needed": lambda case, prices: float(case.by_handle + case.by_search),
    "rules_kept": lambda case, prices: share(case.rules_kept, case.rules, empty=1.0),
}
"""What is compared, for one conversation each."""


def bootstrap(differences: Sequence[float], seed: int) -> Interval:
    """Return the mean of paired differences with a percentile interval.

    Source: Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapter 13.
    """
    count = len(differences)
    if not count:
        return Interval(0.0, 0.0, 0.0)
    dice = random.Random(seed)
    means = sorted(sum(dice.choices(differences, k=count)) / count for _ in range(RESAMPLES))
    tail = (1 - _COVERED) / 2
    low, high = means[int(tail * RESAMPLES)], means[int((1 - tail) * RESAMPLES)]
    return Interval(sum(differences) / count, low, high)


def _report(
    both: Sequence[Sequence[Case]], settings: Sequence[Setting], options: Options, picked: Picked[Record]
) -> Report:
    prices = read_prices()
    values = {name: [[measure(case, prices) for case in cases] for cases in both] for name, measure in MEASURES.items()}
    figures: dict[str, float] = {"conversations": len(both)}
    compared, beside = [], []
    for name, rows in values.items():
        means = [sum(column) / len(rows) for column in zip(*rows, strict=True)] if rows else [0.0] * len(settings)
        interval = bootstrap([row[1] - row[0] for row in rows], options.seed)
        figures |= {f"a.{name}": means[0], f"b.{name}": means[1], f"difference.{name}": interval.mean}
        figures |= {f"difference.{name}.low": interval.low, f"difference.{name}.high": interval.high}
        compared.append((name, means[0], means[1], interval.mean, interval.low, interval.high, interval.verdict))
        beside.append((name, *means))
    heads = ("mean of conversations", "A", "B", "B − A", "low", "high", "verdict")
    return Report(
        suite="compare",
        figures=figures,
        tables=(
            Table("A and B, with the 95 % interval of the difference", heads, tuple(compared)),
            Table("beside the baselines", ("mean of conversations", "A", "B", *BASELINES), tuple(beside)),
        ),
        remarks=(
            *picked.remarks,
            f"{len(both):,} of {counted(len(picked.records), 'conversation')} ran on both sides.",
            "Costs are at the example prices.",
            "Replies are the recorded ones, so what differs is what the model would have been shown.",
        ),
        settings={"A": options.a or "defaults", "B": options.b or "defaults", "seed": options.seed},
    )


def _judged(
    report: Report, records: Sequence[Record], sides: tuple[Context, Context], options: Options, tick: Tick
) -> Report:
    """Add what a judge says, or one line on why there is none."""
    model, reason = judge_named(str(options.judge))
    if model is None:
        return replace(report, remarks=(*report.remarks, reason))
    output = options.judge_output or Path("judge.jsonl")
    judge = Judge(model, seed=options.seed, output=output)
    for done, record in enumerate(records, start=1):
        ends = [_last_prompt(record, context) for context in sides]
        judge.compare(record.id, ends[0][0], ends[1][0], ends[0][1])
        tick(done, len(records), f"judged {record.id}")
    figures = judge.shares()
    rows = tuple((name.removeprefix("judge."), value) for name, value in figures.items())
    return replace(
        report,
        figures={**report.figures, **figures},
        tables=(*report.tables, Table(f"judge {options.judge}: which last prompt is better", ("side", "share"), rows)),
        remarks=(*report.remarks, f"What the judge answered, word for word: {output}"),
    )


def _last_prompt(record: Record, context: Context) -> tuple[list[BaseMessage], str]:
    """Return the last prompt of a conversation and the recorded reply to it."""
    seen: list[tuple[list[BaseMessage], str]] = [([], "")]

    def watch(reply: AIMessage, messages: list[BaseMessage], tools: object) -> None:
        seen[0] = list(messages), str(reply.text)

    trace(record, context, count_as=OURS, watch=watch)
    return seen[0]
