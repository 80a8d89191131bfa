"""What the next model call of an agent with `EverthreadMiddleware` is planned with, found out without making it.

Model, system message and tools of such an agent are known in its own model node alone. So that node is run, in a graph
of its own that saves nothing, up to where the middleware has them; there it raises what it has.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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
    agent: CompiledStateGraph[Any, Any, Any, Any],
    store: BaseStore,
    values: dict[str, Any],
    configurable: dict[str, Any],
    metadata: dict[str, Any],
) -> CallAhead:
    """Return what the next call of an agent is planned with; no model is asked and nothing is saved.

    Args:
        agent: has `EverthreadMiddleware`.
        store: of its threads.
        values: of its newest state, whose messages have one of the user.
        configurable: names thread and user, and dials under `everthread`.
        metadata: as a guarded run has it.

    Raises:
        SettingsError: the model is not called by a node that can be run, or another middleware fails in it.
    """
    builder = agent.builder
    if _MODEL not in builder.nodes:
        raise SettingsError(f"the agent {agent.name!r} has no node `{_MODEL}`, as those of `create_agent` have")
    alone = StateGraph(builder.state_schema, context_schema=builder.context_schema)
    alone.add_node(_MODEL, builder.nodes[_MODEL].runnable)
    alone.add_edge(START, _MODEL)
    config: Any = {"configurable": {**configurable, _AHEAD: _ASKED}, "metadata": metadata}
    try:
        alone.compile(store=store).invoke(values, config)
    except CallAhead as ahead:
        return ahead
    except EverthreadError:
        raise
    except Exception as error:
        raise SettingsError(
            f"the next call of the agent {agent.name!r} cannot be planned outside a run: another middleware of it "
            f"fails there with {type(error).__name__}: {error}"
        ) from error
    raise SettingsError(f"another middleware of the agent {agent.name!r} answers instead of the model")
