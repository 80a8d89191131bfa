"""Run any compiled graph on a shared database: one run at a time on a thread, and each by the thread's owner."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from typing import Any, Self, cast

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config, merge_configs
from langchain_core.runnables.graph import Graph
from langgraph.channels import UntrackedValue
from langgraph.errors import GraphRecursionError
from langgraph.graph.state import CompiledStateGraph
from langgraph.pregel.protocol import PregelProtocol
from langgraph.runtime import Runtime
from langgraph.types import GraphOutput, StateSnapshot, StateUpdate
from pydantic import BaseModel

from everthread.errors import SettingsError, StepLimitError
from everthread.graph.holds import RunHold, hold_async
from everthread.graph.run import KnownAnswer, Run, RunInput, has_middleware, is_own, read_run, thread_of
from everthread.graph.run_steps import RunSteps
from everthread.nodes.nested import OWN_STORE
from everthread.state.schemas import declared_types
from everthread.storage.open import Storage


class _StepLimit(StepLimitError, GraphRecursionError):
    """For those who catch LangGraph's error too; `errors` does without LangGraph, which takes a second to load."""


class GuardedGraph(PregelProtocol[Any, Any, Any, Any]):
    """A compiled graph whose runs hold the lock of their thread.

    A run is refused unless it is the thread owner's. A message that is sent again under its id gets the answer that it
    has, and a turn that was cut off goes on (`resend` has the rule); old checkpoints are pruned afterwards. Inside
    another graph, where the parent owns thread and context, it runs as the plain graph.

    Args:
        graph: compiled with the checkpointer and the store of `storage`.

    Raises:
        SettingsError: it is no compiled graph, has another checkpointer, or is one of ours with another store.
    """

    def __init__(self, graph: CompiledStateGraph[Any, Any, Any, Any], storage: Storage) -> None:
        if isinstance(graph, GuardedGraph):
            raise SettingsError("the graph is guarded already, as `build_graph(…, storage=storage)` returns it; use it")
        if not isinstance(graph, CompiledStateGraph):
            raise SettingsError(
                f"a guard takes a compiled graph, got {type(graph).__name__}; compile a StateGraph first"
            )
        if not _is_on(graph.checkpointer, storage):
            raise SettingsError(
                "the graph to guard has another checkpointer: compile it with `checkpointer=storage.checkpointer` "
                "and `store=storage.store`"
            )
        is_elsewhere = graph.store is not None and graph.store is not storage.store
        if is_elsewhere and (is_own(graph) or has_middleware(graph)):
            # What leaves a prompt would be where nothing here reads it. The store of anybody else's graph is its own.
            raise SettingsError(
                "the graph to guard keeps what leaves its prompts in another store: give it `store=storage.store`"
            )
        # The graph's own types come back from a checkpoint as what they are.
        saved = (channel for channel in graph.channels.values() if not isinstance(channel, UntrackedValue))
        types = declared_types(getattr(channel, "ValueType", None) for channel in saved)
        self.graph = graph.copy({"checkpointer": storage.checkpointer.with_allowlist(types)}) if types else graph
        self.storage = storage
        self.name = graph.name
        self._steps = RunSteps(self.graph, storage)

    def __getattr__(self, name: str) -> Any:
        # What is not asked of a run, such as `nodes`, `builder` and `channels`, is the graph's.
        if name in ("graph", "storage"):
            raise AttributeError(name)
        return getattr(self.graph, name)

    def stream(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> Iterator[Any]:
        """Stream a run while holding the thread's lock; arguments as in LangGraph.

        Raises:
            ThreadBusyError: another run kept the lock for longer than the timeout.
            SettingsError: no thread is named, its owner is another user, or the input cannot be read.
            StorageError: the database failed.
        """
        if _is_nested(config):
            yield from self.graph.stream(input, self._inside(config), **options)
            return
        run = read_run(self.graph, input, config, options)
        with (hold := RunHold(self.storage, run.thread_id)), hold:
            for step in self._steps.steps(run):
                if isinstance(step, KnownAnswer):
                    yield from _streamed(step, run.options)
                else:
                    graph, options = self._runner(step, run)
                    with _step_limit(step.config):
                        for part in graph.stream(step.input, step.config, **options):
                            if not step.is_silent:
                                yield part

    async def astream(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> AsyncIterator[Any]:
        """Stream a run asynchronously while holding the thread's lock; see `stream`."""
        if _is_nested(config):
            async for part in self.graph.astream(input, self._inside(config), **options):
                yield part
            return
        run = read_run(self.graph, input, config, options)
        async with (
            hold_async(self.storage, run.thread_id) as hold,
            aclosing(hold.scope.stream(self._parts(run))) as parts,
        ):
            async for part in parts:
                try:
                    yield part
                except GeneratorExit:
                    hold.is_left = True
                    raise

    def invoke(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> Any:
        """Run the graph while holding the thread's lock; arguments and errors as in `stream`."""
        if _is_nested(config):
            return self.graph.invoke(input, self._inside(config), **options)
        run, result = read_run(self.graph, input, config, options), None
        with (hold := RunHold(self.storage, run.thread_id)), hold:
            for step in self._steps.steps(run):
                if isinstance(step, KnownAnswer):
                    result = _output(step, run.options)
                else:
                    graph, options = self._runner(step, run)
                    with _step_limit(step.config):
                        result = graph.invoke(step.input, step.config, **options)
        return result

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> Any:
        """Run the graph asynchronously while holding the thread's lock; see `invoke`."""
        if _is_nested(config):
            return await self.graph.ainvoke(input, self._inside(config), **options)
        run, result = read_run(self.graph, input, config, options), None
        async with hold_async(self.storage, run.thread_id) as hold:
            with hold.scope.current():
                steps = self._steps.steps(run)
                while (step := await self.storage.worker.call(next, steps, None)) is not None:
                    if isinstance(step, KnownAnswer):
                        result = _output(step, run.options)
                    else:
                        graph, options = self._runner(step, run)
                        with _step_limit(step.config):
                            result = await graph.ainvoke(step.input, step.config, **options)
        return result

    def stream_events(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> Any:
        """Stream the events of a run while holding the thread's lock; arguments as in LangGraph."""
        return self._with_guarded_runs().stream_events(input, config, **options)

    def astream_events(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> Any:
        """Stream the events of a run asynchronously; see `stream_events`."""
        return self._with_guarded_runs().astream_events(input, config, **options)

    def _with_guarded_runs(self) -> Any:
        """Return the graph with `stream` and `astream` of the guard, on which LangGraph builds its events."""
        graph: Any = self.graph.copy()
        graph.stream, graph.astream = self.stream, self.astream
        return graph

    def _inside(self, config: RunnableConfig | None) -> RunnableConfig:
        """Return the config of a run inside another graph, with our store for a parent that has none."""
        here = ensure_config(config)
        return {**here, "configurable": {**here["configurable"], OWN_STORE: self.storage.store}}

    async def _parts(self, run: Run) -> AsyncGenerator[Any, None]:
        steps = self._steps.steps(run)
        while (step := await self.storage.worker.call(next, steps, None)) is not None:
            if isinstance(step, KnownAnswer):
                for part in _streamed(step, run.options):
                    yield part
            else:
                graph, options = self._runner(step, run)
                # Closed here, while the lock is held: left to the garbage collector it would go on.
                parts = cast(AsyncGenerator[Any, None], graph.astream(step.input, step.config, **options))
                with _step_limit(step.config):
                    async with aclosing(parts):
                        async for part in parts:
                            if not step.is_silent:
                                yield part

    def _runner(self, step: RunInput, run: Run) -> tuple[CompiledStateGraph[Any, Any, Any, Any], dict[str, Any]]:
        """Return the graph that runs a step, and its options: one beside the thread has no checkpoints to speak of."""
        return (self.graph, run.options) if step.beside is None else (step.beside, {"context": run.options["context"]})

    # The state, and what a graph tells of itself.

    def get_state(self, config: RunnableConfig, *, subgraphs: bool = False) -> StateSnapshot:
        """Return the state of a thread; see LangGraph."""
        return self.graph.get_state(config, subgraphs=subgraphs)

    async def aget_state(self, config: RunnableConfig, *, subgraphs: bool = False) -> StateSnapshot:
        """Return the state of a thread; see LangGraph."""
        return await self.graph.aget_state(config, subgraphs=subgraphs)

    def get_state_history(self, config: RunnableConfig, **options: Any) -> Iterator[StateSnapshot]:
        """Return the states of a thread, newest first; see LangGraph."""
        return self.graph.get_state_history(config, **options)

    def aget_state_history(self, config: RunnableConfig, **options: Any) -> AsyncIterator[StateSnapshot]:
        """Return the states of a thread, newest first; see LangGraph."""
        return self.graph.aget_state_history(config, **options)

    def update_state(
        self, config: RunnableConfig, values: Any, as_node: str | None = None, task_id: str | None = None
    ) -> RunnableConfig:
        """Edit the state while holding the thread's lock; see LangGraph."""
        return self.bulk_update_state(config, [[StateUpdate(values, as_node, task_id)]])

    async def aupdate_state(
        self, config: RunnableConfig, values: Any, as_node: str | None = None, task_id: str | None = None
    ) -> RunnableConfig:
        """Edit the state while holding the thread's lock; see LangGraph."""
        return await self.abulk_update_state(config, [[StateUpdate(values, as_node, task_id)]])

    def bulk_update_state(self, config: RunnableConfig, updates: Sequence[Sequence[StateUpdate]]) -> RunnableConfig:
        """Edit the state while holding the thread's lock; see LangGraph."""
        if _is_nested(config):
            return self.graph.bulk_update_state(config, updates)
        with (hold := RunHold(self.storage, thread_of(merge_configs(self.graph.config, config)))), hold:
            return self._steps.edit(config, updates)

    async def abulk_update_state(
        self, config: RunnableConfig, updates: Sequence[Sequence[StateUpdate]]
    ) -> RunnableConfig:
        """Edit the state while holding the thread's lock; see LangGraph."""
        if _is_nested(config):
            return await self.graph.abulk_update_state(config, updates)
        async with hold_async(self.storage, thread_of(merge_configs(self.graph.config, config))) as hold:
            with hold.scope.current():
                return await self.storage.worker.call(self._steps.edit, config, updates)

    def with_config(self, config: RunnableConfig | None = None, **kwargs: Any) -> Self:
        """Return the same guard around the graph with another config."""
        return type(self)(self.graph.with_config(config, **kwargs), self.storage)

    def copy(self, update: dict[str, Any] | None = None) -> Self:
        """Return the same guard around a copy of the graph."""
        return type(self)(self.graph.copy(update), self.storage)

    def get_graph(self, config: RunnableConfig | None = None, *, xray: int | bool = False) -> Graph:
        """Return the drawable graph."""
        return self.graph.get_graph(config, xray=xray)

    async def aget_graph(self, config: RunnableConfig | None = None, *, xray: int | bool = False) -> Graph:
        """Return the drawable graph."""
        return await self.graph.aget_graph(config, xray=xray)

    def get_name(self, suffix: str | None = None, *, name: str | None = None) -> str:
        """Return the graph's name."""
        return self.graph.get_name(suffix, name=name)

    @property
    def InputType(self) -> Any:  # noqa: N802 - the name is LangChain's
        """What a run takes."""
        return self.graph.InputType

    @property
    def OutputType(self) -> Any:  # noqa: N802 - the name is LangChain's
        """What a run returns."""
        return self.graph.OutputType

    def get_input_schema(self, config: RunnableConfig | None = None) -> type[BaseModel]:
        """Return the schema of the input."""
        return self.graph.get_input_schema(config)

    def get_output_schema(self, config: RunnableConfig | None = None) -> type[BaseModel]:
        """Return the schema of the output."""
        return self.graph.get_output_schema(config)

    def get_input_jsonschema(self, config: RunnableConfig | None = None) -> dict[str, Any]:
        """Return the JSON Schema of the input."""
        return self.graph.get_input_jsonschema(config)

    def get_output_jsonschema(self, config: RunnableConfig | None = None) -> dict[str, Any]:
        """Return the JSON Schema of the output."""
        return self.graph.get_output_jsonschema(config)

    def config_schema(self, *, include: Sequence[str] | None = None) -> type[BaseModel]:
        """Return the schema of the config."""
        return self.graph.config_schema(include=include)


def check_guarded(graph: object) -> GuardedGraph:
    """Return a graph that is under a guard.

    Raises:
        SettingsError: it is none, so nobody knows the database of its threads.
    """
    if not isinstance(graph, GuardedGraph):
        raise SettingsError(
            "the graph is to be under a guard, `storage.guard(graph)` or `build_graph(…, storage=storage)`, got "
            f"{type(graph).__name__}"
        )
    return graph


def _is_nested(config: RunnableConfig | None) -> bool:
    """Tell whether a call comes from a node of another graph, which owns the thread.

    LangGraph hands a node's config on with the node's runtime. A caller may name a `checkpoint_ns` too, and no client
    over JSON a runtime.
    """
    configurable = ensure_config(config).get("configurable", {})
    return bool(configurable.get("checkpoint_ns")) and any(isinstance(one, Runtime) for one in configurable.values())


def _is_on(checkpointer: Any, storage: Storage) -> bool:
    """Tell whether a checkpointer is the storage's; with an allow-list of its own it is another object."""
    return isinstance(checkpointer, type(storage.checkpointer)) and checkpointer.database is storage.database


@contextmanager
def _step_limit(config: RunnableConfig) -> Iterator[None]:
    """Say in one sentence that a turn ran into `recursion_limit`, and which dial to set."""
    try:
        yield
    except StepLimitError:
        raise
    except GraphRecursionError as error:
        limit = f"{config['recursion_limit']:,} steps" if "recursion_limit" in config else "all steps that it may"
        raise _StepLimit(
            f"the turn took {limit} and was not done; it is kept: run the thread again to go on, and raise "
            "`recursion_limit` in the config if the turn needs more (each model call and each round of tools is a step)"
        ) from error


def _output(answer: KnownAnswer, options: Mapping[str, Any]) -> Any:
    """Return an answer as `invoke` would: a list of parts in any mode but `values`."""
    if options.get("stream_mode", "values") != "values":
        return [*_streamed(answer, options)]
    return GraphOutput(value=answer.values) if options.get("version") == "v2" else answer.values


def _streamed(answer: KnownAnswer, options: Mapping[str, Any]) -> Iterator[Any]:
    """Yield an answer as `stream` would yield the values of the last step, which no other mode shows."""
    modes: Any = options.get("stream_mode")
    is_list = isinstance(modes, list | tuple)
    if "values" not in (modes if is_list else [modes]):
        return
    if options.get("version") == "v2":
        yield {"type": "values", "ns": (), "data": answer.values, "interrupts": ()}
    elif is_list:
        yield ((), "values", answer.values) if options.get("subgraphs") else ("values", answer.values)
    else:
        yield ((), answer.values) if options.get("subgraphs") else answer.values
