"""What a call of a guarded graph asks for, read before anything is claimed or saved."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config, merge_configs
from langgraph.types import Command

from everthread.errors import SettingsError
from everthread.graph.inputs import AnyGraph, read_input
from everthread.state import Context, namespaces
from everthread.state.context import named_dials, named_user, no_user, set_dials
from everthread.storage.pruning import dial_metadata
from everthread.tools import OWN_TOOLS


@dataclass(frozen=True)
class Run:
    """One call of a guarded graph."""

    input: Any
    config: RunnableConfig
    options: dict[str, Any]
    thread_id: str
    user_id: str | None
    keep_checkpoints: int | None
    ledger_turns: int | None
    has_new_ids: bool
    """It brings messages that no thread can have yet."""
    run_id: str | None
    """The `run_id` that the caller names; it is not in `config`, whose edits of the thread are no run of the caller."""

    @property
    def is_new(self) -> bool:
        """Whether it begins with an input, rather than resuming where the last run stopped."""
        return self.input is not None and not isinstance(self.input, Command)

    @property
    def latest(self) -> RunnableConfig:
        """The config of the newest checkpoint."""
        return latest_of(self.config)


@dataclass(frozen=True)
class RunInput:
    """A step of a guarded run: the graph has to run, with this input."""

    input: Any
    config: RunnableConfig
    is_silent: bool = False
    """It finishes an earlier turn: the caller shows nothing of it."""
    beside: AnyGraph | None = None
    """What has to run instead of the graph, and changes nothing of the thread's state."""

    @classmethod
    def of(
        cls, input: Any, config: RunnableConfig, run_id: str | None = None, *, is_silent: bool = False
    ) -> "RunInput":
        """Put the id of a run of the graph, a new one if there is none, where LangGraph takes it from."""
        named = {"run_id": run_id or str(uuid4())}
        configurable, metadata = {**config["configurable"], **named}, {**config["metadata"], **named}
        return cls(input, {**config, "configurable": configurable, "metadata": metadata}, is_silent)


@dataclass(frozen=True)
class KnownAnswer:
    """A step of a guarded run: nothing has to run, since the message has its answer already."""

    values: Any
    """The output, as the graph would return it."""


Steps = Iterator[RunInput | KnownAnswer]


def read_run(graph: AnyGraph, input: Any, config: RunnableConfig | None, options: dict[str, Any]) -> Run:
    """Read the arguments of a call; nothing is claimed or saved before they are found to be in order."""
    merged = merge_configs(graph.config, ensure_config(config))
    configurable = _at_root(merged.get("configurable", {}))
    thread_id = thread_of(merged)
    limit = merged.get("recursion_limit", 1)
    if not isinstance(limit, int | float) or limit < 1:
        # LangGraph says so when the run starts, and what waited on the thread is given up by then.
        raise SettingsError(f"`recursion_limit` must be a number of steps, at least 1, got {limit!r}")
    context = _context(graph, options.get("context"), configurable)
    # Dials of `EverthreadMiddleware`: found wrong in the middle of a run, its message would be saved already.
    set_dials(configurable)
    user_id = named_user(context, configurable)
    if user_id is None and dials_type(graph) is not None:
        user_id = Context.user_id
    if user_id is None and graph.store is not None and has_middleware(graph):
        # Its first node would say so, with the message saved and the thread nobody's.
        raise no_user()
    keep = getattr(context, "keep_checkpoints", Context.keep_checkpoints)
    # Tools have side effects: each step is saved before the next one starts, unless the caller wants otherwise.
    durability = options.get("durability") or "sync"
    sent, has_new_ids = read_input(graph, input, is_own=is_own(graph))
    metadata = merged.get("metadata", {})
    # The metadata goes first in LangGraph too.
    run_id = metadata.get("run_id") or configurable.get("run_id")
    configurable, metadata = (_without(part, "run_id") for part in (configurable, metadata))
    return Run(
        input=sent,
        config={
            **(config or {}),
            "configurable": {**configurable, "thread_id": thread_id},
            "metadata": {**metadata, **dial_metadata(keep, is_own=is_own(graph))},
        },
        options={**options, "context": context, "durability": durability},
        thread_id=thread_id,
        user_id=None if user_id is None else namespaces.checked("user_id", user_id),
        keep_checkpoints=keep,
        ledger_turns=getattr(context, "ledger_turns", Context.ledger_turns),
        has_new_ids=has_new_ids,
        run_id=str(run_id) if run_id else None,
    )


def _at_root(configurable: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a run takes of a config that names the checkpoint of a subgraph: the graph's own beside it.

    So does LangGraph, for a run; asked for the state, it would look for the subgraph.
    """
    if not configurable.get("checkpoint_ns"):
        return _without(configurable, "checkpoint_ns")
    beside = (configurable.get("checkpoint_map") or {}).get("")
    here = {} if beside is None else {"checkpoint_id": beside}
    return {**_without(configurable, "checkpoint_ns", "checkpoint_id"), **here}


def _without(values: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in names}


def _context(graph: AnyGraph, context: Any, configurable: Mapping[str, Any]) -> Any:
    """Return the context of a run; a graph with our dials takes its user from `configurable` when there is none."""
    dials = dials_type(graph)
    if dials is None:
        return context
    if isinstance(context, Context):
        # The same, but for dials that the graph has fixed.
        return context if dials is Context else dials.from_mapping(vars(context))
    if context is not None and not isinstance(context, Mapping):
        return dials.from_mapping(named_dials(context, configurable))
    user = {"user_id": configurable["user_id"]} if configurable.get("user_id") else {}
    values = {**user, **(context or {})}
    return dials.from_mapping(values) if values or dials is not Context else None


def dials_type(graph: AnyGraph) -> type[Context] | None:
    """Return the type of a graph's context when that is our dials, as in any graph that has chosen them; or None."""
    schema: Any = graph.context_schema
    return schema if isinstance(schema, type) and issubclass(schema, Context) else None


def is_own(graph: AnyGraph) -> bool:
    """Tell whether it is a graph of `pipeline`, by its first node: any graph may have our dials as its context."""
    return "inject_memory" in graph.nodes


def has_middleware(graph: AnyGraph) -> bool:
    """Whether `EverthreadMiddleware` is in the agent, which brings its tools along and remembers by user."""
    found = (getattr(node.bound, "tools_by_name", {}) for node in getattr(graph, "nodes", {}).values())
    return any(set(OWN_TOOLS) <= set(tools) for tools in found)


def latest_of(config: RunnableConfig) -> RunnableConfig:
    """Return a config without the checkpoint that it names: of the newest one."""
    return {**config, "configurable": _without(config["configurable"], "checkpoint_id", "checkpoint_map")}


def thread_of(config: RunnableConfig) -> str:
    """Return the `thread_id` of a config.

    Raises:
        SettingsError: it has none, or one that cannot be kept.
    """
    thread_id = config.get("configurable", {}).get("thread_id")
    if not namespaces.is_named(thread_id):
        raise SettingsError('no thread: pass {"configurable": {"thread_id": "…"}} as config')
    return namespaces.checked("thread_id", str(thread_id))
