"""The contenders: each one set up as its documentation does, for the same window, model, tools and database."""

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, SystemMessage
from langchain_core.tools import BaseTool

# Traces would be sent to a server, and no contender should pay for that.
os.environ.setdefault("LANGSMITH_TRACING", "false")

_CONFIG: Any = {"configurable": {"thread_id": "bench"}, "recursion_limit": 10_000}


@dataclass(frozen=True)
class Setup:
    """What a contender is given."""

    path: Path
    """Database file, new."""
    model: BaseChatModel
    summarizer: BaseChatModel
    tools: Sequence[BaseTool]
    instructions: str
    window: int
    durability: str


@dataclass
class Running:
    """A contender with one open thread."""

    ask: Callable[[str], object]
    """Runs one turn."""
    readable: Callable[[], Sequence[BaseMessage]]
    """Returns all messages of the thread that can still be read through the contender's own interface."""
    where: str
    """What `readable` reads."""
    settings: dict[str, Any] = field(default_factory=dict)


Contender = Callable[[Setup], AbstractContextManager[Running]]


@contextmanager
def everthread(setup: Setup) -> Iterator[Running]:
    """Everthread without automatic recall, which no peer has; all other dials but the window are defaults."""
    with _everthread(setup, recall_tokens=0) as running:
        yield running


@contextmanager
def everthread_recalling(setup: Setup) -> Iterator[Running]:
    """Everthread with the defaults of every dial but the window: it recalls what the current question asks for."""
    with _everthread(setup) as running:
        yield running


@contextmanager
def _everthread(setup: Setup, **dials: Any) -> Iterator[Running]:
    from everthread import Agent, Context, build_graph, open_storage
    from everthread.storage.transcript import transcript

    agent = Agent(name="bench", title="Benchmark", instructions=setup.instructions, tools=list(setup.tools))
    context = Context(user_id="bench", window=setup.window, **dials)
    with open_storage(f"sqlite:///{setup.path}") as storage:
        graph = build_graph(agent, model=setup.model, summarizer=setup.summarizer, storage=storage)
        yield Running(
            ask=_asks(graph, setup, context=context),
            readable=lambda: transcript(storage.store, "bench", graph.get_state(_CONFIG).values["messages"]),
            where="transcript",
            settings={"context": {"window": setup.window, **dials}, "everything else": "defaults"},
        )


@contextmanager
def summarization(setup: Setup) -> Iterator[Running]:
    """langchain's agent with `SummarizationMiddleware`; `keep` and `trim_tokens_to_summarize` are its defaults."""
    from langchain.agents import create_agent
    from langchain.agents.middleware import SummarizationMiddleware

    trigger = ("fraction", 0.8)
    middleware = SummarizationMiddleware(model=setup.model, trigger=trigger, summarizer=setup.summarizer)
    with _saver(setup) as saver:
        graph = create_agent(
            setup.model,
            list(setup.tools),
            system_prompt=setup.instructions,
            middleware=[middleware],
            checkpointer=saver,
        )
        settings = {"trigger": trigger, "keep": middleware.keep, "trim": middleware.trim_tokens_to_summarize}
        yield _running(graph, setup, settings)


