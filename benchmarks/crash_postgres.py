"""Do to processes on Postgres what happens in production, and look whether anything was lost or done twice.

    python benchmarks/crash_postgres.py [--tries 50] [--trial kill consolidation cut restart exhausted migrate]

`kill` ends a worker in the middle of turns, `consolidation` while a session ends, `cut` ends the sessions of Postgres,
`restart` stops Postgres and starts it again, `exhausted` takes every connection that Postgres has left, and `migrate`
kills `everthread migrate`. The conversation and what must hold after it are those of `crash.py`; the server is one of
its own. A process that was not killed may fail in one sentence, and the next one has to answer within a minute.
"""

import argparse
import json
import os
import random
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from itertools import count
from pathlib import Path

import psycopg
from crash import BEGINNINGS, Client
from killing.life import Life, kill, warm_up

from everthread import open_storage
from everthread.storage.migration import Migration, migrate

sys.path.append(str(Path(__file__).parents[1] / "tests"))

import postgres_server

TRIALS = ("kill", "consolidation", "cut", "restart", "exhausted", "migrate")

TAKEN_OVER_SECONDS = 60.0

_LIFE = 3
"""Turns of a life that is struck."""

_THREAD = 6
"""Strikes on one thread; the checks read all of it."""

_TOLD = re.compile(r"failed: (_CutError|StorageError): [^\n]{20,300}")
"""What a process that was not killed may end with: one sentence."""


@dataclass
class Outcome:
    """What many strikes left behind."""

    tries: int = 0
    turns: int = 0
    told: int = 0
    """Processes that ended with an error, in one sentence."""
    slowest_seconds: float = 0.0
    """Until the next process had answered."""
    faults: list[str] = field(default_factory=list)

    def add(self, where: str, life: Life, *, is_struck: bool = True) -> None:
        """Count a life."""
        told = [fault for fault in life.faults if is_struck and _TOLD.fullmatch(fault)]
        self.told += bool(told)
        self.turns += len(life.acknowledged)
        self.faults += [f"{where}: {fault}" for fault in life.faults if fault not in told]


