"""The life of a process that runs turns until it is killed, and what it tells before."""

import json
import os
import select
import signal
import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import HumanMessage

from everthread import build_graph, open_storage
from everthread.storage.erasure import erase
from everthread.storage.open import Storage
from killing.workload import AGENT, CONTEXT, Assistant, Summarizer, question

CONFIG: Any = {"configurable": {"thread_id": "t-1"}}

_WRITES = ("INSERT", "UPDATE", "DELETE", "VACUUM")

_PATIENCE_SECONDS = 120.0


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
    end_every: int = 5
    """Turns after which the session ends."""
    at_statement: int | None = None
    """Die before this write of the database, counted over all connections from 0."""
    after_seconds: float | None = None
    """Be killed after this time."""
    forget: bool = False
    """Erase the user instead of talking."""


@dataclass
class Told:
    """What a process told before it died."""

    acknowledged: list[int] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)
    """Turns after which the session has ended."""
    handles: set[str] = field(default_factory=set)
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
        _turns(graph, Plan("", 0, 5), lambda *_: None)


def live(plan: Plan) -> Told:
    """Run a plan in a process of its own until it is done or dead."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _run(plan, lambda *parts: _send(writing, *parts))
    os.close(writing)
    began = time.monotonic()
    try:
        told = _listen(reading, child, plan)
    finally:
        os.close(reading)
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    told.seconds = time.monotonic() - began
    told.was_killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    return told


def _listen(reading: int, child: int, plan: Plan) -> Told:
    told, text = Told(), b""
    deadline = time.monotonic() + (plan.after_seconds if plan.after_seconds is not None else _PATIENCE_SECONDS)
    while True:
        ready, _, _ = select.select([reading], [], [], max(deadline - time.monotonic(), 0))
        if not ready:
            if plan.after_seconds is None:
                told.faults.append(f"no end after {_PATIENCE_SECONDS:g} s")
            os.kill(child, signal.SIGKILL)
            deadline = time.monotonic() + _PATIENCE_SECONDS
        elif part := os.read(reading, 65536):
            text += part
        else:
            break
    for line in text.decode().splitlines():
        with suppress(ValueError):  # the last line may be cut
            _note(told, *json.loads(line))
    return told


def _note(told: Told, kind: str, value: Any) -> None:
    if kind == "acknowledged":
        told.acknowledged.append(value)
    elif kind == "ended":
        told.ended.append(value)
    elif kind == "shown":
        told.handles.add(value)
    elif kind == "dying":
        told.statement = value
    elif kind == "statements":
        told.statements = value
    else:
        told.faults.append(f"{kind}: {value}")


def _send(writing: int, kind: str, value: Any) -> None:
    os.write(writing, json.dumps([kind, value]).encode() + b"\n")


def _run(plan: Plan, tell: Callable[..., None]) -> None:
    """Be the child: never returns."""
    try:
        with open_storage(plan.url) as storage:
            count = _mine(storage, plan.at_statement, tell)
            if plan.forget:
                erase(storage, user_id=CONTEXT.user_id)
            else:
                graph = build_graph(AGENT, model=Assistant(told=tell), summarizer=Summarizer(), storage=storage)
                _turns(graph, plan, tell)
            tell("statements", count[0])
    except BaseException as error:  # noqa: BLE001 - whatever it is, the parent must hear of it
        tell("failed", f"{type(error).__name__}: {error}")
    os._exit(0)


def _turns(graph: Any, plan: Plan, tell: Callable[..., None]) -> None:
    if plan.begin == "resume" and graph.get_state(CONFIG).tasks:
        graph.invoke(None, CONFIG, context=CONTEXT)
    for turn in range(plan.first, plan.last):
        asked = HumanMessage(question(turn), id=f"u-{turn}")
        done = graph.invoke({"messages": [asked]}, CONFIG, context=CONTEXT)
        last = done["messages"][-1]
        if last.type != "ai" or last.tool_calls:
            tell("unanswered", f"turn {turn} ended with {last.type}")
        tell("acknowledged", turn)
        if turn % plan.end_every == plan.end_every - 1:
            graph.invoke({"end_session": True}, CONFIG, context=CONTEXT)
            tell("ended", turn)


def _mine(storage: Storage, at_statement: int | None, tell: Callable[..., None]) -> list[int]:
    """Count the writes of all connections, and die before one of them."""
    count = [0]
    is_changed = False

    def saw(statement: str) -> None:
        nonlocal is_changed
        verb = statement.lstrip()[:6].upper()
        if verb not in _WRITES and not (verb == "COMMIT" and is_changed) and "wal_checkpoint" not in statement:
            return
        is_changed = verb in ("INSERT", "UPDATE", "DELETE")
        if count[0] == at_statement:
            tell("dying", " ".join(statement.split())[:60])
            os.kill(os.getpid(), signal.SIGKILL)
        count[0] += 1

    for connection in connections(storage):
        connection.set_trace_callback(saw)
    return count


def connections(storage: Storage) -> list[sqlite3.Connection]:
    """Return every connection of a storage."""
    found = [getattr(storage.checkpointer, "conn", None), getattr(storage.store, "conn", None)]
    found.append(getattr(storage.locks, "_database", None))
    return [one for one in found if isinstance(one, sqlite3.Connection)]