@contextmanager
def context_editing(setup: Setup) -> Iterator[Running]:
    """langchain's agent with `ContextEditingMiddleware`; the default trigger is half of a window of 200,000."""
    from langchain.agents import create_agent
    from langchain.agents.middleware import ClearToolUsesEdit, ContextEditingMiddleware

    edit = ClearToolUsesEdit(trigger=setup.window // 2)
    with _saver(setup) as saver:
        graph = create_agent(
            setup.model,
            list(setup.tools),
            system_prompt=setup.instructions,
            middleware=[ContextEditingMiddleware(edits=[edit])],
            checkpointer=saver,
        )
        yield _running(graph, setup, {"trigger": edit.trigger, "keep": edit.keep})


@contextmanager
def deepagents(setup: Setup) -> Iterator[Running]:
    """A deep agent with its own defaults, which it takes from the model's profile; only the summariser is another."""
    from deepagents import create_deep_agent
    from deepagents.backends import StateBackend
    from deepagents.middleware.summarization import compute_summarization_defaults, create_summarization_middleware

    backend = StateBackend()
    replaced = create_summarization_middleware(setup.model, backend, summarizer=setup.summarizer)
    with _saver(setup) as saver:
        graph = create_deep_agent(
            setup.model,
            list(setup.tools),
            system_prompt=setup.instructions,
            middleware=[replaced],
            backend=backend,
            checkpointer=saver,
        )
        yield _running(graph, setup, dict(compute_summarization_defaults(setup.model)))


@contextmanager
def langmem(setup: Setup) -> Iterator[Running]:
    """A loop with langmem's `SummarizationNode` ahead of the model, at 80 % of the window."""
    from langgraph.graph import MessagesState, StateGraph
    from langmem.short_term import SummarizationNode

    class State(MessagesState):
        context: dict[str, Any]
        summarized_messages: list[Any]

    limit = int(setup.window * 0.8)
    node = SummarizationNode(model=setup.summarizer, max_tokens=limit)
    bound = setup.model.bind_tools(list(setup.tools))

    def call_model(state: State) -> dict[str, Any]:
        return {"messages": [bound.invoke([SystemMessage(setup.instructions), *state["summarized_messages"]])]}

    graph = StateGraph(State)
    graph.add_node("summarize", node)
    with _saver(setup) as saver:
        compiled = _loop(graph, call_model, setup, before="summarize").compile(checkpointer=saver)
        settings = {"max_tokens": limit, "max_summary_tokens": node.max_summary_tokens}
        yield _running(compiled, setup, settings)


@contextmanager
def plain(setup: Setup) -> Iterator[Running]:
    """A model and its tools in a loop on LangGraph, with `add_messages` and nothing else."""
    from langgraph.graph import MessagesState, StateGraph

    bound = setup.model.bind_tools(list(setup.tools))

    def call_model(state: MessagesState) -> dict[str, Any]:
        return {"messages": [bound.invoke([SystemMessage(setup.instructions), *state["messages"]])]}

    with _saver(setup) as saver:
        compiled = _loop(StateGraph(MessagesState), call_model, setup).compile(checkpointer=saver)
        yield _running(compiled, setup, {})


CONTENDERS: dict[str, Contender] = {
    "everthread": everthread,
    "everthread, recalling": everthread_recalling,
    "SummarizationMiddleware": summarization,
    "ContextEditingMiddleware": context_editing,
    "deepagents": deepagents,
    "langmem": langmem,
    "langgraph": plain,
}

PACKAGES = (
    "everthread",
    "langgraph",
    "langgraph-checkpoint",
    "langgraph-checkpoint-sqlite",
    "langchain-core",
    "langchain",
    "deepagents",
    "langmem",
    "tiktoken",
)
"""Whose versions stand next to the results."""


@contextmanager
def _saver(setup: Setup) -> Iterator[Any]:
    """Open the stock saver with Everthread's pragmas, so that no difference comes from how often SQLite syncs."""
    from langgraph.checkpoint.sqlite import SqliteSaver

    with closing(sqlite3.connect(setup.path, check_same_thread=False)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        saver = SqliteSaver(connection)
        saver.setup()
        yield saver


def _loop(graph: Any, call_model: Callable[..., dict[str, Any]], setup: Setup, *, before: str | None = None) -> Any:
    from langgraph.graph import START
    from langgraph.prebuilt import ToolNode, tools_condition

    graph.add_node("model", call_model)
    graph.add_node("tools", ToolNode(list(setup.tools)))
    entry = before or "model"
    graph.add_edge(START, entry)
    if before:
        graph.add_edge(before, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", entry)
    return graph


def _running(graph: Any, setup: Setup, settings: dict[str, Any]) -> Running:
    return Running(
        ask=_asks(graph, setup),
        readable=lambda: graph.get_state(_CONFIG).values["messages"],
        where="state",
        settings=settings,
    )


def _asks(graph: Any, setup: Setup, **options: Any) -> Callable[[str], object]:
    def ask(text: str) -> object:
        message = {"messages": [{"role": "user", "content": text}]}
        return graph.invoke(message, _CONFIG, durability=setup.durability, **options)

    return ask