class Server:
    """A Postgres of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._port, self._schemas = folder, postgres_server.free_port(), count(1)
        self.url = self.start()

    def start(self) -> str:
        """Start it; a commit that was acknowledged outlives a crash of it."""
        return postgres_server.start(self._folder, self._port, synchronous_commit="on", max_connections="40")

    def stop(self, mode: str = "fast") -> None:
        """Stop it; `immediate` is a crash."""
        postgres_server.stop(self._folder, mode)

    def schema(self, options: str = "") -> str:
        """Return the URL of a database that is empty."""
        return f"{self.url}?schema=s{next(self._schemas)}{options}"

    def restart(self, _: int) -> None:
        """Stop it while processes work, every other time as a crash does."""
        self.stop("immediate" if next(self._schemas) % 2 else "fast")
        self.start()

    def cut(self, _: int) -> None:
        """End all sessions."""
        with psycopg.connect(self.url, autocommit=True) as session:
            session.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name <> ''")

    def exhaust(self, _: int) -> None:
        """Take all connections for a moment."""
        taken: list[psycopg.Connection] = []
        with suppress(psycopg.OperationalError):
            while True:
                taken.append(psycopg.connect(self.url))
        time.sleep(0.3)
        for session in taken:
            session.close()


def struck(server: Server, tries: int, seed: int, strike: Callable[[int], None], options: str = "") -> Outcome:
    """Strike the processes of a thread at random moments; each time another one goes on with it."""
    outcome, chance = Outcome(), random.Random(seed)
    client, length = Client("", "sync", "sync"), 0.0
    for number in range(tries):
        if number % _THREAD == 0:
            how = ("sync", "async")[number // _THREAD % 2], ("sync", "async", "exit")[number // _THREAD % 3]
            client = Client(server.schema(options), *how)
            first = client.live(_LIFE)
            outcome.add("the beginning", first, is_struck=False)
            length = first.seconds
        begin = chance.choices(list(BEGINNINGS), weights=list(BEGINNINGS.values()))[0]
        where = f"strike {number}, {client.api}, {client.durability}, {begin}"
        last = client.acknowledged + _LIFE
        _strike(outcome, where, client, last, begin, after_seconds=chance.uniform(0, length), strike=strike)
    return outcome


def consolidations(server: Server, tries: int, seed: int) -> Outcome:
    """Kill processes while they end a session that has something to remember."""
    outcome, chance = Outcome(), random.Random(seed)
    client, length = Client("", "sync", "sync"), 0.1
    for number in range(tries):
        if number % _THREAD == 0:
            client = Client(server.schema(), ("sync", "async")[number // _THREAD % 2], "sync")
        # Every fourth turn tells a habit; the session ends behind each.
        turn = -(-client.acknowledged // 4) * 4
        if turn > client.acknowledged:
            outcome.add("between", client.live(turn, end_every=turn + 2), is_struck=False)
        moment = chance.uniform(0, length)
        options = {"end_every": 1, "after_seconds": moment, "is_behind_reply": True}
        life = _strike(outcome, f"consolidation {number}", client, turn + 1, "retry", **options)
        # Half of the ends, whatever else this machine is doing.
        length *= 1.1 if not life.ended else 0.9
    return outcome


def _strike(outcome: Outcome, where: str, client: Client, last: int, begin: str, **death: object) -> Life:
    """Strike a life and let another one go on."""
    outcome.tries += 1
    life = client.live(last, begin, **death)
    outcome.add(where, life)
    outcome.faults += [f"{where}: {fault}" for fault in client.look()]
    began = time.monotonic()
    outcome.add(f"{where}, next", client.live(client.acknowledged + 1), is_struck=False)
    seconds = time.monotonic() - began
    outcome.slowest_seconds = max(outcome.slowest_seconds, seconds)
    if seconds > TAKEN_OVER_SECONDS:
        outcome.faults.append(f"{where}: it took {seconds:.0f} s until the next process had answered")
    outcome.faults += [f"{where}, next: {fault}" for fault in client.look()]
    return life


def migrations(server: Server, tries: int, seed: int, folder: Path) -> Outcome:
    """Kill processes that copy a database to Postgres, until one is done; then both must be the same."""
    outcome, chance = Outcome(), random.Random(seed)
    source = f"sqlite:///{folder}/source.db"
    outcome.add("the source", Client(source, "sync", "sync").live(8), is_struck=False)
    began = time.monotonic()
    whole = _copied(source, server.schema())
    length = time.monotonic() - began
    while outcome.tries < tries:
        target = server.schema()
        for _ in range(2):
            outcome.tries += 1
            _killed_copy(source, target, chance.uniform(0, length))
        done = _copied(source, target)
        again = _copied(source, target)
        if done.not_copied or (done.digests, done.checkpoints, done.records) != (
            whole.digests,
            whole.checkpoints,
            whole.records,
        ):
            outcome.faults.append(f"try {outcome.tries}: the copy is not the same: {done}")
        if again.checkpoints_copied or again.records_copied:
            outcome.faults.append(f"try {outcome.tries}: the last run copied again: {again}")
    return outcome


def _copied(source: str, target: str) -> Migration:
    with open_storage(source) as one, open_storage(target) as other:
        return migrate(one, other, lambda *_: None)


def _killed_copy(source: str, target: str, seconds: float) -> None:
    child = os.fork()
    if child == 0:
        with suppress(BaseException):
            _copied(source, target)
        os._exit(0)
    time.sleep(seconds)
    kill(child)
    os.waitpid(child, 0)


@contextmanager
def _running() -> Iterator[tuple[Server, Path]]:
    folder = Path(tempfile.mkdtemp(prefix="everthread-faults-"))
    try:
        server = Server(folder)
        try:
            yield server, folder
        finally:
            server.stop("immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all trials and print what they showed; 1 when anything was wrong."""
    options = _parser().parse_args(arguments)
    warm_up()
    outcomes: dict[str, Outcome] = {}
    print("| trial | tries | turns | told | slowest next answer, s | wrong |\n|---|---:|---:|---:|---:|---:|")
    with _running() as (server, folder):
        strikes = {"kill": kill, "cut": server.cut, "restart": server.restart, "exhausted": server.exhaust}
        for name in options.trial:
            if name == "migrate":
                outcome = migrations(server, options.tries, options.seed, folder)
            elif name == "consolidation":
                outcome = consolidations(server, options.tries, options.seed)
            else:
                pool = "&pool_size=1" if name == "exhausted" else ""
                outcome = struck(server, options.tries, options.seed, strikes[name], pool)
            outcomes[name] = outcome
            cells = (name, outcome.tries, outcome.turns, outcome.told, f"{outcome.slowest_seconds:.1f}")
            print(f"| {' | '.join(map(str, cells))} | {len(outcome.faults)} |", flush=True)
            for fault in outcome.faults[:10]:
                print(f"wrong: {name}: {fault}", file=sys.stderr)
    if options.json is not None:
        text = json.dumps({name: asdict(outcome) for name, outcome in outcomes.items()}, indent=2)
        options.json.write_text(text + "\n", encoding="utf-8")
    return 1 if any(outcome.faults for outcome in outcomes.values()) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--tries", type=int, default=50, help="of each trial")
    parser.add_argument("--trial", nargs="+", choices=TRIALS, default=list(TRIALS))
    parser.add_argument("--seed", type=int, default=1, help="what the random moments follow from")
    parser.add_argument("--json", type=Path, default=None, metavar="FILE", help="write the figures down")
    return parser


if __name__ == "__main__":
    sys.exit(main())
