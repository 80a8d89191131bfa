"""Measure how long the plan for a trim takes.

    python benchmarks/trim.py [--messages 200] [--long 10000] [--repeat 300] [--json FILE]

The messages are those of workload `a` of `window.py`: a question, one tool call with a result of 2,000 characters, an
answer. `plan_trim` runs before every model call: on a working set that fits, on one that is a token too large, where
stubs for old results are enough, and on one of which only a quarter fits, so that turns leave. *First* is a plan with a
counter that has seen nothing yet, *median* one with counts that are known, as in a running thread. The long history
comes from elsewhere, all at once. Milliseconds are those of the CPU of this process.
"""

import argparse
import json
import platform
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from langchain_core.messages import BaseMessage
from threads import RESULTS, archived_turn

from everthread import Context
from everthread.state.context import POLICIES
from everthread.state.messages import reduce_messages
from everthread.window.draft import EvictionPlan
from everthread.window.eviction import plan_trim
from everthread.window.tokens import TokenCounter, counter_for

PLAN_MARK_MS = 2.0
ROOMS = {"fits": 1.1, "a token too large": 0.99999, "four times too large": 0.25}
"""Room as a share of what the messages take."""

Row = dict[str, Any]


def conversation(messages: int) -> list[BaseMessage]:
    """Return so many messages as a working set has them, with ids."""
    turns = [message for number in range(1, messages // 4 + 1) for message in archived_turn(number)]
    return reduce_messages([], [turns])


def working_set(count: int, repeat: int, counter: TokenCounter) -> list[Row]:
    """Plan with every policy for a working set that fits, and for those that do not."""
    messages = conversation(count)
    tokens = sum(counter.sizes(messages))
    return [
        _row(messages, name, int(tokens * share), Context(policy=policy), repeat, counter)
        for policy in POLICIES
        for name, share in ROOMS.items()
    ]


def long_history(count: int, counter: TokenCounter) -> list[Row]:
    """Plan for a long history that arrives at once."""
    messages = conversation(count)
    return [_row(messages, "long", room, Context(policy="token_budget"), 3, counter) for room in (4_000, 100_000)]


def _row(
    messages: Sequence[BaseMessage], name: str, room: int, context: Context, repeat: int, counter: TokenCounter
) -> Row:
    fresh = TokenCounter(counter.encoding_name, exact=counter.exact)
    plan, first = _timed(partial(plan_trim, messages, room=room, context=context, counter=fresh))
    again = partial(plan_trim, messages, room=room, context=context, counter=counter)
    spent = [_timed(again)[1] for _ in range(repeat + 1)][1:]
    return {
        "policy": context.policy,
        "working set": name,
        "room": room,
        "evicted": len(plan.evicted),
        "masked": len(plan.masked),
        "first ms": first,
        "ms median": median(spent),
        "ms p95": quantiles(spent, n=20)[-1],
    }


def _timed(run: Callable[[], EvictionPlan]) -> tuple[EvictionPlan, float]:
    began = time.process_time()
    plan = run()
    return plan, (time.process_time() - began) * 1e3


def markdown(results: dict[str, Any]) -> str:
    """Return the figures as tables."""
    marks = "\n".join(f"- {name}: {'met' if is_met else 'missed'}" for name, is_met in met(results).items())
    parts = [f"# The plan for a trim\n\n`{results['command']}` · {results['machine']} · {results['at']}\n\n{marks}\n"]
    for name, rows in results["parts"].items():
        head = list(rows[0])
        cells = [" | ".join(_shown(row[column]) for column in head) for row in rows]
        lines = [f"| {' | '.join(head)} |", f"|{' ---: |' * len(head)}", *(f"| {line} |" for line in cells)]
        parts.append(f"## {TITLES[name]}\n\n" + "\n".join(lines) + "\n")
    return "\n".join(parts)


TITLES = {"working_set": "A working set, before each model call", "long_history": "A long history, at once"}


def met(results: dict[str, Any]) -> dict[str, bool]:
    """Return whether the mark is met for each working set; `salience`, which reads every word, has none."""
    marks = {}
    for name in ROOMS:
        rows = [row for row in results["parts"]["working_set"] if row["working set"] == name]
        slowest = max(row["ms median"] for row in rows if row["policy"] != "salience")
        marks[f"{name}, slowest policy: {slowest:.2f} ms (mark: at most {PLAN_MARK_MS:g})"] = slowest <= PLAN_MARK_MS
    return marks


def _shown(value: object) -> str:
    return f"{value:,.2f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the tables and write them down."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--messages", type=int, default=200, help="messages of the working set")
    parser.add_argument("--long", type=int, default=10_000, help="messages of the long history")
    parser.add_argument("--repeat", type=int, default=300, help="runs of each plan")
    parser.add_argument("--json", type=Path, default=RESULTS / "trim.json", help="where the results go")
    options = parser.parse_args(arguments)
    given = sys.argv[1:] if arguments is None else list(arguments)
    counter = counter_for("gpt-4.1")
    results = {
        "command": shlex.join(["python", "benchmarks/trim.py", *given]),
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}, "
        f"everthread {version('everthread')}, langchain-core {version('langchain-core')}",
        "parts": {
            "working_set": working_set(options.messages, options.repeat, counter),
            "long_history": long_history(options.long, counter),
        },
    }
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    options.json.with_suffix(".md").write_text(markdown(results), encoding="utf-8")
    print(markdown(results))
    print(f"written to {options.json} and .md", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
