"""What the next model call of an agent with `EverthreadMiddleware` is planned with, found out without making it.

Model, system message and tools of such an agent are known in its own model node alone. So that node is run, in a graph
of its own that saves nothing, up to where the middleware has them; there it raises what it has.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore

from everthread.errors import EverthreadError, SettingsError
from everthread.nodes.deps import NodeDeps
from everthread.nodes.thread_view import ThreadView
from everthread.state import Context

_AHEAD = "__everthread_ahead"
"""Key of `configurable` under which the middleware is asked for a `CallAhead` in place of the call."""

_ASKED = object()
"""Its value, which no client of a server can send: the run would end in no error that a server expects."""

_MODEL = "model"
"""Node of `create_agent` that calls the model."""


class AsyncOnlyError(SettingsError):
    """Another middleware of the agent can be asked on an event loop alone."""


@dataclass
class CallAhead(BaseException):
    """A call that is not made. No error: middlewares that retry or fall back must not take it for one."""

    view: ThreadView
    runtime: Runtime[Context]
    deps: NodeDeps
    is_counted_by_place: bool
    """Another summarizer counts the messages of the state by their places, so none may leave it."""


def is_asked_ahead(configurable: Mapping[str, Any]) -> bool:
    """Tell whether a run is to raise a `CallAhead` instead of making its call."""
    return configurable.get(_AHEAD) is _ASKED


def call_ahead(
    agent: CompiledStateGraph[Any, Any, Any, Any], store: BaseStore, values: dict[str, Any], config: RunnableConfig
) -> CallAhead:
    """Return what the next call of an agent is planned with; no model is asked and nothing is saved.

    Args:
        agent: has `EverthreadMiddleware`.
        store: of its threads.
        values: of its newest state, whose messages have one of the user.
        config: names thread and user, and dials under `everthread`, with the metadata of a guarded run.

    Raises:
        AsyncOnlyError: another middleware of the agent has no synchronous flavour.
        SettingsError: the model is not called by a node that can be run, or another middleware fails in it.
    """
    try:
        _alone(agent, store).invoke(values, _asking(config))
    except CallAhead as ahead:
        return ahead
    except Exception as error:
        raise _refusal(agent, error) from error
    raise _answered(agent)


async def acall_ahead(
    agent: CompiledStateGraph[Any, Any, Any, Any], store: BaseStore, values: dict[str, Any], config: RunnableConfig
) -> CallAhead:
    """Do what `call_ahead` does on the event loop."""
    try:
        await _alone(agent, store).ainvoke(values, _asking(config))
    except CallAhead as ahead:
        return ahead
    except Exception as error:
        raise _refusal(agent, error) from error
    raise _answered(agent)


def node_alone(
    builder: StateGraph[Any, Any, Any, Any], name: str, store: BaseStore
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Return a graph of one node of another one, which saves no checkpoint."""
    alone = StateGraph(builder.state_schema, context_schema=builder.context_schema)
    alone.add_node(name, builder.nodes[name].runnable)
    alone.add_edge(START, name)
    return alone.compile(store=store)


def _alone(agent: CompiledStateGraph[Any, Any, Any, Any], store: BaseStore) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Return a graph of the agent's model node alone."""
    if _MODEL not in agent.builder.nodes:
        raise SettingsError(f"the agent {agent.name!r} has no node `{_MODEL}`, as those of `create_agent` have")
    return node_alone(agent.builder, _MODEL, store)


def _asking(config: RunnableConfig) -> RunnableConfig:
    return {**config, "configurable": {**config["configurable"], _AHEAD: _ASKED}}


def _refusal(agent: CompiledStateGraph[Any, Any, Any, Any], error: Exception) -> EverthreadError:
    if isinstance(error, EverthreadError):
        return error
    kind = AsyncOnlyError if isinstance(error, NotImplementedError) else SettingsError
    return kind(
        f"the next call of the agent {agent.name!r} cannot be planned outside a run: another middleware of it "
        f"fails there with {type(error).__name__}: {error}"
    )


def _answered(agent: CompiledStateGraph[Any, Any, Any, Any]) -> SettingsError:
    return SettingsError(f"another middleware of the agent {agent.name!r} answers instead of the model")
