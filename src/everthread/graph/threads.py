"""A compiled graph whose runs hold the lock of their thread."""

from collections.abc import AsyncIterator, Iterator
from typing import Any, Self

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command

from everthread.errors import SettingsError
from everthread.state import Context, Input, Output, State, namespaces
from everthread.state.messages import reduce_messages
from everthread.storage.locks import ThreadLocks
from everthread.storage.newest import aending, ending
from everthread.storage.open import Storage
from everthread.storage.pruning import Pruner


class ThreadGraph(CompiledStateGraph[State, Context, Input, Output]):
    """A compiled graph that runs one run at a time on a thread.

    `invoke` and `ainvoke` go through `stream` and `astream`, so locking these two covers all four.
    """

    locks: ThreadLocks
    pruner: Pruner
    is_asynchronous: bool

    @classmethod
    def locked(cls, graph: CompiledStateGraph[State, Context, Input, Output], storage: Storage) -> "ThreadGraph":
        """Return the same graph with the locks of its storage."""
        made = cls.__new__(cls)
        made.__dict__.update(graph.__dict__)
        made.locks = storage.locks
        made.pruner = Pruner(storage.checkpointer)
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
        options, input = _durable(options), _whole(input)
        thread_id = _thread_id(self.config, config)
        with self.locks.hold(thread_id):
            last = ending(self._saver, self._bound(config)) if _is_new(input) else "done"
            if last == "unapplied":
                # The last run died before its message was applied; a new input would take its place.
                for _ in super().stream(None, config, **{**options, "interrupt_before": "*"}):
                    pass
            if last != "done" and _goes_on(input, self.get_state(self._bound(config)).values):
                input = None
            yield from super().stream(input, config, **options)
            self.pruner.after_run(thread_id, *_turns_to_keep(options))

    async def astream(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> AsyncIterator[Any]:
        """Stream a run asynchronously while holding the thread's lock; see `stream`."""
        if not self.is_asynchronous:
            raise SettingsError("this storage was opened with `open_storage`; use `aopen_storage` for async runs")
        options, input = _durable(options), _whole(input)
        thread_id = _thread_id(self.config, config)
        async with self.locks.ahold(thread_id):
            last = await aending(self._saver, self._bound(config)) if _is_new(input) else "done"
            if last == "unapplied":
                async for _ in super().astream(None, config, **{**options, "interrupt_before": "*"}):
                    pass
            if last != "done" and _goes_on(input, (await self.aget_state(self._bound(config))).values):
                input = None
            async for part in super().astream(input, config, **options):
                yield part
            await self.pruner.aafter_run(thread_id, *_turns_to_keep(options))

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


def _turns_to_keep(options: dict[str, Any]) -> tuple[int | None, int | None]:
    """Return the dials `keep_checkpoints` and `ledger_turns` of a run, whose context may be a mapping or missing."""
    context = options.get("context")
    if not isinstance(context, Context):
        context = Context.from_mapping(dict(context or {}))
    return context.keep_checkpoints, context.ledger_turns


def _whole(given: Any) -> Any:
    """Say with every message whether the session ends with it.

    A run that died between its wish to end and the end left that wish in the state, and the next question
    would be taken for it.
    """
    if isinstance(given, dict) and given.get("messages") and "end_session" not in given:
        return {**given, "end_session": False}
    return given


def _is_new(given: Any) -> bool:
    """Tell whether a run begins with an input, rather than resuming where the last one stopped."""
    return given is not None and not isinstance(given, Command)


def _goes_on(given: Any, values: dict[str, Any]) -> bool:
    """Tell whether an input is the question of a turn that was cut off after its first reply: that turn goes on.

    Answered anew, a call that was cut off would stay without its result for good. A turn without a reply
    starts anew, with the dials and the memory of this run, and so does one whose prompt was refused.
    """
    if not isinstance(given, dict) or given.get("end_session") or not given.get("messages"):
        return False
    before = values.get("messages", [])
    if values.get("overflows") or not before or isinstance(before[-1], HumanMessage):
        return False
    after = reduce_messages(before, [given["messages"]])
    return [(message.id, message.content) for message in after] == [(one.id, one.content) for one in before]


def _thread_id(bound: RunnableConfig | None, config: RunnableConfig | None) -> str:
    for given in (config, bound):
        thread_id = (given or {}).get("configurable", {}).get("thread_id")
        if thread_id:
            return namespaces.checked("thread_id", str(thread_id))
    raise SettingsError('no thread: pass {"configurable": {"thread_id": "…"}} as config')
