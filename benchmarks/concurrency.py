"""Let processes, threads and tasks meet on the same threads of a conversation, and look whether every message is there.

    python benchmarks/concurrency.py [--turns 200] [--tasks 8] [--stopped-seconds 60] [--json FILE]

Every question must be there once with its answer behind it, and the questions of one speaker in their order. A holder
of a thread's lock that is killed frees it; one that is only stopped (SIGSTOP) keeps it, and whoever waits goes on
waiting or gets `ThreadBusyError` after the time it was ready to wait.
"""

import argparse
import asyncio
import json
import os
import select
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from killing.life import warm_up
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from everthread import Agent, Context, build_graph, open_storage
from everthread.errors import ThreadBusyError
from everthread.models.scripted import CannedModel, Tools
from everthread.storage.reading import read_thread

AGENT = Agent(name="echo", title="Echo", instructions="Repeat.")
CONTEXT = Context(user_id="u-1", window=3_000, keep_last_turns=2)

_SHORT_WAIT_SECONDS = 1.0

Report = Callable[[str], None]


class Echo(CannedModel):
    """Repeats the question."""

    @property
    def _llm_type(self) -> str:
        return "echo"

    def next_reply(self, messages: list[BaseMessage], tools: Tools) -> AIMessage:
        """Return the words of the last message of the user."""
        return AIMessage(f"re: {messages[-1].text}")


@dataclass
class Outcome:
    """What a trial showed."""

    expected: str
    messages: int = 0
    """In all threads of the trial."""
    faults: list[str] = field(default_factory=list)
    seconds: float = 0.0


def side_by_side(folder: Path, *, processes: int, threads: int, turns: int) -> Outcome:
    """Let processes talk on the same threads at once, each with a thread of Python for each of them."""
    outcome = Outcome(f"{processes * threads * turns * 2:,} messages, in order")
    url = _database(folder, f"processes-{threads}")
    children = [_start(lambda report, name=name: _talk(url, name, threads, turns, report)) for name in range(processes)]
    for child in children:
        outcome.faults += child.rest()
    _check(outcome, url, threads, {str(name): turns for name in range(processes)})
    return outcome


def tasks_at_once(folder: Path, *, tasks: int, turns: int) -> Outcome:
    """Run `ainvoke` on as many threads at once as there are tasks, in one process."""
    outcome = Outcome(f"{tasks * turns * 2:,} messages, in order")
    url = _database(folder, "tasks")

    async def talk() -> None:
        async with open_storage(url) as storage:
            graph = build_graph(AGENT, model=Echo(), summarizer="offline", storage=storage)

            async def thread(number: int) -> None:
                for turn in range(turns):
                    reply = await graph.ainvoke(_question(f"0-{turn}"), _config(number), context=CONTEXT)
                    if reply["messages"][-1].text != f"re: 0-{turn}":
                        outcome.faults.append(f"turn {turn} on t-{number} got {reply['messages'][-1].text!r}")

            async with asyncio.TaskGroup() as group:
                for number in range(tasks):
                    group.create_task(thread(number))

    asyncio.run(talk())
    _check(outcome, url, tasks, {"0": turns})
    return outcome


def holder_killed(folder: Path, times: int) -> Outcome:
    """Kill the holder of a thread's lock; the process that waits must go on within seconds."""
    outcome = Outcome("whoever waits goes on within 5 s")
    url = _database(folder, "killed")
    for number in range(times):
        holder = _start(lambda report: _hold(url, report))
        holder.line()
        waiter = _start(lambda report, number=number: _wait(url, f"0-{number}", None, report))
        time.sleep(0.05)
        holder.signal(signal.SIGKILL)
        killed = time.monotonic()
        lines = waiter.rest()
        if lines != ["done"] or time.monotonic() - killed > 5:
            outcome.faults.append(f"{time.monotonic() - killed:.1f} s after the kill of a holder: {lines}")
    _check(outcome, url, 1, {"0": times})
    return outcome


