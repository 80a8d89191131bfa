"""Kill processes in the middle of turns, open the database again, and look whether anything was lost or done twice.

    python benchmarks/crash.py [--kills 240] [--api sync async] [--durability sync async exit] [--json FILE]

For `invoke` and for `ainvoke`, half of the kills come before evenly spread writes of some turns (every super-step
boundary is one) and half at random moments of one long thread; the durabilities share them. After each kill everything
in the database is compared with a conversation whose every message is known in advance: acknowledged turns, order,
handles, notes, tickets, calls with their results. Then the client goes on: it sends old messages once more, which must
get their own answers, sends the message of the cut-off turn again, resumes that turn first, or gives it up; and no tool
may run again whose result was saved.
"""

import argparse
import json
import random
import shutil
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from killing.checks import faults, saved_items
from killing.life import Life, Plan, live, warm_up
from killing.workload import AGENT, USER, Assistant, Summarizer

from everthread import build_graph, open_storage
from everthread.errors import NotFoundError
from everthread.storage.erasure import erase

BEGINNINGS = {"retry": 6, "resume": 3, "abandon": 1}
"""What a client does about an unfinished turn, and how often at random moments."""

LONG = (7, 12)
"""Turns that are there before the first write to die at, and turns after the last: a session ends between them."""

SHORT = (3, 5)
"""As `LONG`, for a test that must be quick."""

_LIFE = 4
"""Turns of a life that is killed at any moment."""


@dataclass
class Report:
    """What many kills left behind."""

    kills: Counter[str] = field(default_factory=Counter)
    """By where they came."""
    turns: int = 0
    acknowledged: int = 0
    """Turns that some process acknowledged before it died."""
    handles: int = 0
    saved_results: int = 0
    """Tool results that were saved when their process died."""
    faults: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def add(self, life: Life, where: str) -> None:
        """Count a life."""
        self.kills[where] += life.was_killed
        self.acknowledged += len(life.acknowledged)
        self.faults += [f"{where}: {fault}" for fault in life.faults]

    def as_json(self) -> dict[str, Any]:
        """Return the figures."""
        return {**vars(self), "kills": self.kills.total(), "where": dict(self.kills.most_common())}


@dataclass
class Client:
    """Somebody who talks on one thread and whose process keeps dying."""

    url: str
    api: str
    durability: str
    acknowledged: int = 0
    """The next turn to be acknowledged."""
    abandoned: list[int] = field(default_factory=list)
    handles: set[str] = field(default_factory=set)
    saved: set[str] = field(default_factory=set)
    """Items whose results were saved whenever the database was looked at."""

    def live(self, last: int, begin: str = "retry", **death: Any) -> Life:
        """Run turns up to `last` from where the last process stopped."""
        if begin == "abandon" and self.acknowledged < last - 1:
            self.abandoned.append(self.acknowledged)
            self.acknowledged += 1
        resends = self._old_turns() if begin != "abandon" else ()
        life = live(Plan(self.url, self.acknowledged, last, begin, resends, self.api, self.durability, **death))
        life.faults += [f"{item} was looked up again" for item in sorted(self.saved.intersection(life.fetched))]
        if life.acknowledged:
            self.acknowledged = life.acknowledged[-1] + 1
        self.handles |= life.handles
        return life

    def _old_turns(self) -> tuple[int, ...]:
        """Return the last acknowledged turn and one from long ago, whose answers are asked for once more."""
        answered = [turn for turn in range(self.acknowledged) if turn not in self.abandoned]
        return tuple({answered[-1], answered[self.acknowledged * 7 % len(answered)]}) if answered else ()

    def look(self) -> list[str]:
        """Open the database again and return what is wrong."""
        with open_storage(self.url) as storage:
            graph = build_graph(AGENT, model=Assistant(), summarizer=Summarizer(), storage=storage)
            self.saved |= saved_items(graph)
            return faults(storage, self.acknowledged, self.abandoned, self.handles)

    def copied(self, path: Path) -> "Client":
        """Copy the database, which no process has open, and who talks in it."""
        for leftover in _files(path):
            leftover.unlink(missing_ok=True)
        source = Path(self.url.removeprefix("sqlite:///"))
        with closing(sqlite3.connect(source)) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        shutil.copy(source, path)
        known = (self.acknowledged, list(self.abandoned), set(self.handles), set(self.saved))
        return Client(f"sqlite:///{path}", self.api, self.durability, *known)


def before_writes(
    folder: Path, kills: int, seed: int, how: tuple[str, str], begins: Sequence[str], span: tuple[int, int] = LONG
) -> Report:
    """Kill before each write of some turns, or before evenly spread ones when there are more than `kills`."""
    began, report, chance = time.monotonic(), Report(), random.Random(seed)
    there, enough = span
    base = Client(f"sqlite:///{folder / '-'.join(('base', *how))}.db", *how)
    report.add(base.live(there), "base")
    writes = base.copied(folder / "whole.db").live(enough).statements
    step = max(writes / max(kills, 1), 1.0)
    start = chance.uniform(0, step) if step > 1 else 0.0
    for number in range(min(kills, writes)):
        client, begin, write = (
            base.copied(folder / "killed.db"),
            begins[number % len(begins)],
            int(start + number * step),
        )
        life = client.live(enough, at_statement=write)
        where = f"before {_kind(life.statement)}"
        report.add(life, where)
        report.faults += [f"{where} (write {write}): {fault}" for fault in client.look()]
        report.saved_results += len(client.saved)
        report.add(client.live(enough + 1, begin), f"{where} (write {write}), {begin}")
        report.faults += [f"{where} (write {write}), {begin}: {fault}" for fault in client.look()]
        report.turns += enough + 1 - there
        report.handles += len(client.handles)
    report.seconds = time.monotonic() - began
    return report


