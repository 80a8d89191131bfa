"""Measure what the ledger costs: its share of a turn's CPU, and its bytes in the database.

    python benchmarks/ledger.py [--turns 300] [--rounds 5] [--durability sync] [--json FILE]

The workload is `a` of `window.py`. The same thread runs with the ledger and without it, each in a process and a
database of its own, a turn of one and then the same turn of the other. *Without* means that nothing of it is done:
`record` only writes what the nodes themselves write with it, and the keys by which refetches are noticed are neither
written nor read. All else is as it is, also the making of events, which the stream needs in any case; both must send
the same prompts. A figure of CPU is the sum over the turns of the least that a turn took in any round, since other work
on the machine only adds.

Bytes are told twice: those of the ledger's rows, and by how much the file is larger, with the indexes of the store.
Retention is on: a long thread keeps the events of its newest `ledger_turns` turns only, so both are for a turn that is
kept, and the last figure is what that comes to for each turn of a thread of 10,000.
"""

import argparse
import json
import multiprocessing
import platform
import shlex
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from types import FunctionType
from typing import Any

from threads import RESULTS, bytes_a_turn, talking

import everthread.graph.agent  # noqa: F401 - the nodes must be there before their names are replaced
from everthread import Context
from everthread.ledger import retention
from everthread.ledger.record import record
from everthread.state import namespaces
from everthread.storage import refetches

THREAD = "measured"
CPU_MARK = 0.10
BYTES_MARK = 2_000

_ALIKE = 0.01
"""Difference in prompt tokens, as a share, up to which two runs did the same."""

_LONG = 10_000
"""Turns of the thread that the bytes of the last figure are for."""

_OF_LONG = f"file_bytes_a_turn_of_{_LONG}"


@dataclass(frozen=True)
class Run:
    """One thread, with the ledger or without it."""

    cpu: list[float]
    """Seconds of each turn."""
    file_bytes: float
    """Of the file for each turn."""
    rows: dict[str, tuple[int, int]]
    """Rows and their bytes, by the kind of event; the keys for refetches are one kind."""
    turns_kept: int
    prompts: int
    prompt_tokens: int


@contextmanager
def without_ledger() -> Iterator[None]:
    """Replace, in every module that has imported it, what writes or reads the ledger during a turn."""
    stand_ins: dict[Any, Any] = {
        record: _only_the_nodes_own,
        refetches.left_operations: lambda *given, **named: [],
        refetches.repeated: lambda *given, **named: None,
        refetches.restated: lambda *given, **named: ([], []),
        refetches.read_back: lambda *given, **named: None,
        refetches.restated_blocked: lambda *given, **named: None,
    }
    found = [
        (module, name, value)
        for path, module in list(sys.modules.items())
        if path.startswith("everthread.")
        for name, value in vars(module).items()
        if isinstance(value, FunctionType) and value in stand_ins
    ]
    for module, name, value in found:
        setattr(module, name, stand_ins[value])
    try:
        yield
    finally:
        for module, name, value in found:
            setattr(module, name, value)


def _only_the_nodes_own(store: Any, *given: Any, operations: Any = (), **named: Any) -> None:
    if batch := list(operations):
        store.batch(batch)


def one_run(has_ledger: bool, turns: int, durability: str, pause: Callable[[float], object] = lambda cpu: None) -> Run:
    """Run the thread once; `pause` is called with the seconds of CPU after each turn."""
    with tempfile.TemporaryDirectory(prefix="everthread-ledger-") as folder:
        path = Path(folder, "thread.db")
        with nullcontext() if has_ledger else without_ledger(), talking(path, durability) as talk:
            for number in range(1, turns + 1):
                talk.turn(THREAD, number)
                pause(talk.costs[-1][0])
        # The size first: looking at rows must not change it.
        size = bytes_a_turn(path, turns)["file_bytes_a_turn"]
        rows, kept = _rows(path)
    return Run(
        [cpu for cpu, _ in talk.costs],
        size,
        rows,
        kept,
        talk.conversation.probe.prompts,
        talk.conversation.probe.tokens,
    )


def _rows(path: Path) -> tuple[dict[str, tuple[int, int]], int]:
    """Return rows and bytes by kind, and how many turns have events."""
    ledger, left = (".".join(space) for space in (namespaces.ledger(THREAD), namespaces.thread(THREAD, "left")))
    with closing(sqlite3.connect(path)) as database:
        columns = [str(row[1]) for row in database.execute("PRAGMA table_info(store)")]
        size = " + ".join(f"coalesce(length(CAST({column} AS BLOB)), 0)" for column in columns)
        kind = "coalesce(json_extract(CAST(value AS TEXT), '$.event'), 'keys for refetches')"
        told = database.execute(
            f"SELECT {kind}, count(*), sum({size}) FROM store WHERE prefix IN (?, ?) GROUP BY 1", (ledger, left)
        ).fetchall()
        turn = "json_extract(CAST(value AS TEXT), '$.turn')"
        (kept,) = database.execute(f"SELECT count(DISTINCT {turn}) FROM store WHERE prefix = ?", (ledger,)).fetchone()
    return {str(name): (int(count), int(length)) for name, count, length in told}, int(kept)


def measured(turns: int, rounds: int, durability: str) -> dict[str, Any]:
    """Run both sides turn by turn, and compare the least that each turn took."""
    runs: dict[bool, list[Run]] = {True: [], False: []}
    for number in range(rounds):
        print(f"round {number + 1} of {rounds} …", file=sys.stderr, flush=True)
        # Whoever runs second finds a warmer machine, so each is second in its turn.
        order = (True, False) if number % 2 else (False, True)
        for has_ledger, run in zip(order, _side_by_side(order, turns, durability), strict=True):
            runs[has_ledger].append(run)
    return compared(runs[True], runs[False], turns)


