"""Threads at rest: those on which nothing has happened since a run of this guard ended with nothing left to do.

A run on such a thread needs no look at the state before it begins; otherwise the guard reads and decodes it, and
LangGraph does so again. Measured against the version before, workload a of `benchmarks/window.py`: 2 to 11 % of a
turn's CPU. On Postgres it saves some queries, too.
"""

import logging

from langgraph.graph.message import add_messages

from everthread.errors import StorageError
from everthread.graph.inputs import AnyGraph
from everthread.graph.run import KnownAnswer, Run, RunInput, is_own
from everthread.state.messages import reduce_messages
from everthread.storage.checkpoint_rows import Head
from everthread.storage.checkpointer import Checkpointer

logger = logging.getLogger(__name__)

_MOST = 100_000
"""Threads that are remembered; a server that has met more begins anew."""


class ThreadsAtRest:
    """The newest checkpoint of each thread as this guard's last run on it left it.

    Whatever somebody else does to a thread, in this process or in another one, leaves another newest checkpoint, other
    metadata, or something that was saved behind it.
    """

    def __init__(self, graph: AnyGraph, checkpointer: Checkpointer) -> None:
        self._checkpointer = checkpointer
        self._heads: dict[str, Head] = {}
        # A run that ends at a breakpoint has something left to do, and saves nothing that says so.
        self._stops = bool(graph.interrupt_before_nodes or graph.interrupt_after_nodes)
        keys = {"messages", "end_session"} if is_own(graph) else {"messages"}
        self._keys = keys if _takes_every_message(graph) else set()

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

    def note(self, run: Run, last: RunInput | KnownAnswer | None) -> None:
        """Remember how a run ended that has raised nothing; its reply is saved, so neither does this.

        Args:
            run: the run, which still holds the lock of its thread.
            last: its last step. An answer from the record says nothing of the newest turn.
        """
        if not isinstance(last, RunInput):
            return
        options, configurable = run.options, last.config["configurable"]
        stops = self._stops or options.get("interrupt_before") or options.get("interrupt_after")
        self._heads.pop(run.thread_id, None)
        if stops or not self._keys or "checkpoint_id" in configurable:
            return
        try:
            head = self._checkpointer.head(run.thread_id)
        except StorageError as error:
            logger.warning("could not see how the run on thread %r ended: %s", run.thread_id, error)
            return
        if head is not None and head.is_last:
            if len(self._heads) >= _MOST:
                self._heads.clear()
            self._heads[run.thread_id] = head


def _takes_every_message(graph: AnyGraph) -> bool:
    """Tell whether no message can be refused by the graph's state, which would have to be tried on it first."""
    channel = graph.channels.get("messages")
    return getattr(channel, "reducer", None) is reduce_messages or getattr(channel, "operator", None) is add_messages
