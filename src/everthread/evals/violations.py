"""The suite `replay`: prompts that a provider would refuse and messages that a user would miss, by policy.

Every conversation goes through the real graph once a policy, in a window of `budget` tokens. Counted are prompts over
the window, results without their call, calls without their result, questions and first messages that are not in the
prompt, and messages that neither the working set nor the transcript has at the end. Baselines are checked alike.
"""

from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from everthread.evals import checks
from everthread.evals.baselines import BASELINES, play_baseline
from everthread.evals.parallel import spread
from everthread.evals.picking import playable
from everthread.evals.records import Record
from everthread.evals.replay import OURS, Result, trace
from everthread.evals.suites import Options, Report, Table, Tick, share
from everthread.state import Context
from everthread.state.context import POLICIES
from everthread.window.tokens import counter_for

WINDOW = 8_000
_KINDS = {
    "over the window": (checks.OVERRUN,),
    "torn": (checks.ORPHAN, checks.UNANSWERED),
    "question missing": (checks.MISSING_QUESTION,),
    "anchor missing": (checks.MISSING_ANCHOR,),
    "lost": (checks.LOST,),
    "other": (checks.MISPLACED_SYSTEM, checks.REPEATED, checks.DISORDERED),
}


def run(paths: Sequence[Path], options: Options, tick: Tick) -> Report:
    """Count violations for every policy and baseline.

    Raises:
        RecordError: a file cannot be read, or holds no conversation.
    """
    window = options.budget or WINDOW
    picked = playable(paths, options.limit)
    records = picked.records
    totals: dict[str, Counter[str]] = {name: Counter() for name in (*POLICIES, *BASELINES)}
    largest: Counter[str] = Counter()
    for figures_by_policy in spread(partial(played, window=window), records, options.jobs, tick):
        for name, (counts, most) in figures_by_policy.items():
            totals[name] += counts
            largest[name] = max(largest[name], most)
    figures: dict[str, float] = {
        "violations": sum(totals[name][kind] for name in POLICIES for kind in _KINDS),
        "failed": sum(totals[name]["failed"] for name in POLICIES),
        "replayed": min(totals[name]["replayed"] for name in POLICIES),
        "calls": sum(totals[name]["calls"] for name in POLICIES),
    }
    for name, counts in totals.items():
        figures |= {f"{name}.{kind}".replace(" ", "_"): counts[kind] for kind in _KINDS}
    rows: list[tuple[str | int | float, ...]] = [
        (
            name,
            *(counts["replayed"], counts["refused"], counts["failed"], counts["calls"], largest[name]),
            share(counts["cacheable"], counts["tokens"]),
            *(counts[kind] for kind in _KINDS),
        )
        for name, counts in totals.items()
    ]
    columns = ("policy", "replayed", "refused", "failed", "calls", "largest", "cacheable", *_KINDS)
    return Report(
        suite="replay",
        figures=figures,
        tables=(Table(f"window {window:,}", columns, tuple(rows)),),
        remarks=(
            *picked.remarks,
            "Refused: instructions and tools alone do not fit this window; the message says so and nothing is lost.",
        ),
        settings={"window": window, "records": len(records)},
    )


def played(record: Record, window: int) -> dict[str, tuple["Counter[str]", int]]:
    """Play one conversation under every policy and baseline; return counts and the largest prompt of each."""
    results = {
        name: trace(record, Context.from_mapping({"policy": name, "window": window})).result for name in POLICIES
    }
    counter = counter_for(OURS)
    results |= {name: play_baseline(record, name, window=window, counter=counter).result for name in BASELINES}
    return {name: (_counted(result), result.max_prompt_tokens) for name, result in results.items()}


def _counted(result: Result) -> "Counter[str]":
    seen = Counter(violation.what for violation in result.violations)
    counts = {name: sum(seen[what] for what in whats) for name, whats in _KINDS.items()}
    sizes = {"tokens": result.prompt_tokens, "cacheable": result.cacheable_prefix_tokens}
    return Counter({**counts, **sizes, "calls": result.calls, result.outcome: 1})
