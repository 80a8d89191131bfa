"""Threads at rest: those on which nothing has happened since a run of this guard ended with nothing left to do.

A run on such a thread needs no look at the state before it begins, which would be read and decoded twice in each turn:
a tenth of a turn's CPU (`benchmarks/window.py`), and on Postgres some queries.
"""

from langgraph.graph.message import add_messages

from everthread.graph.run import AnyGraph, Run
from everthread.state.messages import reduce_messages
from everthread.storage.checkpoint_rows import Head
from everthread.storage.checkpointer import Checkpointer

__all__ = ["ThreadsAtRest"]

_MOST = 100_000
"""Threads that are remembered; a server that has met more begins anew."""


class ThreadsAtRest:
    """The newest checkpoint of each thread as this guard's last run on it left it.

    Whatever somebody else does to a thread, in this process or in another one, leaves another newest checkpoint, other
    metadata or a task's writes.
    """

    def __init__(self, graph: AnyGraph, checkpointer: Checkpointer) -> None:
        self._checkpointer = checkpointer
        self._heads: dict[str, Head] = {}
        # A run that ends at a breakpoint has something left to do, and writes nothing that says so.
        self._stops = bool(graph.interrupt_before_nodes or graph.interrupt_after_nodes)
        self._keys = frozenset(("messages", "end_session") if _takes_every_message(graph) else ())

    def includes(self, run: Run) -> bool:
        """Tell whether a run may begin at once: with messages that no thread can know yet, on a thread at rest."""
        head = self._heads.get(run.thread_id)
        return (
            head is not None
            and run.has_new_ids
            and run.input.keys() <= self._keys
            and "checkpoint_id" not in run.config["configurable"]
            and self._checkpointer.head(run.thread_id) == head
        )

    def add(self, run: Run) -> None:
        """Remember how a run ended that has raised nothing, while its lock is held."""
        stops = self._stops or run.options.get("interrupt_before") or run.options.get("interrupt_after")
        head = None if stops or not self._keys else self._checkpointer.head(run.thread_id)
        if head is None or head.has_writes:
            self._heads.pop(run.thread_id, None)
            return
        if len(self._heads) >= _MOST:
            self._heads.clear()
        self._heads[run.thread_id] = head


def _takes_every_message(graph: AnyGraph) -> bool:
    """Tell whether no message can be refused by the graph's state, which would have to be tried on it first."""
    channel = graph.channels.get("messages")
    return getattr(channel, "reducer", None) is reduce_messages or getattr(channel, "operator", None) is add_messages
