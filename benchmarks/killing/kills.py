"""Many kills, and what was wrong after each: before every write of some turns, and at any moment of a long thread."""

import random
import shutil
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

from everthread import open_storage
from everthread.errors import NotFoundError
from everthread.storage.erasure import erase
from killing.checks import faults
from killing.life import Plan, Told, live
from killing.workload import USER

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
    faults: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def add(self, told: Told, where: str) -> None:
        """Count a life."""
        self.kills[where] += told.was_killed
        self.acknowledged += len(told.acknowledged)
        self.faults += [f"{where}: {fault}" for fault in told.faults]


@dataclass
class Client:
    """Somebody who talks on one thread and whose process keeps dying."""

    url: str
    acknowledged: int = 0
    """The next turn to be acknowledged."""
    abandoned: list[int] = field(default_factory=list)
    handles: set[str] = field(default_factory=set)

    def live(self, last: int, begin: str = "retry", **death: float | int | None) -> Told:
        """Run turns up to `last` from where the last process stopped."""
        if begin == "abandon" and self.acknowledged < last - 1:
            self.abandoned.append(self.acknowledged)
            self.acknowledged += 1
        told = live(Plan(self.url, self.acknowledged, last, begin, **death))  # type: ignore[arg-type]
        if told.acknowledged:
            self.acknowledged = told.acknowledged[-1] + 1
        self.handles |= told.handles
        return told

    def faults(self) -> list[str]:
        """Open the database again and return what is wrong."""
        with open_storage(self.url) as storage:
            return faults(storage, self.acknowledged, self.abandoned, self.handles)


def before_writes(
    folder: Path, kills: int, seed: int, *, begins: Sequence[str] = tuple(BEGINNINGS), span: tuple[int, int] = LONG
) -> Report:
    """Kill before each write of some turns, or before evenly spread ones when there are more than `kills`."""
    began, report, chance = time.monotonic(), Report(), random.Random(seed)
    there, enough = span
    base = Client(f"sqlite:///{folder / 'base.db'}")
    report.add(base.live(there), "base")
    whole = _copy(base, folder / "whole.db")
    writes = whole.live(enough).statements
    step = max(writes / max(kills, 1), 1.0)
    start = chance.uniform(0, step) if step > 1 else 0.0
    for number in range(min(kills, writes)):
        client = _copy(base, folder / "killed.db")
        told = client.live(enough, at_statement=int(start + number * step))
        where = f"before {_kind(told.statement)}"
        report.add(told, where)
        begin = begins[number % len(begins)]
        report.faults += [f"{where} (write {int(start + number * step)}): {fault}" for fault in client.faults()]
        report.add(client.live(enough + 1, begin), "afterwards")
        report.faults += [
            f"{where}, {begin} (write {int(start + number * step)}): {fault}" for fault in client.faults()
        ]
        report.turns += enough + 1 - there
        report.handles += len(client.handles)
    report.seconds = time.monotonic() - began
    return report


def at_any_moment(folder: Path, kills: int, seed: int, *, begins: Sequence[str] = tuple(BEGINNINGS)) -> Report:
    """Kill one thread's processes again and again, at random moments."""
    began, report, chance = time.monotonic(), Report(), random.Random(seed)
    client = Client(f"sqlite:///{folder / 'moments.db'}")
    length = client.live(_LIFE).seconds / 2
    while report.kills.total() < kills:
        begin = chance.choices(begins, weights=[BEGINNINGS[one] for one in begins])[0]
        told = client.live(client.acknowledged + _LIFE, begin, after_seconds=chance.uniform(0, length))
        report.add(told, "at any moment")
        # Half of a life on average, whatever else this machine is doing.
        length *= 1.1 if len(told.acknowledged) < _LIFE / 2 else 0.9
        number = report.kills.total()
        report.faults += [f"after kill {number} at a random moment, {begin}: {fault}" for fault in client.faults()]
    report.add(client.live(client.acknowledged + 2, "resume"), "the end")
    report.faults += [f"the end: {fault}" for fault in client.faults()]
    report.turns, report.handles = client.acknowledged, len(client.handles)
    report.seconds = time.monotonic() - began
    return report


def while_erasing(folder: Path, kills: int) -> Report:
    """Kill an erasure before its writes; a second one must finish it, to the last byte."""
    began, report = time.monotonic(), Report()
    base = Client(f"sqlite:///{folder / 'erased.db'}")
    report.add(base.live(SHORT[1]), "base")
    writes = live(Plan(_copy(base, folder / "whole.db").url, 0, 0, forget=True)).statements
    # The last ones rewrite the file and empty the log; before them come the rows, of which some are enough.
    last = range(max(writes - kills // 2, 0), writes)
    rows = range(0, last.start, max(last.start // max(kills - len(last), 1), 1))
    for write in [*rows, *last]:
        path = folder / "killed.db"
        told = live(Plan(_copy(base, path).url, 0, 0, forget=True, at_statement=write))
        where = f"before {_kind(told.statement)}"
        report.add(told, where)
        with open_storage(f"sqlite:///{path}") as storage, suppress(NotFoundError):
            report.faults += [f"{where}: {left} is left" for left in erase(storage, user_id=USER).left]
        if count := sum(file.read_bytes().count(b"Question") for file in _files(path) if file.exists()):
            report.faults.append(f"{where} (write {write}): {count} questions are left in the bytes")
    report.seconds = time.monotonic() - began
    return report


def _kind(statement: str) -> str:
    words = statement.split()
    table = next((word for word in words[1:] if word.upper() not in ("OR", "REPLACE", "IGNORE", "INTO", "FROM")), "")
    return f"{words[0]} {table}".strip()


def _copy(client: Client, path: Path) -> Client:
    """Copy a database that no process has open, and who talks in it."""
    for leftover in _files(path):
        leftover.unlink(missing_ok=True)
    source = Path(client.url.removeprefix("sqlite:///"))
    with closing(sqlite3.connect(source)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    shutil.copy(source, path)
    return Client(f"sqlite:///{path}", client.acknowledged, list(client.abandoned), set(client.handles))


def _files(path: Path) -> Iterator[Path]:
    yield from (path, path.with_name(path.name + "-wal"), path.with_name(path.name + "-shm"))
