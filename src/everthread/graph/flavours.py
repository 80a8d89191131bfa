"""A node with a sync and an async flavour that also says which node is next."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.runtime import Runtime, get_runtime
from langgraph.types import Command

from everthread.nodes.wiring import Wiring
from everthread.state import Context, State, Update

Plain = Callable[[State, Runtime[Context], Wiring], Update]
Sync = Callable[[State, RunnableConfig, Runtime[Context], Wiring], Update]
Async = Callable[[State, RunnableConfig, Runtime[Context], Wiring], Awaitable[Update]]
Next = Callable[[State, Update, Runtime[Context], Wiring], str]
"""Names the node after this one, from the state that it read and the update that it made."""


class Step(Runnable[State, Any]):
    """Runs a node: blocking under `invoke`, awaiting under `ainvoke`.

    LangGraph runs a plain function in a worker thread under `ainvoke`, which would hold one thread
    for the length of every model call. A conditional edge would rebuild the whole state to choose
    the next node; the node has that state in its hands, so the choice goes out with its update.
    """

    def __init__(self, name: str, wiring: Wiring, after: Next, *, sync: Sync, asynchronous: Async) -> None:
        self.name = name
        self._sync = sync
        self._async = asynchronous
        self._after = after
        self._wiring = wiring

    @classmethod
    def plain(cls, name: str, wiring: Wiring, after: Next, node: Plain) -> "Step":
        """Return the step of a node that calls no model and so has one flavour."""

        def sync(state: State, config: RunnableConfig, runtime: Runtime[Context], wiring: Wiring) -> Update:
            return node(state, runtime, wiring)

        async def asynchronous(
            state: State, config: RunnableConfig, runtime: Runtime[Context], wiring: Wiring
        ) -> Update:
            return await asyncio.to_thread(node, state, runtime, wiring)

        return cls(name, wiring, after, sync=sync, asynchronous=asynchronous)

    def invoke(self, input: State, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Run the blocking flavour."""
        runtime = get_runtime(Context)
        return self._routed(input, self._sync(input, config or {}, runtime, self._wiring), runtime)

    async def ainvoke(self, input: State, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Run the awaiting flavour."""
        runtime = get_runtime(Context)
        return self._routed(input, await self._async(input, config or {}, runtime, self._wiring), runtime)

    def _routed(self, state: State, update: Any, runtime: Runtime[Context]) -> Any:
        target = self._after(state, update, runtime, self._wiring)
        if isinstance(update, list):
            # Tools may answer with commands of their own, one for each call.
            return [*update, Command(goto=target)]
        return Command(update=_changed(state, update), goto=target)


def _changed(state: State, update: Update) -> dict[str, Any]:
    """Leave out keys that have their value already: each one would be written to the database again."""
    return {key: value for key, value in update.items() if key in _KEPT or state.get(key, _ABSENT) != value}


_KEPT = ("messages", "turns")
"""A run that writes no key of the output returns None to its caller."""

_ABSENT = object()
