"""Processes that talk at the same time: on one thread, on many, and when one of them is killed."""

import json
import os
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from everthread import build_graph, open_storage
from everthread.cli.reading import read_thread
from everthread.models.scripted import CannedModel, Tools
from everthread.state import Agent, Context
from everthread.storage import locks

AGENT = Agent(name="echo", title="Echo", instructions="Repeat.")
CONTEXT = Context(user_id="u-1", window=3_000, keep_last_turns=2)

_SHORT_LEASE_SECONDS = 0.5


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
    """What processes did side by side."""

    processes: int
    threads: int
    turns: int
    """Turns of each process on each thread."""
    messages: int = 0
    faults: list[str] = field(default_factory=list)
    seconds: float = 0.0


def side_by_side(folder: Path, *, processes: int, threads: int, turns: int) -> Outcome:
    """Let processes talk on the same threads at once, each with a thread of Python for each of them."""
    began, outcome = time.monotonic(), Outcome(processes, threads, turns)
    url = f"sqlite:///{folder / f'pair-{threads}.db'}"
    with open_storage(url):
        pass
    children = [_start(lambda tell, name=name: _talk(url, name, threads, turns, tell)) for name in range(processes)]
    for child, reading in children:
        outcome.faults += _heard(reading)
        os.waitpid(child, 0)
    with open_storage(url) as storage:
        for number in range(threads):
            messages = read_thread(storage, f"t-{number}").messages
            outcome.messages += len(messages)
            outcome.faults += _out_of_order(messages, processes, turns, f"t-{number}")
    outcome.seconds = time.monotonic() - began
    return outcome


def _start(work: Callable[[Callable[[str], None]], None]) -> tuple[int, int]:
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        return child, reading
    os.close(reading)

    def tell(text: str) -> None:
        os.write(writing, json.dumps(text).encode() + b"\n")

    try:
        work(tell)
    except BaseException as error:  # noqa: BLE001 - whatever it is, the parent must hear of it
        tell(f"{type(error).__name__}: {error}")
    os._exit(0)


def _heard(reading: int) -> list[str]:
    with os.fdopen(reading) as pipe:
        return [json.loads(line) for line in pipe]


def _talk(url: str, name: int, threads: int, turns: int, tell: Callable[[str], None]) -> None:
    with open_storage(url) as storage, ThreadPoolExecutor(threads) as pool:
        graph = build_graph(AGENT, model=Echo(), summarizer="offline", storage=storage)

        def thread(number: int) -> None:
            config: Any = {"configurable": {"thread_id": f"t-{number}"}}
            for turn in range(turns):
                asked = HumanMessage(f"{name}-{turn}", id=f"{name}-{turn}")
                try:
                    done = graph.invoke({"messages": [asked]}, config, context=CONTEXT)
                except Exception as error:  # noqa: BLE001 - each one counts
                    tell(f"{type(error).__name__}: {error}")
                    continue
                if done["messages"][-1].text != f"re: {name}-{turn}":
                    tell(f"turn {name}-{turn} on t-{number} got {done['messages'][-1].text!r}")

        list(pool.map(thread, range(threads)))


def _out_of_order(messages: list[BaseMessage], processes: int, turns: int, thread: str) -> list[str]:
    """Say what is wrong: every question once, its answer behind it, and each process's questions in order."""
    asked = [str(message.text) for message in messages[::2]]
    found = []
    if [message.text for message in messages[1::2]] != [f"re: {text}" for text in asked]:
        found.append(f"{thread}: an answer is not behind its question")
    for name in range(processes):
        mine = [text for text in asked if text.startswith(f"{name}-")]
        if mine != [f"{name}-{turn}" for turn in range(turns)]:
            found.append(f"{thread}: process {name} has {len(mine)} of {turns} questions, or not in order")
    return found


