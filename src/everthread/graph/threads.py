"""A compiled graph whose runs hold the lock of their thread."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph

from everthread.errors import SettingsError
from everthread.state import Context, Input, Output, State
from everthread.storage.locks import ThreadLocks


class ThreadGraph(CompiledStateGraph[State, Context, Input, Output]):
    """A compiled graph that runs one run at a time on a thread.

    `invoke` and `ainvoke` go through `stream` and `astream`, so locking these two covers all four.
    """

    locks: ThreadLocks

    @classmethod
    def locked(cls, graph: CompiledStateGraph[State, Context, Input, Output], locks: ThreadLocks) -> "ThreadGraph":
        """Return the same graph with locks."""
        made = cls.__new__(cls)
        made.__dict__.update(graph.__dict__)
        made.locks = locks
        return made

    def stream(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> Iterator[Any]:
        """Stream a run while holding the thread's lock; arguments as in LangGraph.

        Raises:
            ThreadBusyError: another run kept the lock for longer than the timeout.
        """
        with self.locks.hold(_thread_id(self.config, config)):
            yield from super().stream(input, config, **options)

    async def astream(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> AsyncIterator[Any]:
        """Stream a run asynchronously while holding the thread's lock; see `stream`."""
        async with self.locks.ahold(_thread_id(self.config, config)):
            async for part in super().astream(input, config, **options):
                yield part


def _thread_id(bound: RunnableConfig | None, config: RunnableConfig | None) -> str:
    for given in (config, bound):
        thread_id = (given or {}).get("configurable", {}).get("thread_id")
        if thread_id:
            return str(thread_id)
    raise SettingsError('no thread: pass {"configurable": {"thread_id": "…"}} as config')
