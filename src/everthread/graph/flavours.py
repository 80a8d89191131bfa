"""A node with a sync and an async flavour that also says which node is next."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.runtime import Runtime, get_runtime
from langgraph.types import Command

from everthread.graph.routing import updated
from everthread.nodes.wiring import Wiring
from everthread.state import Context, State, Update
from everthread.state.marks import marks
from everthread.window.turns import question_of

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


class Opening(Step):
    """The model's step, which also opens the turn of a message that came straight to it.

    To open a turn is a node of its own; one more super-step, with its checkpoint, would cost every turn as much
    as the node itself. That step is taken when the model is not next: the working set has to be trimmed first.
    """

    def __init__(
        self,
        name: str,
        wiring: Wiring,
        after: Next,
        *,
        sync: Sync,
        asynchronous: Async,
        opening: Plain,
        after_opening: Next,
    ) -> None:
        super().__init__(name, wiring, after, sync=sync, asynchronous=asynchronous)
        self._opening = opening
        self._after_opening = after_opening

    def invoke(self, input: State, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Run the blocking flavour."""
        runtime = get_runtime(Context)
        if not _is_unopened(input):
            return super().invoke(input, config)
        opened, target = self._opened(input, runtime)
        if target != self.name:
            return Command(update=_changed(input, opened), goto=target)
        update = self._sync(updated(input, opened), config or {}, runtime, self._wiring)
        return self._routed(input, _joined(opened, update), runtime)

    async def ainvoke(self, input: State, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Run the awaiting flavour."""
        runtime = get_runtime(Context)
        if not _is_unopened(input):
            return await super().ainvoke(input, config)
        opened, target = await asyncio.to_thread(self._opened, input, runtime)
        if target != self.name:
            return Command(update=_changed(input, opened), goto=target)
        update = await self._async(updated(input, opened), config or {}, runtime, self._wiring)
        return self._routed(input, _joined(opened, update), runtime)

    def _opened(self, state: State, runtime: Runtime[Context]) -> tuple[Update, str]:
        update = self._opening(state, runtime, self._wiring)
        return update, self._after_opening(state, update, runtime, self._wiring)


def _is_unopened(state: State) -> bool:
    """Tell whether the newest message of the user has not begun its turn yet."""
    if "memory" in state:
        return False
    question = question_of(state.get("messages", []))
    return question is not None and "at" not in marks(question)


def _joined(first: Update, then: Update) -> Update:
    """Return one update that does what two do, one after the other."""
    joined: Update = {**first, **then}
    joined["messages"] = [*first.get("messages", []), *then.get("messages", [])]
    return joined


def _changed(state: State, update: Update) -> dict[str, Any]:
    """Leave out keys that have their value already: each one would be written to the database again."""
    return {key: value for key, value in update.items() if key in _KEPT or state.get(key, _ABSENT) != value}


_KEPT = ("messages", "turns")
"""A run that writes no key of the output returns None to its caller."""

_ABSENT = object()
