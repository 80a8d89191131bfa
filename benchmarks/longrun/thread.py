"""Run one contender through a thread, or several at once, in a process of its own, and measure it turn by turn."""

import asyncio
import gc
import sqlite3
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median
from typing import Any

from langchain_core.messages import BaseMessage

from longrun.contenders import CONTENDERS, Running, Setup
from longrun.fakes import CURRENT, TOOLS, Clock, Conversation, FakeChat, FakeSummarizer, Script, StoppedError
from longrun.probe import Probe
from longrun.workload import INSTRUCTIONS, RULE, WORKLOADS, Workload, question, reference, tool_result

_STRETCH = 100
"""Turns at the end that are compared with the 100 around turn 100."""

_WARM_UP_TURNS = 16

MODES = {"sync": 1, "async": 1, "async-8": 8}
"""How the graph is called, and how many threads talk at once."""

CACHED_PRICE = 0.1
"""Of a cached input token; an uncached one costs 1."""


@dataclass(frozen=True)
class Job:
    """One contender on one workload."""

    contender: str
    workload: str
    turns: int
    """User turns of each thread; for a workload with a single turn, its tool rounds."""
    durability: str
    window: int
    seconds: float
    """Time after which the contender is stopped."""
    mode: str = "sync"
    """Among `MODES`."""


@dataclass
class Thread:
    """A contender at work on a thread, or on several that take each turn at the same time.

    The threads of one contender say the same, so what prompts show is told of the first.
    """

    job: Job
    workload: Workload
    running: Running
    conversations: Sequence[Conversation]
    clock: Clock
    path: Path
    runner: asyncio.Runner | None
    costs: list[tuple[float, float]] = field(default_factory=list)
    """CPU and wall seconds of each turn of one thread."""
    seconds: float = 0.0
    """Time used so far; kept, since adding it up anew would make later turns dearer."""
    is_stopped: bool = False

    @property
    def is_done(self) -> bool:
        """Tell whether there is no turn left."""
        return self.is_stopped or len(self.costs) >= (1 if self.workload.single_turn else self.job.turns)

    def advance(self, turns: int) -> None:
        """Run some more turns, as long as there is time."""
        for _ in range(turns):
            if self.is_done:
                return
            self._turn(len(self.costs) + 1)

    def _turn(self, turn: int) -> None:
        text = question(self.workload, turn)
        for conversation in self.conversations:
            conversation.script.begin(turn)
            conversation.probe.question = text
        cpu, wall = self.clock.cpu, self.clock.wall
        self.clock.limit_seconds = wall + self.job.seconds - self.seconds
        try:
            if self.runner:
                self.runner.run(self._ask_all(text))
            else:
                CURRENT.set(self.conversations[0])
                self.running.ask(self.conversations[0].thread_id, text)
        except StoppedError:
            self.is_stopped = True
        count = len(self.conversations)
        self.costs.append(((self.clock.cpu - cpu) / count, (self.clock.wall - wall) / count))
        self.seconds += self.clock.wall - wall
        self.is_stopped = self.is_stopped or self.seconds > self.job.seconds

    async def _ask_all(self, text: str) -> None:
        async def ask(conversation: Conversation) -> None:
            CURRENT.set(conversation)
            await self.running.aask(conversation.thread_id, text)

        async with asyncio.TaskGroup() as tasks:
            for conversation in self.conversations:
                tasks.create_task(ask(conversation))

    def units(self) -> list[tuple[float, float]]:
        """Return the cost of each turn, or of each round: from one model call to the next."""
        if not self.workload.single_turn:
            return self.costs
        marks = self.clock.marks
        return [(cpu - cpu_before, wall - wall_before) for (cpu_before, wall_before), (cpu, wall) in pairwise(marks)]

    def report(self) -> dict[str, Any]:
        """Return everything measured but the size of the database, which has to be closed first."""
        cpu = [cpu for cpu, _ in self.units()]
        done = len(cpu)
        probe, summarized = self.conversations[0].probe, self.conversations[0].summarized
        price = probe.tokens - (1 - CACHED_PRICE) * probe.repeated_tokens + sum(summarized)
        return {
            "status": "stopped" if self.is_stopped else "done",
            "threads": len(self.conversations),
            "units": done,
            "unit": self.workload.unit,
            "seconds": round(self.seconds, 2),
            # Of whole turns: what comes after the last call belongs to the cost of a round, too.
            "cpu_ms": sum(cpu for cpu, _ in self.costs) / done * 1e3 if done else None,
            "wall_ms": sum(wall for _, wall in self.costs) / done * 1e3 if done else None,
            "cpu_ms_median": median(cpu) * 1e3 if cpu else None,
            "cpu_ms_by_tenth": [round(fmean(part) * 1e3, 2) for part in tenths(cpu)],
            **growth(cpu),
            **probe.report(),
            "summarizer_calls": len(summarized),
            "summarizer_tokens": sum(summarized),
            "priced_tokens": price / done if done else None,
            "turn_1": self._turn_1(),
            "settings": self.running.settings,
        }

    def _turn_1(self) -> str:
        if self.is_stopped and self.workload.single_turn:
            return "not looked at: stopped inside the turn"
        wanted = first_texts(self.workload)
        if holds(self.running.readable(self.conversations[0].thread_id), wanted):
            return self.running.where
        return "only in old checkpoints" if _in_file(self.path, wanted[-1]) else "no"