def killed_while_another_waits(folder: Path, kills: int) -> Outcome:
    """Kill the holder of a thread's lock in the middle of a turn; the other process must go on within seconds."""
    began, outcome = time.monotonic(), Outcome(2, 1, kills)
    url = f"sqlite:///{folder / 'waiting.db'}"
    with open_storage(url):
        pass
    for number in range(kills):
        holder, holding = _start(lambda tell: _hold(url, tell))
        with os.fdopen(holding) as pipe:
            pipe.readline()
            waiter, waiting = _start(lambda tell, number=number: _wait(url, number, tell))
            time.sleep(0.05)
            os.kill(holder, signal.SIGKILL)
            os.waitpid(holder, 0)
        told = _heard(waiting)
        with suppress(ProcessLookupError):
            os.waitpid(waiter, 0)
        if not told or not told[0].startswith("waited"):
            outcome.faults.append(f"after the kill of a holder: {told}")
        elif (seconds := float(told[0].split()[1])) > 5:
            outcome.faults.append(f"the lock of a dead process was free after {seconds:.1f} s")
    outcome.seconds = time.monotonic() - began
    return outcome


def stopped_and_overtaken(folder: Path, times: int) -> Outcome:
    """Stop a process in the middle of a turn for longer than its lease, and let another one talk meanwhile.

    The first must notice and save nothing more; the other one's turn, which was acknowledged, must stay.
    """
    began, outcome = time.monotonic(), Outcome(2, 1, times)
    url = f"sqlite:///{folder / 'stopped.db'}"
    with open_storage(url):
        pass
    for number in range(times):
        slow, telling = _start(lambda tell, number=number: _one_turn(url, f"slow-{number}", tell, pause_seconds=0.2))
        with os.fdopen(telling) as pipe:
            pipe.readline()
            os.kill(slow, signal.SIGSTOP)
            quick, heard = _start(lambda tell, number=number: _one_turn(url, f"quick-{number}", tell))
            told = _heard(heard)
            os.waitpid(quick, 0)
            os.kill(slow, signal.SIGCONT)
            late = [json.loads(line) for line in pipe]
        os.waitpid(slow, 0)
        if told[-1:] != ["done"] or not any("ThreadBusyError" in text for text in late):
            outcome.faults.append(f"the quick one said {told}, the stopped one {late}")
    with open_storage(url) as storage:
        texts = [str(message.text) for message in read_thread(storage, "t-0").messages]
    outcome.messages = len(texts)
    for number in range(times):
        counts = [texts.count(f"{start}{name}-{number}") for name in ("quick", "slow") for start in ("", "re: ")]
        if counts != [1, 1, 1, 0]:
            outcome.faults.append(f"round {number}: {counts} of both questions with their answers")
    outcome.seconds = time.monotonic() - began
    return outcome


def _one_turn(url: str, text: str, tell: Callable[[str], None], *, pause_seconds: float = 0.0) -> None:
    locks.LEASE_SECONDS = _SHORT_LEASE_SECONDS

    class Slow(Echo):
        def next_reply(self, messages: list[BaseMessage], tools: Tools) -> AIMessage:
            tell("asked")
            time.sleep(pause_seconds)
            return AIMessage(f"re: {text}")

    with open_storage(url) as storage:
        graph = build_graph(AGENT, model=Slow(), summarizer="offline", storage=storage)
        asked = HumanMessage(text, id=text)
        graph.invoke({"messages": [asked]}, {"configurable": {"thread_id": "t-0"}}, context=CONTEXT)
    tell("done")


def _hold(url: str, tell: Callable[[str], None]) -> None:
    with open_storage(url) as storage, storage.locks.hold("t-0"):
        tell("held")
        time.sleep(60)


def _wait(url: str, number: int, tell: Callable[[str], None]) -> None:
    began = time.monotonic()
    with open_storage(url) as storage:
        graph = build_graph(AGENT, model=Echo(), summarizer="offline", storage=storage)
        graph.invoke({"messages": f"after {number}"}, {"configurable": {"thread_id": "t-0"}}, context=CONTEXT)
    tell(f"waited {time.monotonic() - began:.3f}")
