"""The life of a process that runs turns until it is killed, and what it reports before."""

import asyncio
import json
import os
import select
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from langchain_core.messages import HumanMessage

from everthread import build_graph, open_storage
from everthread.storage.erasure import erase
from killing import workload
from killing.workload import AGENT, CONFIG, CONTEXT, Assistant, Summarizer, answer, question

_WRITES = ("INSERT", "UPDATE", "DELETE", "VACUUM")

_PATIENCE_SECONDS = 120.0


def kill(process: int) -> None:
    """End a process at once."""
    os.kill(process, signal.SIGKILL)


@dataclass(frozen=True)
class Plan:
    """What a process does and when it dies."""

    url: str
    first: int
    """Turn to begin with: the first that was not acknowledged."""
    last: int
    """Turn after the last."""
    begin: str = "retry"
    """What the client does about the unfinished turn: `retry` with the same id, `resume` it and then retry, or
    `abandon` it, when `first` is already the next."""
    resends: tuple[int, ...] = ()
    """Turns that have their answer and whose messages are sent once more, at the beginning."""
    api: str = "sync"
    """`sync` for `invoke`, `async` for `ainvoke`."""
    durability: str = "sync"
    end_every: int = 5
    """Turns after which the session ends."""
    at_statement: int | None = None
    """Die before this write of the database, counted over all connections from 0."""
    after_seconds: float | None = None
    """Be struck after this time."""
    is_behind_reply: bool = False
    """Count that time from the first acknowledged turn, so that the end of a session is struck."""
    strike: Callable[[int], None] = kill
    """What is done to the process then."""
    forget: bool = False
    """Erase the user instead of talking."""


@dataclass
class Life:
    """What a process reported before it died."""

    acknowledged: list[int] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)
    """Turns after which the session has ended."""
    handles: set[str] = field(default_factory=set)
    fetched: list[str] = field(default_factory=list)
    """Items that the tool looked up, in order."""
    faults: list[str] = field(default_factory=list)
    statement: str = ""
    """What it would have written next, when it died before a write."""
    statements: int = 0
    """Writes of its life; known only when it ended by itself."""
    seconds: float = 0.0
    was_killed: bool = False


def warm_up() -> None:
    """Load here what a turn needs, so that each process begins with it: a fork copies this one."""
    with open_storage("sqlite://") as storage:
        graph = build_graph(AGENT, model=Assistant(), summarizer=Summarizer(), storage=storage)
        _turns(graph, Plan("", 0, 5), None, lambda *_: None)


def live(plan: Plan) -> Life:
    """Run a plan in a process of its own until it is done or dead."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _run(plan, partial(_send, writing))
    os.close(writing)
    began = time.monotonic()
    try:
        life = _listen(reading, child, plan)
    finally:
        os.close(reading)
        with suppress(ProcessLookupError):
            kill(child)
        _, status = os.waitpid(child, 0)
    life.seconds = time.monotonic() - began
    life.was_killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    return life


def _listen(reading: int, child: int, plan: Plan) -> Life:
    life, text, seconds = Life(), b"", plan.after_seconds
    is_due = seconds is not None and not plan.is_behind_reply
    deadline = time.monotonic() + (seconds if is_due and seconds is not None else _PATIENCE_SECONDS)
    while True:
        ready, _, _ = select.select([reading], [], [], max(deadline - time.monotonic(), 0))
        if not ready and is_due:
            plan.strike(child)
            seconds, is_due, deadline = None, False, time.monotonic() + _PATIENCE_SECONDS
        elif not ready:
            life.faults.append(f"no end after {_PATIENCE_SECONDS:g} s")
            kill(child)
            deadline = time.monotonic() + _PATIENCE_SECONDS
        elif part := os.read(reading, 65536):
            text += part
            if seconds is not None and not is_due and b'["acknowledged"' in text:
                is_due, deadline = True, time.monotonic() + seconds
        else:
            break
    for line in text.decode().splitlines():
        with suppress(ValueError):  # the last line may be cut
            _note(life, *json.loads(line))
    return life


def _note(life: Life, kind: str, value: Any) -> None:
    match kind:
        case "acknowledged":
            life.acknowledged.append(value)
        case "ended":
            life.ended.append(value)
        case "shown":
            life.handles.add(value)
        case "fetched":
            life.fetched.append(value)
        case "dying":
            life.statement = value
        case "statements":
            life.statements = value
        case _:
            life.faults.append(f"{kind}: {value}")


def _send(writing: int, kind: str, value: Any) -> None:
    os.write(writing, json.dumps([kind, value]).encode() + b"\n")


def _run(plan: Plan, report: Callable[..., None]) -> None:
    """Be the child: never returns."""
    try:
        with _counted_writes(plan.at_statement, report) as count, open_storage(plan.url) as storage:
            if plan.forget:
                erase(storage, user_id=CONTEXT.user_id)
            else:
                workload.on_fetch = lambda item: report("fetched", item)
                graph = build_graph(AGENT, model=Assistant(report=report), summarizer=Summarizer(), storage=storage)
                if plan.api == "async":
                    with asyncio.Runner() as runner:
                        _turns(graph, plan, runner, report)
                else:
                    _turns(graph, plan, None, report)
        report("statements", count[0])
    except BaseException as error:  # noqa: BLE001 - whatever it is, the parent must hear of it
        report("failed", f"{type(error).__name__}: {error}")
    os._exit(0)


def _turns(graph: Any, plan: Plan, runner: asyncio.Runner | None, report: Callable[..., None]) -> None:
    def invoke(value: Any) -> Any:
        options = {"context": CONTEXT, "durability": plan.durability}
        return runner.run(graph.ainvoke(value, CONFIG, **options)) if runner else graph.invoke(value, CONFIG, **options)

    def ask(turn: int) -> None:
        reply = invoke({"messages": [HumanMessage(question(turn), id=f"u-{turn}")]})["messages"][-1]
        if (reply.type, str(reply.text)) != ("ai", answer(turn)):
            report("unanswered", f"turn {turn} ended with {reply.type} {str(reply.text)[:40]!r}")

    if plan.begin == "resume":
        snapshot = runner.run(graph.aget_state(CONFIG)) if runner else graph.get_state(CONFIG)
        if snapshot.tasks:
            invoke(None)
    for turn in plan.resends:
        ask(turn)
    for turn in range(plan.first, plan.last):
        ask(turn)
        report("acknowledged", turn)
        if turn % plan.end_every == plan.end_every - 1:
            invoke({"end_session": True})
            report("ended", turn)


@contextmanager
def _counted_writes(at_statement: int | None, report: Callable[..., None]) -> Iterator[list[int]]:
    """Count the writes of every connection that is opened meanwhile, and die before one of them."""
    count = [0]
    has_changed = False
    connect = sqlite3.connect

    def saw(statement: str) -> None:
        nonlocal has_changed
        verb = statement.lstrip()[:6].upper()
        if verb not in _WRITES and not (verb == "COMMIT" and has_changed) and "wal_checkpoint" not in statement:
            return
        has_changed = verb in ("INSERT", "UPDATE", "DELETE")
        if count[0] == at_statement:
            report("dying", " ".join(statement.split())[:60])
            kill(os.getpid())
        count[0] += 1

    def connect_and_count(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*arguments, **options)
        connection.set_trace_callback(saw)
        return connection

    sqlite3.connect = connect_and_count  # type: ignore[assignment]
    try:
        yield count
    finally:
        sqlite3.connect = connect
