"""A compiled graph whose runs hold the lock of their thread."""

from collections.abc import AsyncIterator, Iterator
from typing import Any, Self

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command

from everthread.errors import SettingsError
from everthread.state import Context, Input, Output, State
from everthread.storage.locks import ThreadLocks
from everthread.storage.open import Storage


class ThreadGraph(CompiledStateGraph[State, Context, Input, Output]):
    """A compiled graph that runs one run at a time on a thread.

    `invoke` and `ainvoke` go through `stream` and `astream`, so locking these two covers all four.
    """

    locks: ThreadLocks
    is_asynchronous: bool

    @classmethod
    def locked(cls, graph: CompiledStateGraph[State, Context, Input, Output], storage: Storage) -> "ThreadGraph":
        """Return the same graph with the locks of its storage."""
        made = cls.__new__(cls)
        made.__dict__.update(graph.__dict__)
        made.locks = storage.locks
        made.is_asynchronous = storage.is_asynchronous
        return made

    def copy(self, update: dict[str, Any] | None = None) -> Self:
        """Return a copy with other attributes, locks included; `with_config` goes through it."""
        made = type(self).__new__(type(self))
        made.__dict__.update({**self.__dict__, **(update or {})})
        return made

    def stream(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> Iterator[Any]:
        """Stream a run while holding the thread's lock; arguments as in LangGraph.

        Raises:
            ThreadBusyError: another run kept the lock for longer than the timeout.
        """
        if self.is_asynchronous:
            raise SettingsError("this storage was opened with `aopen_storage`; use `ainvoke` or `astream`")
        options = _durable(options)
        with self.locks.hold(_thread_id(self.config, config)):
            if _is_new(input) and _is_pending(self._saver.get_tuple(self._bound(config))):
                # The last run died before its message was applied; a new input would take its place.
                for _ in super().stream(None, config, **{**options, "interrupt_before": "*"}):
                    pass
            yield from super().stream(input, config, **options)

    async def astream(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> AsyncIterator[Any]:
        """Stream a run asynchronously while holding the thread's lock; see `stream`."""
        if not self.is_asynchronous:
            raise SettingsError("this storage was opened with `open_storage`; use `aopen_storage` for async runs")
        options = _durable(options)
        async with self.locks.ahold(_thread_id(self.config, config)):
            if _is_new(input) and _is_pending(await self._saver.aget_tuple(self._bound(config))):
                async for _ in super().astream(None, config, **{**options, "interrupt_before": "*"}):
                    pass
            async for part in super().astream(input, config, **options):
                yield part

    @property
    def _saver(self) -> BaseCheckpointSaver[str]:
        saver = self.checkpointer
        assert isinstance(saver, BaseCheckpointSaver)
        return saver

    def _bound(self, config: RunnableConfig | None) -> RunnableConfig:
        configurable = {**(self.config or {}).get("configurable", {}), **(config or {}).get("configurable", {})}
        return {"configurable": {"checkpoint_ns": "", **configurable}}


def _durable(options: dict[str, Any]) -> dict[str, Any]:
    """Save each step before the next one starts, unless the caller wants otherwise: tools have side effects."""
    return {**options, "durability": options.get("durability") or "sync"}


def _is_new(given: Any) -> bool:
    """Tell whether a run begins with an input, rather than resuming where the last one stopped."""
    return given is not None and not isinstance(given, Command)


def _is_pending(last: CheckpointTuple | None) -> bool:
    """Tell whether the newest checkpoint holds an input that was saved and not applied."""
    return last is not None and last.metadata.get("source") == "input"


def _thread_id(bound: RunnableConfig | None, config: RunnableConfig | None) -> str:
    for given in (config, bound):
        thread_id = (given or {}).get("configurable", {}).get("thread_id")
        if thread_id:
            return str(thread_id)
    raise SettingsError('no thread: pass {"configurable": {"thread_id": "…"}} as config')
