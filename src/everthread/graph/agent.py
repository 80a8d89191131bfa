"""Wire the nodes into a graph."""

from functools import cache, partial
from typing import Literal

from langchain_core.language_models import BaseChatModel
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from everthread.agents import travel
from everthread.agents.handles import read_tool_output
from everthread.errors import SettingsError
from everthread.graph.flavours import TwoFlavours
from everthread.graph.threads import ThreadGraph
from everthread.models.provider import resolve, tokenizer_name
from everthread.nodes.consolidate import consolidate
from everthread.nodes.distill_notes import distill_notes
from everthread.nodes.inject_memory import inject_memory
from everthread.nodes.model import amodel
from everthread.nodes.model import model as call_model
from everthread.nodes.summarize import asummarize, summarize
from everthread.nodes.tools import ToolRunner
from everthread.nodes.trim import trim
from everthread.nodes.wiring import Wiring
from everthread.state import Agent, Context, Input, Output, State
from everthread.state.marks import marks
from everthread.storage.open import Storage


def build_graph(
    agent: Agent = travel,
    *,
    model: BaseChatModel | str | None = None,
    summarizer: BaseChatModel | str | None = None,
    storage: Storage | None = None,
) -> CompiledStateGraph[State, Context, Input, Output]:
    """Build the graph of an agent.

    Args:
        agent: instructions, tools, profile schema and summary sections.
        model: a chat model or `provider:name`; None takes `EVERTHREAD_MODEL`, else the offline model.
        summarizer: writes summaries; None takes `model`.
        storage: an open database. Without one the graph is bare, as a LangGraph server requires,
            which brings its own checkpointer and store.

    Returns:
        A compiled graph. With `storage`, every run holds the lock of its thread.

    Raises:
        SettingsError: the model cannot be made; the message says what to set or install.
    """
    if not isinstance(agent, Agent):
        raise SettingsError(f"`agent` must be an Agent, such as everthread.agents.travel, got {agent!r}")
    chat = resolve(model)
    wiring = Wiring(
        agent=agent,
        model=chat,
        summarizer=chat if summarizer is None else resolve(summarizer),
        resolve=cache(resolve),
        name_of=tokenizer_name,
        read_tool_output=read_tool_output,
    )
    graph = _wired(wiring)
    if storage is None:
        return graph.compile(name=agent.name)
    compiled = graph.compile(checkpointer=storage.checkpointer, store=storage.store, name=agent.name)
    return ThreadGraph.locked(compiled, storage)


def _wired(wiring: Wiring) -> StateGraph[State, Context, Input, Output]:
    graph = StateGraph(State, context_schema=Context, input_schema=Input, output_schema=Output)
    graph.add_node("inject_memory", partial(inject_memory, wiring=wiring))
    graph.add_node("trim", partial(trim, wiring=wiring))
    graph.add_node("model", TwoFlavours("model", call_model, amodel, wiring))
    runner = ToolRunner(wiring)
    graph.add_node("tools", TwoFlavours("tools", runner.tools, runner.atools, wiring))
    graph.add_node("distill_notes", partial(distill_notes, wiring=wiring))
    graph.add_node("summarize", TwoFlavours("summarize", summarize, asummarize, wiring))
    graph.add_node("consolidate", partial(consolidate, wiring=wiring))

    graph.add_conditional_edges(START, after_start, ["inject_memory", "consolidate", END])
    graph.add_edge("inject_memory", "trim")
    graph.add_edge("trim", "model")
    graph.add_conditional_edges("model", after_model, ["tools", "trim", "distill_notes"])
    graph.add_edge("tools", "trim")
    graph.add_conditional_edges("distill_notes", after_distill_notes, ["summarize", "consolidate", END])
    graph.add_conditional_edges("summarize", after_summarize, ["consolidate", END])
    graph.add_edge("consolidate", END)
    return graph


def after_start(state: State) -> Literal["inject_memory", "consolidate", "__end__"]:
    """End the session at once when no new message came with the wish to end it.

    A client that sends a message again which has its answer already gets that answer: nothing runs.
    """
    messages = state.get("messages", [])
    if not any("at" not in marks(message) for message in messages):
        if state.get("end_session"):
            return "consolidate"
        if messages and messages[-1].type == "ai" and not messages[-1].tool_calls:
            return "__end__"
    return "inject_memory"


def after_model(state: State) -> Literal["tools", "trim", "distill_notes"]:
    """Go to the tools that the model called, back to trim after a refusal, on when there is a reply."""
    if state.get("overflows", 0) > 0:
        return "trim"
    last = state["messages"][-1]
    return "tools" if getattr(last, "tool_calls", None) else "distill_notes"


def after_distill_notes(state: State) -> Literal["summarize", "consolidate", "__end__"]:
    """Compact when the working set asks for it, then end the session when the caller does."""
    return "summarize" if state.get("is_full") else after_summarize(state)


def after_summarize(state: State) -> Literal["consolidate", "__end__"]:
    """End the session when the caller asked for it."""
    return "consolidate" if state.get("end_session") else "__end__"
