"""Kill processes in the middle of turns, let processes meet on one thread, and look whether anything was lost.

`--kills` kills go in halves: before evenly spread writes of five turns (every super-step boundary is one), and at
random moments of one long thread. After each kill the database is opened again and everything in it is compared with
a conversation whose every message is known in advance: acknowledged messages, their order, handles, notes, tickets.
Then the client goes on: it sends the same message again, resumes the turn first, or gives it up.
"""

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from killing.kills import BEGINNINGS, LONG, SHORT, Report, at_any_moment, before_writes, while_erasing
from killing.life import warm_up
from killing.pairs import killed_while_another_waits, side_by_side, stopped_and_overtaken


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all trials and print what was found; 1 when anything was wrong."""
    options = _parser().parse_args(arguments)
    began = time.monotonic()
    found: dict[str, Any] = {}
    warm_up()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        half = options.kills // 2
        span = SHORT if options.short else LONG
        found["before a write"] = _kills(
            before_writes(folder, options.kills - half, options.seed, begins=options.begin, span=span)
        )
        found["at any moment"] = _kills(at_any_moment(folder, half, options.seed, begins=options.begin))
        found["while erasing"] = _kills(while_erasing(folder, max(options.kills // 6, 2)))
        one, many = options.turns, max(options.turns // 10, 1)
        found["one thread"] = asdict(side_by_side(folder, processes=2, threads=1, turns=one))
        found["many threads"] = asdict(side_by_side(folder, processes=2, threads=options.threads, turns=many))
        found["holder killed"] = asdict(killed_while_another_waits(folder, max(options.kills // 20, 1)))
        found["process stopped"] = asdict(stopped_and_overtaken(folder, max(options.kills // 40, 1)))
    wrong = [fault for trial in found.values() for fault in trial["faults"]]
    found["seconds"] = round(time.monotonic() - began, 1)
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    _print(found, wrong)
    return 1 if wrong else 0


def _kills(report: Report) -> dict[str, Any]:
    where: Counter[str] = Counter()
    for place, count in report.kills.items():
        where[place] += count
    return {
        "kills": report.kills.total(),
        "where": {place: count for place, count in where.most_common() if count},
        "turns": report.turns,
        "acknowledged": report.acknowledged,
        "handles": report.handles,
        "faults": report.faults,
        "seconds": report.seconds,
    }


def _print(found: dict[str, Any], wrong: list[str]) -> None:
    print("| trial | kills | turns | checked | wrong | seconds |\n|---|---:|---:|---|---:|---:|")
    for name in ("before a write", "at any moment", "while erasing"):
        told = found[name]
        checked = f"{told['acknowledged']:,} acknowledged turns, {told['handles']:,} handles"
        checked = "no byte is left" if name == "while erasing" else checked
        tail = f"{checked} | {len(told['faults'])} | {told['seconds']:.0f}"
        print(f"| {name} | {told['kills']} | {told['turns']:,} | {tail} |")
    for name in ("one thread", "many threads", "holder killed", "process stopped"):
        told = found[name]
        sizes = f"{told['processes']} processes × {told['threads']} threads × {told['turns']}"
        checked = f"{told['messages']:,} messages" if told["messages"] else "the waiting process goes on"
        print(f"| {name} | | {sizes} | {checked} | {len(told['faults'])} | {told['seconds']:.0f} |")
    for fault in wrong[:20]:
        print(f"wrong: {fault}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--kills", type=int, default=240, help="kills altogether")
    parser.add_argument("--turns", type=int, default=200, help="turns of each of two processes on one thread")
    parser.add_argument(
        "--threads", type=int, default=20, help="threads that two processes share, for a tenth as many turns"
    )
    parser.add_argument("--begin", nargs="+", choices=list(BEGINNINGS), default=list(BEGINNINGS), help="after a kill")
    parser.add_argument("--short", action="store_true", help="kill before the writes of two turns rather than of five")
    parser.add_argument("--seed", type=int, default=1, help="what the random moments follow from")
    parser.add_argument("--json", type=Path, default=None, metavar="FILE", help="write the figures down")
    parser.add_argument("--folder", type=Path, default=None, help="where the databases are made; in memory is fastest")
    return parser


if __name__ == "__main__":
    sys.exit(main())