def _side_by_side(order: Sequence[bool], turns: int, durability: str) -> list[Run]:
    """Run both sides in a fresh process each, a turn of one and then of the other: what slows one slows both."""
    fresh = multiprocessing.get_context("spawn")
    pipes = [fresh.Pipe() for _ in order]
    workers = [
        fresh.Process(target=_work, args=(pipe[1], has_ledger, turns, durability), daemon=True)
        for pipe, has_ledger in zip(pipes, order, strict=True)
    ]
    for pipe, worker in zip(pipes, workers, strict=True):
        worker.start()
        pipe[1].close()  # else the end of a worker that broke down would never be seen
    ends = [pipe[0] for pipe in pipes]
    for _ in range(turns):
        for end in ends:
            end.send("go on")
            end.recv()
    runs = [Run(**_finished(end)) for end in ends]
    for worker in workers:
        worker.join()
    return runs


def _finished(end: Connection) -> dict[str, Any]:
    end.send("go on")
    found: dict[str, Any] = end.recv()
    return found


def _work(end: Connection, has_ledger: bool, turns: int, durability: str) -> None:
    def pause(cpu: float) -> None:
        end.send(cpu)
        end.recv()

    end.recv()
    end.send(asdict(one_run(has_ledger, turns, durability, pause)))


def compared(with_ledger: Sequence[Run], without: Sequence[Run], turns: int) -> dict[str, Any]:
    """Return the figures of both sides."""
    least, bare = (
        [min(costs) for costs in zip(*(run.cpu for run in runs), strict=True)] for runs in (with_ledger, without)
    )
    one, other = with_ledger[-1], without[-1]
    # Handles are made of ids that no two runs share, and so do not always have as many tokens.
    alike = abs(one.prompt_tokens / other.prompt_tokens - 1) < _ALIKE and one.prompts == other.prompts
    kept = max(one.turns_kept, 1)
    a_turn = sum(length for _, length in one.rows.values()) / kept
    grown = (one.file_bytes - other.file_bytes) * turns / kept
    most = min((Context.ledger_turns or _LONG) + retention.RUNS_BETWEEN, _LONG)
    return {
        "turns": turns,
        "rounds": len(with_ledger),
        "prompts_alike": alike,
        "cpu_ms_with": sum(least) / turns * 1e3,
        "cpu_ms_without": sum(bare) / turns * 1e3,
        "cpu_ms_median_difference": median(a - b for a, b in zip(least, bare, strict=True)) * 1e3,
        "cpu_share": 1 - sum(bare) / sum(least),
        "file_bytes_a_turn_with": one.file_bytes,
        "file_bytes_a_turn_without": other.file_bytes,
        "turns_kept": one.turns_kept,
        "row_bytes_a_kept_turn": a_turn,
        "file_bytes_a_kept_turn": grown,
        _OF_LONG: grown * most / _LONG,
        "rows": {
            name: {"a_kept_turn": count / kept, "bytes": length / count}
            for name, (count, length) in sorted(one.rows.items(), key=lambda row: -row[1][1])
        },
    }


def markdown(results: dict[str, Any]) -> str:
    """Return the figures as tables."""
    found = results["found"]
    head = f"# What the ledger costs\n\n`{results['command']}` · {results['machine']} · {results['at']}\n"
    share, size = found["cpu_share"], found[_OF_LONG]
    marks = (
        f"Marks: less than {CPU_MARK:.0%} of a turn's CPU ({_met(share < CPU_MARK)}: {share:.1%}), and less than "
        f"{BYTES_MARK:,} bytes for each turn of a thread of {_LONG:,} ({_met(size < BYTES_MARK)}: {size:,.0f}, since "
        f"most are pruned). A turn that is kept has {found['row_bytes_a_kept_turn']:,.0f} bytes of rows and makes the "
        f"file {found['file_bytes_a_kept_turn']:,.0f} larger: the indexes of the store name each row again.\n"
    )
    figures = [f"| {name} | {_shown(value)} |" for name, value in found.items() if not isinstance(value, dict)]
    rows = [f"| {name} | {row['a_kept_turn']:.2f} | {row['bytes']:,.0f} |" for name, row in found["rows"].items()]
    tables = ["| | |\n| --- | ---: |", *figures, "\n| rows | a turn | bytes of one |\n| --- | ---: | ---: |", *rows]
    return "\n".join([head, marks, *tables]) + "\n"


def _met(is_met: bool) -> str:
    return "met" if is_met else "missed"


def _shown(value: object) -> str:
    return f"{value:,.3f}" if isinstance(value, float) else f"{value:,}" if type(value) is int else str(value)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the tables and write them down; 1 when the two sides did not do the same."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--turns", type=int, default=300, help="length of the thread")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each side")
    parser.add_argument("--durability", choices=["sync", "async", "exit"], default="sync", help="default: sync")
    parser.add_argument("--json", type=Path, default=RESULTS / "ledger.json", help="where the results go")
    options = parser.parse_args(arguments)
    given = sys.argv[1:] if arguments is None else list(arguments)
    results = {
        "command": shlex.join(["python", "benchmarks/ledger.py", *given]),
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}, "
        f"SQLite {sqlite3.sqlite_version}, everthread {version('everthread')}",
        "durability": options.durability,
        "found": measured(options.turns, options.rounds, options.durability),
    }
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    options.json.with_suffix(".md").write_text(markdown(results), encoding="utf-8")
    print(markdown(results))
    print(f"written to {options.json} and .md", file=sys.stderr)
    return 0 if results["found"]["prompts_alike"] else 1


if __name__ == "__main__":
    sys.exit(main())
