"""Compare how long threads fare in Everthread and in its peers: CPU, bytes, tokens and their price, and what gets lost.

Every contender has the same model, which replies at once and costs nothing, the same tools, the same window and a
SQLite file of its own. CPU is that of the contender's process, all threads, without the model; a turn is an `invoke` or
`ainvoke`. Contenders take ten turns each in rotation; compare figures within one run only. Peers come with
`pip install '.[bench]'`.
"""

import argparse
import json
import platform
import shlex
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from itertools import product
from pathlib import Path
from typing import Any

from longrun.contenders import CONTENDERS, PACKAGES
from longrun.report import LEGEND, markdown, settings
from longrun.round import run
from longrun.thread import MODES, Job
from longrun.workload import WORKLOADS

RESULTS = Path(__file__).parent / "results"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the arguments ask for, print the tables, and write them down."""
    options = _parser().parse_args(arguments)
    if unknown := sorted(set(options.only) - set(CONTENDERS)):
        print(f"there is no contender {unknown[0]!r}; there are {', '.join(CONTENDERS)}", file=sys.stderr)
        return 2
    rows: list[dict[str, Any]] = []
    names = [name for name in CONTENDERS if name in options.only or not options.only]
    for durability, mode in product(options.durability, options.mode):
        for workload, size in _sizes(options, mode):
            rows += run(
                [Job(name, workload, size, durability, options.window, options.seconds, mode) for name in names]
            )
            _write(options.json, rows, arguments)
    print(markdown(rows))
    print(f"\nwritten to {options.json} and {options.json.with_suffix('.md')}", file=sys.stderr)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--turns", nargs="+", type=int, default=[30, 100, 300, 1000], help="lengths of a thread")
    parser.add_argument("--rounds", type=int, default=300, help="tool rounds of workload c")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help=f"among {', '.join(CONTENDERS)}")
    parser.add_argument("--workload", nargs="+", choices=["a", "b", "c"], default=["a", "b", "c"])
    parser.add_argument("--durability", nargs="+", choices=["default", "async", "exit", "sync"], default=["default"])
    parser.add_argument(
        "--mode", nargs="+", choices=list(MODES), default=list(MODES), help="`invoke`, `ainvoke`, 8 at once"
    )
    parser.add_argument("--window", type=int, default=8000, help="input limit of the model in tokens")
    parser.add_argument("--seconds", type=float, default=120.0, help="a contender is stopped after this long")
    parser.add_argument("--json", type=Path, default=RESULTS / "window.json", help="where the results go")
    return parser


def _sizes(options: argparse.Namespace, mode: str) -> list[tuple[str, int]]:
    """Return workloads and lengths of a thread; the cost of a round is only known while one thread talks."""
    return [
        (workload.name, size)
        for workload in WORKLOADS.values()
        if workload.name[0] in options.workload and not (workload.single_turn and MODES[mode] > 1)
        for size in ([options.rounds] if workload.single_turn else options.turns)
    ]


def _write(path: Path, rows: Sequence[dict[str, Any]], arguments: Sequence[str] | None) -> None:
    """Write after each round, so that an interrupted run leaves what it has."""
    words = sys.argv[1:] if arguments is None else arguments
    versions = {name: _version(name) for name in PACKAGES}
    results = {
        "command": shlex.join(["python", "benchmarks/window.py", *words]),
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "versions": versions,
        "workloads": {workload.name: workload.title for workload in WORKLOADS.values()},
        "results": list(rows),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    installed = ", ".join(f"{name} {number}" for name, number in versions.items())
    head = f"# Long threads: Everthread and its peers\n\n`{results['command']}` · {results['machine']} · {installed}\n"
    body = "\n\n".join((LEGEND, markdown(rows), "### Settings", settings(rows)))
    path.with_suffix(".md").write_text(f"{head}\n{body}\n", encoding="utf-8")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


if __name__ == "__main__":
    sys.exit(main())