def holder_stopped(folder: Path, seconds: float) -> Outcome:
    """Stop the holder of a thread's lock; others wait as long as they are ready to, and nothing is lost."""
    outcome = Outcome("one waits, one gets `ThreadBusyError`; 4 messages, in order")
    url = _database(folder, "stopped")
    holder = _start(lambda report: _talk_slowly(url, "0-0", report))
    holder.line()
    holder.signal(signal.SIGSTOP)
    stopped = time.monotonic()
    patient = _start(lambda report: _wait(url, "1-0", None, report))
    hasty = _start(lambda report: _wait(url, "2-0", _SHORT_WAIT_SECONDS, report)).rest()
    if hasty != ["ThreadBusyError"]:
        outcome.faults.append(f"who waited for {_SHORT_WAIT_SECONDS:g} s got {hasty}")
    time.sleep(max(seconds - (time.monotonic() - stopped), 0))
    if patient.has_reported():
        outcome.faults.append("a process went on although the holder of the lock was only stopped")
    holder.signal(signal.SIGCONT)
    for name, lines in (("the holder", holder.rest()), ("who waited", patient.rest())):
        if lines != ["done"]:
            outcome.faults.append(f"{name} got {lines}")
    _check(outcome, url, 1, {"0": 1, "1": 1, "2": 0})
    return outcome


class _Child:
    """A process and what it reports, line by line."""

    def __init__(self, pid: int, reading: int) -> None:
        self._pid, self._pipe = pid, os.fdopen(reading)

    def line(self) -> str:
        """Return the next report."""
        text: str = json.loads(self._pipe.readline())
        return text

    def has_reported(self) -> bool:
        """Tell whether the process has said anything or has ended."""
        return bool(select.select([self._pipe], [], [], 0)[0])

    def signal(self, number: int) -> None:
        os.kill(self._pid, number)

    def rest(self) -> list[str]:
        """Wait for the end and return all further reports."""
        with self._pipe as pipe:
            lines = [json.loads(line) for line in pipe]
        os.waitpid(self._pid, 0)
        return lines


def _start(work: Callable[[Report], None]) -> _Child:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return _Child(pid, reading)
    os.close(reading)

    def report(text: str) -> None:
        os.write(writing, json.dumps(text).encode() + b"\n")

    try:
        work(report)
    except BaseException as error:  # noqa: BLE001 - whatever it is, the parent must hear of it
        report(f"{type(error).__name__}: {error}")
    os._exit(0)


def _talk(url: str, name: int, threads: int, turns: int, report: Report) -> None:
    with open_storage(url) as storage, ThreadPoolExecutor(threads) as pool:
        graph = build_graph(AGENT, model=Echo(), summarizer="offline", storage=storage)

        def thread(number: int) -> None:
            for turn in range(turns):
                reply = graph.invoke(_question(f"{name}-{turn}"), _config(number), context=CONTEXT)
                if reply["messages"][-1].text != f"re: {name}-{turn}":
                    report(f"turn {name}-{turn} on t-{number} got {reply['messages'][-1].text!r}")

        list(pool.map(thread, range(threads)))


def _talk_slowly(url: str, text: str, report: Report) -> None:
    class Slow(Echo):
        def next_reply(self, messages: list[BaseMessage], tools: Tools) -> AIMessage:
            report("asked")
            time.sleep(0.2)
            return super().next_reply(messages, tools)

    with open_storage(url) as storage:
        graph = build_graph(AGENT, model=Slow(), summarizer="offline", storage=storage)
        graph.invoke(_question(text), _config(0), context=CONTEXT)
    report("done")


def _hold(url: str, report: Report) -> None:
    with open_storage(url) as storage, storage.locks.hold("t-0"):
        report("held")
        time.sleep(600)


