"""Measure how long the plan for a trim takes, beside langchain's `trim_messages` on the same messages.

    python benchmarks/trim.py [--messages 200] [--long 10000] [--repeat 300] [--json FILE]

The messages are those of workload `a` of `window.py`: a question, one tool call with a result of 2,000 characters, an
answer. `plan_trim` runs before every model call, with exact counts whose cache is warm: on a working set that fits, and
on one that is a token too large, so that it has to come down to the low watermark.

On a long history, as it comes from elsewhere, it stands beside `trim_messages(strategy="last", start_on="human",
include_system=True)` at the same room, and both count exactly. *Cold*: `plan_trim` with a counter that has seen nothing
yet, and `trim_messages` with one that remembers nothing, as the counters of langchain's models do. *Warm*: both with
one counter that has seen every message. *In use*: `plan_trim` warm, as in a running thread, and `trim_messages` cold.
Milliseconds are those of the CPU of this process.
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

from langchain_core.messages import BaseMessage, SystemMessage, trim_messages
from longrun.workload import INSTRUCTIONS
from threads import RESULTS, archived_turn

from everthread import Context
from everthread.state.context import POLICIES
from everthread.state.messages import reduce_messages
from everthread.window.eviction import BY_COUNT, plan_trim
from everthread.window.tokens import TokenCounter, counter_for

ROOMS = (4_000, 16_000, 100_000)
PLAN_MARK_MS = 1.0
SHARE_MARK = 0.02

_COLD_REPEATS = 3
"""Runs with cold counters, of which `trim_messages` takes seconds."""

Row = dict[str, Any]


def conversation(messages: int) -> list[BaseMessage]:
    """Return so many messages as a working set has them, with ids."""
    told = [message for number in range(1, messages // 4 + 1) for message in archived_turn(number)]
    return reduce_messages([], [told])


def taken(run: Callable[[], Any], repeat: int, *, is_cold: bool = False) -> tuple[Any, list[float]]:
    """Return what a call gives, and the CPU milliseconds of each run; a first one fills the caches that are warm."""
    given = None if is_cold else run()
    spent = []
    for _ in range(repeat):
        began = time.process_time()
        given = run()
        spent.append((time.process_time() - began) * 1e3)
    return given, spent


def working_set(count: int, repeat: int, counter: TokenCounter) -> list[Row]:
    """Plan for a working set that fits, and for one that is a token too large."""
    messages = conversation(count)
    tokens = sum(map(counter.message, messages))
    rows = []
    for policy in (one for one in POLICIES if one not in BY_COUNT):
        for name, room in (("fits", tokens + 1_000), ("must evict", tokens - 1)):
            plan, spent = taken(partial(_plan, messages, room, Context(policy=policy), counter), repeat)
            rows.append(
                {
                    "policy": policy,
                    "working set": name,
                    "tokens": tokens,
                    "room": room,
                    "evicted": len(plan.evicted),
                    "masked": len(plan.masked),
                    "ms median": median(spent),
                    "ms p95": quantiles(spent, n=20)[-1],
                }
            )
    return rows


def long_history(count: int, repeat: int, counter: TokenCounter) -> list[Row]:
    """Plan for a long history, and let `trim_messages` cut it to the same room."""
    messages, context = conversation(count), Context(policy="token_budget")
    given = [SystemMessage(INSTRUCTIONS), *messages]
    rows = []
    for room in ROOMS:
        limit = room + counter.message(given[0])
        plan, warm = taken(partial(_plan, messages, room, context, counter), repeat)
        _, cold = taken(lambda r=room: _plan(messages, r, context, _fresh()), _COLD_REPEATS, is_cold=True)
        kept, peer_warm = taken(partial(_cut, given, limit, counter), _COLD_REPEATS)
        _, peer_cold = taken(lambda n=limit: _cut(given, n, None), 1, is_cold=True)
        times = [median(spent) for spent in (cold, peer_cold, warm, peer_warm)]
        rows.append(
            {
                "room": room,
                "kept": len(messages) - len(plan.evicted),
                "kept by trim_messages": len(kept) - 1,
                **dict(zip(("cold ms", "trim_messages", "warm ms", "trim_messages warm"), times, strict=True)),
                "share in use": times[2] / times[1],
                "share warm": times[2] / times[3],
                "share cold": times[0] / times[1],
            }
        )
    return rows


def _fresh() -> TokenCounter:
    return TokenCounter("o200k_base", exact=True)


def _plan(messages: Sequence[BaseMessage], room: int, context: Context, counter: TokenCounter) -> Any:
    return plan_trim(messages, room=room, context=context, counter=counter)


def _cut(messages: Sequence[BaseMessage], limit: int, counter: TokenCounter | None) -> list[BaseMessage]:
    """Let langchain cut; without a counter each list is counted anew."""
    return trim_messages(
        messages,
        strategy="last",
        start_on="human",
        include_system=True,
        max_tokens=limit,
        token_counter=lambda kept: sum(map((counter or _fresh()).message, kept)),
    )


def markdown(results: dict[str, Any]) -> str:
    """Return the figures as tables."""
    marks = "\n".join(f"- {name}: {'met' if is_met else 'missed'}" for name, is_met in met(results).items())
    parts = [f"# The plan for a trim\n\n`{results['command']}` · {results['machine']} · {results['at']}\n\n{marks}\n"]
    for name, rows in results["parts"].items():
        head = list(rows[0])
        told = [" | ".join(_shown(row[one]) for one in head) for row in rows]
        lines = [f"| {' | '.join(head)} |", f"|{' ---: |' * len(head)}", *(f"| {line} |" for line in told)]
        parts.append(f"## {TITLES[name]}\n\n" + "\n".join(lines) + "\n")
    return "\n".join(parts)


TITLES = {"working_set": "A working set, before each model call", "long_history": "A long history, at once"}


def met(results: dict[str, Any]) -> dict[str, bool]:
    """Return whether each mark is met."""
    told = {}
    for name in ("fits", "must evict"):
        slowest = max(row["ms median"] for row in results["parts"]["working_set"] if row["working set"] == name)
        told[f"{name}, slowest policy: {slowest:.2f} ms (mark: below {PLAN_MARK_MS:g})"] = slowest < PLAN_MARK_MS
    for name in ("in use", "warm", "cold"):
        share = max(row[f"share {name}"] for row in results["parts"]["long_history"])
        told[f"largest share of `trim_messages`, {name}: {share:.2%} (mark: below {SHARE_MARK:.0%})"] = (
            share < SHARE_MARK
        )
    return told


def _shown(value: object) -> str:
    return f"{value:,.4f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


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
            "long_history": long_history(options.long, options.repeat, counter),
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
