"""A node with a sync and an async flavour."""

from collections.abc import Awaitable, Callable
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.runtime import Runtime, get_runtime

from everthread.nodes.wiring import Wiring
from everthread.state import Context, State, Update

Sync = Callable[[State, RunnableConfig, Runtime[Context], Wiring], Update]
Async = Callable[[State, RunnableConfig, Runtime[Context], Wiring], Awaitable[Update]]


class TwoFlavours(Runnable[State, Update]):
    """Runs a node that calls a model: blocking under `invoke`, awaiting under `ainvoke`.

    LangGraph runs a plain function in a worker thread under `ainvoke`, which would hold one thread
    for the length of every model call.
    """

    def __init__(self, name: str, sync: Sync, asynchronous: Async, wiring: Wiring) -> None:
        self.name = name
        self._sync = sync
        self._async = asynchronous
        self._wiring = wiring

    def invoke(self, input: State, config: RunnableConfig | None = None, **kwargs: Any) -> Update:
        """Run the blocking flavour."""
        return self._sync(input, config or {}, get_runtime(Context), self._wiring)

    async def ainvoke(self, input: State, config: RunnableConfig | None = None, **kwargs: Any) -> Update:
        """Run the awaiting flavour."""
        return await self._async(input, config or {}, get_runtime(Context), self._wiring)