def _wait(url: str, text: str, timeout_seconds: float | None, report: Report) -> None:
    options = {} if timeout_seconds is None else {"lock_timeout_seconds": timeout_seconds}
    with open_storage(url, **options) as storage:
        graph = build_graph(AGENT, model=Echo(), summarizer="offline", storage=storage)
        try:
            graph.invoke(_question(text), _config(0), context=CONTEXT)
        except ThreadBusyError:
            report("ThreadBusyError")
        else:
            report("done")


def _check(outcome: Outcome, url: str, threads: int, turns_by_name: dict[str, int]) -> None:
    """Look at every thread: each question once, its answer behind it, and the questions of each name in order."""
    with open_storage(url) as storage:
        for number in range(threads):
            messages = read_thread(storage, f"t-{number}").messages
            outcome.messages += len(messages)
            asked = [str(message.text) for message in messages[::2]]
            if [message.text for message in messages[1::2]] != [f"re: {text}" for text in asked]:
                outcome.faults.append(f"t-{number}: an answer is not behind its question")
            for name, turns in turns_by_name.items():
                if [text for text in asked if text.startswith(f"{name}-")] != [
                    f"{name}-{turn}" for turn in range(turns)
                ]:
                    outcome.faults.append(f"t-{number}: not all {turns} questions of {name}, or not in order")


def _database(folder: Path, name: str) -> str:
    url = f"sqlite:///{folder / name}.db"
    with open_storage(url):
        return url


def _question(text: str) -> Any:
    return {"messages": [HumanMessage(text, id=text)]}


def _config(number: int) -> Any:
    return {"configurable": {"thread_id": f"t-{number}"}}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all trials and print a table; 1 when anything was wrong."""
    options = _parser().parse_args(arguments)
    warm_up()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder, turns = Path(name), options.turns
        trials: dict[str, Callable[[], Outcome]] = {
            f"2 processes × {turns} turns on one thread": lambda: side_by_side(
                folder, processes=2, threads=1, turns=turns
            ),
            f"2 processes × {options.threads} threads × {turns // 10} turns": lambda: side_by_side(
                folder, processes=2, threads=options.threads, turns=turns // 10
            ),
            f"{options.tasks} tasks of `ainvoke` × {turns // 2} turns": lambda: tasks_at_once(
                folder, tasks=options.tasks, turns=turns // 2
            ),
            f"holder killed, {options.holders} times": lambda: holder_killed(folder, options.holders),
            f"holder stopped for {options.stopped_seconds:g} s": lambda: holder_stopped(
                folder, options.stopped_seconds
            ),
        }
        outcomes = {}
        for title, trial in trials.items():
            began = time.monotonic()
            outcomes[title] = trial()
            outcomes[title].seconds = round(time.monotonic() - began, 1)
    if options.json is not None:
        text = json.dumps({title: asdict(outcome) for title, outcome in outcomes.items()}, indent=2)
        options.json.write_text(text + "\n", encoding="utf-8")
    print("| trial | expected | messages | wrong | seconds |\n|---|---|---:|---:|---:|")
    for title, outcome in outcomes.items():
        print(
            f"| {title} | {outcome.expected} | {outcome.messages:,} | {len(outcome.faults)} | {outcome.seconds:.0f} |"
        )
        for fault in outcome.faults[:10]:
            print(f"wrong: {title}: {fault}", file=sys.stderr)
    return 1 if any(outcome.faults for outcome in outcomes.values()) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--turns", type=int, default=200, help="of each process on one thread; tasks take half of it")
    parser.add_argument("--threads", type=int, default=20, help="threads that two processes share")
    parser.add_argument("--tasks", type=int, default=8, help="of one event loop, each on a thread of its own")
    parser.add_argument("--holders", type=int, default=10, help="holders of a lock that are killed")
    parser.add_argument("--stopped-seconds", type=float, default=60.0, help="how long a holder is stopped")
    parser.add_argument("--json", type=Path, default=None, metavar="FILE", help="write the figures down")
    parser.add_argument("--folder", type=Path, default=None, help="where the databases are made; in memory is fastest")
    return parser


if __name__ == "__main__":
    sys.exit(main())
