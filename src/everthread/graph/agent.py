"""Wire the nodes into a graph."""

from collections.abc import Mapping
from functools import cache

from langchain_core.language_models import BaseChatModel
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from everthread.errors import SettingsError
from everthread.graph.flavours import Step
from everthread.graph.routing import (
    after_consolidate,
    after_distill_notes,
    after_model,
    after_start,
    after_summarize,
    after_trim,
    before_model,
)
from everthread.graph.threads import ThreadGraph
from everthread.models.provider import resolve, tokenizer_name
from everthread.nodes.consolidate import aconsolidate, consolidate
from everthread.nodes.distill_notes import adistill_notes, distill_notes
from everthread.nodes.inject_memory import inject_memory
from everthread.nodes.model import amodel
from everthread.nodes.model import model as call_model
from everthread.nodes.summarize import asummarize, summarize
from everthread.nodes.tools import ToolRunner
from everthread.nodes.trim import trim
from everthread.nodes.wiring import Wiring
from everthread.state import Agent, Context, Input, Output, State
from everthread.storage.open import Storage
from everthread.tools.read_tool_output import read_tool_output
from everthread.tools.recall_history import recall_history


def build_graph(
    agent: Agent | None = None,
    *,
    model: BaseChatModel | str | None = None,
    summarizer: BaseChatModel | str | None = None,
    storage: Storage | None = None,
) -> CompiledStateGraph[State, Context, Input, Output]:
    """Build the graph of an agent.

    Args:
        agent: instructions, tools, profile schema and summary sections; None takes the travel concierge.
        model: a chat model or `provider:name`; None takes `EVERTHREAD_MODEL`, else the offline model.
        summarizer: writes summaries; None takes `model`.
        storage: an open database. Without one the graph is bare, as a LangGraph server requires,
            which brings its own checkpointer and store.

    Returns:
        A compiled graph. With `storage`, every run holds the lock of its thread.

    Raises:
        SettingsError: the model cannot be made; the message says what to set or install.
    """
    agent = ready_agents()["travel"] if agent is None else agent
    if not isinstance(agent, Agent):
        raise SettingsError(f"`agent` must be an Agent, such as everthread.agents.travel, got {agent!r}")
    if storage is not None and not isinstance(storage, Storage):
        raise SettingsError(
            "`storage` must be open: `with open_storage(url) as storage: build_graph(agent, storage=storage)`, "
            f"got {type(storage).__name__}"
        )
    chat = resolve(model)
    wiring = Wiring(
        agent=agent,
        model=chat,
        summarizer=chat if summarizer is None else resolve(summarizer),
        resolve=cache(resolve),
        name_of=tokenizer_name,
        read_tool_output=read_tool_output,
        recall_history=recall_history,
        exclusive=None if storage is None else storage.locks.hold,
    )
    graph = _wired(wiring)
    if storage is None:
        return graph.compile(name=agent.name)
    compiled = graph.compile(checkpointer=storage.checkpointer, store=storage.store, name=agent.name)
    return ThreadGraph.locked(compiled, storage)


def ready_agents() -> Mapping[str, Agent]:
    """Return the ready agents by name; imported when asked for, so that the core does without them."""
    from everthread.agents import AGENTS

    return AGENTS


def _wired(wiring: Wiring) -> StateGraph[State, Context, Input, Output]:
    graph = StateGraph(State, context_schema=Context, input_schema=Input, output_schema=Output)
    runner = ToolRunner(wiring)
    inject = Step.plain("inject_memory", wiring, before_model, inject_memory)
    call = Step("model", wiring, after_model, sync=call_model, asynchronous=amodel)
    run = Step("tools", wiring, before_model, sync=runner.tools, asynchronous=runner.atools)
    distill = Step("distill_notes", wiring, after_distill_notes, sync=distill_notes, asynchronous=adistill_notes)
    compact = Step("summarize", wiring, after_summarize, sync=summarize, asynchronous=asummarize)
    graph.add_node(inject, destinations=("trim", "model"))
    graph.add_node(Step.plain("trim", wiring, after_trim, trim), destinations=("model",))
    graph.add_node(call, destinations=("tools", "trim", "distill_notes", "summarize", "consolidate", END))
    graph.add_node(run, destinations=("trim", "model"))
    graph.add_node(distill, destinations=("summarize", "consolidate", END))
    graph.add_node(compact, destinations=("consolidate", END))
    end = Step("consolidate", wiring, after_consolidate, sync=consolidate, asynchronous=aconsolidate)
    graph.add_node(end, destinations=(END,))
    graph.add_conditional_edges(START, after_start, ["inject_memory", "consolidate", END])
    return graph
