"""A conversation that is known in advance, cut off again and again by an attack, and what must hold afterwards.

The conversation and most checks are those of `benchmarks/killing`.
"""

import gc
import sqlite3
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import Any

from langchain_core.messages import HumanMessage

from everthread import build_graph
from everthread.storage.open import Storage

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from killing import workload
from killing.checks import damage, faults, saved_items

__all__ = ["DURABILITIES", "Talk", "counted_fetches", "idle_faults", "left_behind"]

DURABILITIES = ("sync", "async", "exit")
TURNS = 8
"""Turns of a thread; a new one follows, so that the checks stay quick."""

_fetched: ContextVar[list[str] | None] = ContextVar("fetched", default=None)
"""Items that the talk of this context has looked up."""


@contextmanager
def counted_fetches() -> Iterator[None]:
    """Let each talk hear of what its own tools look up."""

    def on_fetch(item: str) -> None:
        if (items := _fetched.get()) is not None:
            items.append(item)

    before, workload.on_fetch = workload.on_fetch, on_fetch
    try:
        yield
    finally:
        workload.on_fetch = before


class Talk:
    """Somebody whose runs are cut off, and who then sends the same message again.

    Args:
        storage: an open database.
        number: of this talker.
    """

    def __init__(self, storage: Storage, number: int) -> None:
        self.storage, self.number, self.threads = storage, number, 0
        self._begin()

    def _begin(self) -> None:
        self.threads += 1
        name = f"{self.number}-{self.threads}"
        self.config: Any = {"configurable": {"thread_id": f"t-{name}"}}
        self.context = replace(workload.CONTEXT, user_id=f"u-{name}")
        self.turn = 0
        self.handles: set[str] = set()
        self.model_faults: list[str] = []
        self._saved: set[str] = set()
        model, summarizer = workload.Assistant(report=self._hear), workload.Summarizer()
        self.graph = build_graph(workload.AGENT, model=model, summarizer=summarizer, storage=self.storage)

    def _hear(self, kind: str, value: Any) -> None:
        if kind == "shown":
            self.handles.add(value)
        else:
            self.model_faults.append(f"{kind}: {value}")

    @property
    def message(self) -> Any:
        """The input of the current turn, the same each time that it is sent."""
        return {"messages": [HumanMessage(workload.question(self.turn), id=f"u-{self.turn}")]}

    def options(self, durability: str) -> dict[str, Any]:
        """Return the options of a run."""
        return {"context": self.context, "durability": durability}

    def again(self) -> list[str]:
        """Send the message of a turn that was cut off again; return what is wrong, and go on to the next turn."""
        return self._answered(*self._before(), self.graph.invoke(self.message, self.config, context=self.context))

    async def aagain(self) -> list[str]:
        """Do what `again` does, asynchronously."""
        before = self._before()
        return self._answered(*before, await self.graph.ainvoke(self.message, self.config, context=self.context))

    def _before(self) -> tuple[set[str], list[str]]:
        # Of other threads too: a result that was saved is never fetched again.
        self._saved |= saved_items(self.graph, self.config)
        fetched: list[str] = []
        _fetched.set(fetched)
        return self._saved, fetched

    def _answered(self, saved: set[str], fetched: list[str], output: Any) -> list[str]:
        last = output["messages"][-1]
        wrong = [f"{item} was fetched again" for item in fetched if item in saved]
        if last.text != workload.answer(self.turn):
            wrong.append(f"turn {self.turn} ended with {last.type} {last.text[:40]!r}")
        self.turn += 1
        where = (self.turn, (), self.handles, self.config["configurable"]["thread_id"], self.context.user_id)
        wrong += faults(self.storage, *where, checks_file=False) + self.model_faults
        if wrong or self.turn == TURNS:
            self._begin()
        return wrong


def left_behind(storage: Storage) -> list[str]:
    """Return what an attack left behind, while nothing else runs: an open transaction, a lock, a locked file."""
    wrong = []
    if storage.database.connection.in_transaction:
        wrong.append("a transaction is open")
    if not storage.locks.are_free():
        wrong.append("the lock of a thread is held")
    if storage.database.location.path is not None:
        with closing(sqlite3.connect(storage.database.location.path, timeout=0, isolation_level=None)) as other:
            try:
                other.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                wrong.append(f"another connection cannot write: {error}")
    # From another thread, since a lock within the process lets its own thread in again.
    writes = threading.Thread(target=storage.store.put, args=(("attack",), "key", {"text": "text"}), daemon=True)
    writes.start()
    writes.join(5)
    if writes.is_alive():
        wrong.append("the connection is locked")
    return wrong


def idle_faults(storage: Storage, threads: set[threading.Thread]) -> list[str]:
    """Return what is wrong after a whole attack: also threads that were not there before, and a damaged file."""
    gc.collect()
    names = {thread.name for thread in set(threading.enumerate()) - threads}
    left = [name for name in sorted(names) if not name.startswith(("everthread-storage", "asyncio_"))]
    return left_behind(storage) + damage(storage) + [f"the thread {name} is left" for name in left]