def growth(cpu: Sequence[float]) -> dict[str, float | None]:
    """Compare the last 100 turns with the 100 around turn 100; None for a thread shorter than both."""
    if len(cpu) < 2 * _STRETCH:
        return {"cpu_ms_at_100": None, "cpu_ms_at_end": None, "growth": None}
    early, late = fmean(cpu[_STRETCH // 2 : _STRETCH * 3 // 2]), fmean(cpu[-_STRETCH:])
    return {"cpu_ms_at_100": early * 1e3, "cpu_ms_at_end": late * 1e3, "growth": late / early}


def tenths(values: Sequence[float]) -> list[Sequence[float]]:
    """Cut a series into ten stretches of about one length, leaving out empty ones."""
    borders = [len(values) * part // 10 for part in range(11)]
    return [values[begin:end] for begin, end in pairwise(borders) if begin < end]


def first_texts(workload: Workload) -> list[str]:
    """Return what was said and found in turn 1 up to its first results, word for word."""
    found = [tool_result(reference(1, 0, place)) for place in range(workload.parallel)]
    return [question(workload, 1), *found]


def holds(messages: Sequence[BaseMessage], wanted: Sequence[str]) -> bool:
    """Tell whether each text is in some message as a whole."""
    texts = [str(message.text) for message in messages]
    return all(any(one in text for text in texts) for one in wanted)


@contextmanager
def opened(job: Job, folder: Path) -> Iterator[Thread]:
    """Open a contender with a new database in a folder."""
    workload = WORKLOADS[job.workload]
    if workload.single_turn:
        workload = replace(workload, rounds=job.turns)
    clock = Clock()
    profile: Any = {"max_input_tokens": job.window}
    with ExitStack() as stack:
        runner = None if job.mode == "sync" else stack.enter_context(asyncio.Runner())
        setup = Setup(
            path=folder / "thread.db",
            model=FakeChat(clock=clock, profile=profile),
            summarizer=FakeSummarizer(clock=clock, profile=profile),
            tools=TOOLS,
            instructions=INSTRUCTIONS,
            window=job.window,
            durability=job.durability,
            runner=runner,
        )
        running = stack.enter_context(CONTENDERS[job.contender](setup))
        conversations = [
            Conversation(f"bench-{number}", Script(workload), Probe(rule=RULE, window=job.window))
            for number in range(MODES[job.mode])
        ]
        yield Thread(job, workload, running, conversations, clock, setup.path, runner)


def database_bytes(folder: Path) -> int:
    """Return the size of the database once its log is folded into it."""
    with closing(sqlite3.connect(folder / "thread.db")) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return sum(path.stat().st_size for path in folder.iterdir() if path.is_file())


def warm_up(job: Job) -> None:
    """Run some turns on another database, until there is a first summary.

    What is loaded and compiled on first use is nobody's cost of a turn, nor is the garbage that it leaves.
    """
    short = replace(job, workload="a", turns=_WARM_UP_TURNS, seconds=60.0)
    with tempfile.TemporaryDirectory() as name, opened(short, Path(name)) as thread:
        thread.advance(_WARM_UP_TURNS)
        thread.report()
    gc.collect()


def serve(job: Job, pipe: Any) -> None:
    """Run a thread in this process, a few turns whenever the other end of the pipe asks.

    Receives a number of turns; sends whether the thread is done, and at last the report.
    """
    heard: set[str] = set()
    warnings.showwarning = lambda message, category, *_: heard.add(f"{category.__name__}: {message}")
    try:
        warm_up(job)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            with opened(job, folder) as thread:
                while not thread.is_done:
                    thread.advance(pipe.recv())
                    pipe.send({"turns": len(thread.costs), "is_done": thread.is_done})
                report = thread.report()
            size = database_bytes(folder)
        units = max(report["units"] * report["threads"], 1)
        pipe.send(
            {**report, "database_bytes": size, "database_bytes_per_unit": size / units, "warnings": sorted(heard)}
        )
    except Exception as error:  # noqa: BLE001 - a peer that cannot run is reported, not dropped
        while isinstance(error, ExceptionGroup):
            error = error.exceptions[0]
        reason = " ".join(str(error).split())[:300]
        pipe.send({"status": "error", "error": f"{type(error).__name__}: {reason}", "is_done": True})


def _in_file(path: Path, text: str) -> bool:
    """Tell whether some old checkpoint still holds a text."""
    needle = text.split("\n", 1)[0].encode()
    with closing(sqlite3.connect(path)) as connection:
        for table, column in (("checkpoints", "checkpoint"), ("writes", "value")):
            query = f"SELECT 1 FROM {table} WHERE instr({column}, ?) LIMIT 1"
            if connection.execute(query, (needle,)).fetchone():
                return True
    return False