def at_any_moment(folder: Path, kills: int, seed: int, how: tuple[str, str], begins: Sequence[str]) -> Report:
    """Kill one thread's processes again and again, at random moments."""
    began, report, chance = time.monotonic(), Report(), random.Random(seed)
    client = Client(f"sqlite:///{folder / '-'.join(('moments', *how))}.db", *how)
    length = client.live(_LIFE).seconds / 2
    while report.kills.total() < kills:
        begin = chance.choices(begins, weights=[BEGINNINGS[one] for one in begins])[0]
        life = client.live(client.acknowledged + _LIFE, begin, after_seconds=chance.uniform(0, length))
        report.add(life, "at any moment")
        # Half of a life on average, whatever else this machine is doing.
        length *= 1.1 if len(life.acknowledged) < _LIFE / 2 else 0.9
        number = report.kills.total()
        report.faults += [f"after kill {number} at a random moment, {begin}: {fault}" for fault in client.look()]
        report.saved_results += len(client.saved)
    report.add(client.live(client.acknowledged + 2, "resume"), "the end")
    report.faults += [f"the end: {fault}" for fault in client.look()]
    report.turns, report.handles = client.acknowledged, len(client.handles)
    report.seconds = time.monotonic() - began
    return report


def while_erasing(folder: Path, kills: int) -> Report:
    """Kill an erasure before its writes; a second one must finish it, to the last byte."""
    began, report = time.monotonic(), Report()
    base = Client(f"sqlite:///{folder / 'erased.db'}", "sync", "sync")
    report.add(base.live(SHORT[1]), "base")
    writes = live(Plan(base.copied(folder / "whole.db").url, 0, 0, forget=True)).statements
    # The last ones rewrite the file and empty the log; before them come the rows, of which some are enough.
    last = range(max(writes - kills // 2, 0), writes)
    rows = range(0, last.start, max(last.start // max(kills - len(last), 1), 1))
    for write in [*rows, *last]:
        path = folder / "killed.db"
        life = live(Plan(base.copied(path).url, 0, 0, forget=True, at_statement=write))
        where = f"before {_kind(life.statement)}"
        report.add(life, where)
        with open_storage(f"sqlite:///{path}") as storage, suppress(NotFoundError):
            report.faults += [f"{where}: {left} is left" for left in erase(storage, user_id=USER).left]
        if count := sum(file.read_bytes().count(b"Question") for file in _files(path) if file.exists()):
            report.faults.append(f"{where} (write {write}): {count} questions are left in the bytes")
    report.seconds = time.monotonic() - began
    return report


def _kind(statement: str) -> str:
    words = statement.split() or ["the end"]
    table = next((word for word in words[1:] if word.upper() not in ("OR", "REPLACE", "IGNORE", "INTO", "FROM")), "")
    return f"{words[0]} {table}".strip()


def _files(path: Path) -> Iterator[Path]:
    yield from (path, path.with_name(path.name + "-wal"), path.with_name(path.name + "-shm"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all trials and print what they showed; 1 when anything was wrong."""
    options = _parser().parse_args(arguments)
    began = time.monotonic()
    reports: dict[str, Report] = {}
    warm_up()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        for api in options.api:
            for place, durability in enumerate(options.durability):
                # The durabilities share the kills; the first ones take what is left over.
                kills = len(range(place, options.kills, len(options.durability)))
                how, seed = (api, durability), options.seed + place
                title = f"{api}, durability {durability}"
                span = SHORT if options.short else LONG
                reports[f"{title}, before a write"] = before_writes(
                    folder, kills - kills // 2, seed, how, options.begin, span
                )
                reports[f"{title}, at any moment"] = at_any_moment(folder, kills // 2, seed, how, options.begin)
        reports["while erasing"] = while_erasing(folder, max(options.kills // 6, 2))
    results = {name: report.as_json() for name, report in reports.items()}
    if options.json is not None:
        text = json.dumps({**results, "seconds": round(time.monotonic() - began, 1)}, indent=2)
        options.json.write_text(text + "\n", encoding="utf-8")
    _print(reports)
    return 1 if any(report.faults for report in reports.values()) else 0


def _print(reports: dict[str, Report]) -> None:
    print("| trial | kills | turns | acknowledged | saved tool results | handles | wrong | seconds |")
    print(f"|---|{'---:|' * 7}")
    for name, report in reports.items():
        counts = (report.kills.total(), report.turns, report.acknowledged, report.saved_results, report.handles)
        cells = [name, *(f"{count:,}" for count in (*counts, len(report.faults))), f"{report.seconds:.0f}"]
        print(f"| {' | '.join(cells)} |")
    for name, report in reports.items():
        for fault in report.faults[:10]:
            print(f"wrong: {name}: {fault}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--kills", type=int, default=240, help="kills of each API, shared by the durabilities")
    parser.add_argument("--api", nargs="+", choices=["sync", "async"], default=["sync", "async"])
    durabilities = ["sync", "async", "exit"]
    parser.add_argument("--durability", nargs="+", choices=durabilities, default=durabilities)
    parser.add_argument("--begin", nargs="+", choices=list(BEGINNINGS), default=list(BEGINNINGS), help="after a kill")
    parser.add_argument("--short", action="store_true", help="kill before the writes of two turns rather than of five")
    parser.add_argument("--seed", type=int, default=1, help="what the random moments follow from")
    parser.add_argument("--json", type=Path, default=None, metavar="FILE", help="write the figures down")
    parser.add_argument("--folder", type=Path, default=None, help="where the databases are made; in memory is fastest")
    return parser


if __name__ == "__main__":
    sys.exit(main())
