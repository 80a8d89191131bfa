"""The contenders: each one set up as its documentation does, for the same window, model, tools and database."""

import asyncio
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, SystemMessage, message_to_dict, messages_from_dict
from langchain_core.tools import BaseTool

from longrun.databases import connect, keep_newest_checkpoint, open_saver, open_store

# Traces would be sent to a server, and no contender should pay for that.
os.environ.setdefault("LANGSMITH_TRACING", "false")

_TURNS_BETWEEN_PRUNINGS = 16
"""Turns of a thread from one pruning to the next, as often as Everthread prunes."""


@dataclass(frozen=True)
class Setup:
    """What every contender gets."""

    path: Path
    """Database file, new."""
    model: BaseChatModel
    summarizer: BaseChatModel
    tools: Sequence[BaseTool]
    instructions: str
    window: int
    durability: str
    """`default` for the contender's own."""
    runner: asyncio.Runner | None = None
    """Runs `ainvoke`; None for `invoke`."""

    @contextmanager
    def entered(self, resource: AbstractAsyncContextManager[Any]) -> Iterator[Any]:
        """Keep an asynchronous resource open."""
        assert self.runner is not None
        value = self.runner.run(resource.__aenter__())
        try:
            yield value
        finally:
            self.runner.run(resource.__aexit__(None, None, None))


class Running:
    """A contender with an open database, called with `invoke`, or with `ainvoke` when the setup has a runner."""

    def __init__(self, graph: Any, setup: Setup, settings: dict[str, Any], **options: Any) -> None:
        self.graph = graph
        self.settings = settings
        self.where = "state"
        """What `readable` reads."""
        self.readable: Callable[[str], Sequence[BaseMessage]] = self.messages
        """Returns all messages of a thread that can still be read through the contender's own interface."""
        self.after_turn: Callable[[str], None] | None = None
        self._runner = setup.runner
        self._options = options if setup.durability == "default" else {"durability": setup.durability, **options}

    def ask(self, thread_id: str, text: str) -> None:
        """Run one turn."""
        self.graph.invoke(_user(text), _config(thread_id), **self._options)
        if self.after_turn:
            self.after_turn(thread_id)

    async def aask(self, thread_id: str, text: str) -> None:
        """Run one turn on the event loop."""
        await self.graph.ainvoke(_user(text), _config(thread_id), **self._options)
        if self.after_turn:
            await asyncio.to_thread(self.after_turn, thread_id)

    def messages(self, thread_id: str) -> Sequence[BaseMessage]:
        """Return the messages in the state."""
        config = _config(thread_id)
        state = self._runner.run(self.graph.aget_state(config)) if self._runner else self.graph.get_state(config)
        messages: Sequence[BaseMessage] = state.values["messages"]
        return messages


Contender = Callable[[Setup], AbstractContextManager[Running]]


@contextmanager
def everthread(setup: Setup, **dials: Any) -> Iterator[Running]:
    """Everthread's own graph; all dials but the window and those that are given are defaults."""
    from everthread import Agent, Context, build_graph, open_storage
    from everthread.storage.transcript import transcript

    agent = Agent(name="bench", title="Benchmark", instructions=setup.instructions, tools=list(setup.tools))
    context = Context(user_id="bench", window=setup.window, **dials)
    url = f"sqlite:///{setup.path}"
    with open_storage(url) as storage:
        graph = build_graph(agent, model=setup.model, summarizer=setup.summarizer, storage=storage)
        settings = {"context": {"window": setup.window, **dials}, "everything else": "defaults"}
        running = Running(graph, setup, settings, context=context)
        running.readable = lambda thread_id: transcript(storage.store, thread_id, running.messages(thread_id))
        running.where = "transcript"
        yield running


@contextmanager
def middleware(setup: Setup, *, is_delta: bool = False) -> Iterator[Running]:
    """langchain's agent with `EverthreadMiddleware`, without automatic recall.

    Args:
        setup: what every contender gets.
        is_delta: take `EverthreadState`, whose checkpoints hold what is new.
    """
    from everthread import EverthreadMiddleware, EverthreadState, open_storage
    from everthread.nodes.thread_view import thread_messages
    from everthread.storage.transcript import transcript

    dials = {"window": setup.window, "recall_tokens": 0}
    with open_storage(f"sqlite:///{setup.path}") as storage:
        schema = EverthreadState if is_delta else None
        ours = EverthreadMiddleware(summarizer=setup.summarizer, **dials)
        agent = _agent(setup, ours, checkpointer=storage.checkpointer, store=storage.store, state_schema=schema)
        guarded = storage.guard(agent).with_config({"configurable": {"user_id": "bench"}})
        running = Running(guarded, setup, {"dials": dials, "everything else": "defaults"})
        running.readable = lambda thread_id: transcript(
            storage.store, thread_id, thread_messages(storage.store, thread_id, running.messages(thread_id))
        )
        running.where = "transcript"
        yield running


@contextmanager
def summarization(setup: Setup) -> Iterator[Running]:
    """langchain's agent with `SummarizationMiddleware`; `keep` and `trim_tokens_to_summarize` are its defaults."""
    from langchain.agents.middleware import SummarizationMiddleware

    middleware = SummarizationMiddleware(setup.model, trigger=("fraction", 0.8), summarizer=setup.summarizer)
    with open_saver(setup) as saver:
        yield Running(_agent(setup, middleware, checkpointer=saver), setup, _summary_settings(middleware))


@contextmanager
def summarization_archiving(setup: Setup) -> Iterator[Running]:
    """The same, which also keeps what it removes in LangGraph's own store, and prunes old checkpoints."""
    from langchain.agents.middleware import SummarizationMiddleware
    from langgraph.store.base import PutOp

    def removed(state: Any, update: Any, thread_id: str) -> list[PutOp]:
        kept = {message.id for message in update["messages"]}
        namespace = ("threads", thread_id, "transcript")
        return [
            PutOp(namespace, str(message.id), message_to_dict(message))
            for message in state["messages"]
            if message.id not in kept
        ]

    class Archiving(SummarizationMiddleware):
        def before_model(self, state: Any, runtime: Any) -> Any:
            update = super().before_model(state, runtime)
            if update:
                runtime.store.batch(removed(state, update, runtime.execution_info.thread_id))
            return update

        async def abefore_model(self, state: Any, runtime: Any) -> Any:
            update = await super().abefore_model(state, runtime)
            if update:
                await runtime.store.abatch(removed(state, update, runtime.execution_info.thread_id))
            return update

    middleware = Archiving(setup.model, trigger=("fraction", 0.8), summarizer=setup.summarizer)
    with open_saver(setup) as saver, open_store(setup) as store, closing(connect(setup.path)) as connection:
        running = Running(
            _agent(setup, middleware, checkpointer=saver, store=store), setup, _summary_settings(middleware)
        )
        turns, lock = Counter[str](), threading.Lock()

        def prune(thread_id: str) -> None:
            with lock:
                turns[thread_id] += 1
                if turns[thread_id] % _TURNS_BETWEEN_PRUNINGS == 0:
                    keep_newest_checkpoint(connection, thread_id)

        def readable(thread_id: str) -> Sequence[BaseMessage]:
            query: Any = {"limit": 1_000_000}
            namespace = ("threads", thread_id, "transcript")
            items = (
                setup.runner.run(store.asearch(namespace, **query))
                if setup.runner
                else store.search(namespace, **query)
            )
            archive = messages_from_dict([item.value for item in items])
            return [*archive, *running.messages(thread_id)]

        running.after_turn = prune
        running.readable = readable
        running.where = "store and state"
        yield running


def _agent(setup: Setup, middleware: Any, **more: Any) -> Any:
    from langchain.agents import create_agent

    return create_agent(
        setup.model, list(setup.tools), system_prompt=setup.instructions, middleware=[middleware], **more
    )


def _summary_settings(middleware: Any) -> dict[str, Any]:
    return {"trigger": middleware.trigger, "keep": middleware.keep, "trim": middleware.trim_tokens_to_summarize}


@contextmanager
def context_editing(setup: Setup) -> Iterator[Running]:
    """langchain's agent with `ContextEditingMiddleware`; the default trigger is half of a window of 200,000."""
    from langchain.agents.middleware import ClearToolUsesEdit, ContextEditingMiddleware

    edit = ClearToolUsesEdit(trigger=setup.window // 2)
    with open_saver(setup) as saver:
        graph = _agent(setup, ContextEditingMiddleware(edits=[edit]), checkpointer=saver)
        yield Running(graph, setup, {"trigger": edit.trigger, "keep": edit.keep})


@contextmanager
def deepagents(setup: Setup) -> Iterator[Running]:
    """A deep agent with its own defaults, which it takes from the model's profile; only the summariser is another."""
    from deepagents import create_deep_agent
    from deepagents.backends import StateBackend
    from deepagents.middleware.summarization import compute_summarization_defaults, create_summarization_middleware

    backend = StateBackend()
    replaced = create_summarization_middleware(setup.model, backend, summarizer=setup.summarizer)
    with open_saver(setup) as saver:
        graph = create_deep_agent(
            setup.model,
            list(setup.tools),
            system_prompt=setup.instructions,
            middleware=[replaced],
            backend=backend,
            checkpointer=saver,
        )
        yield Running(graph, setup, dict(compute_summarization_defaults(setup.model)))


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
    with open_saver(setup) as saver:
        compiled = _loop(graph, call_model, setup, before="summarize").compile(checkpointer=saver)
        yield Running(compiled, setup, {"max_tokens": limit, "max_summary_tokens": node.max_summary_tokens})


@contextmanager
def plain(setup: Setup) -> Iterator[Running]:
    """A model and its tools in a loop on LangGraph, with `add_messages` and nothing else."""
    from langgraph.graph import MessagesState, StateGraph

    bound = setup.model.bind_tools(list(setup.tools))

    def call_model(state: MessagesState) -> dict[str, Any]:
        return {"messages": [bound.invoke([SystemMessage(setup.instructions), *state["messages"]])]}

    with open_saver(setup) as saver:
        compiled = _loop(StateGraph(MessagesState), call_model, setup).compile(checkpointer=saver)
        yield Running(compiled, setup, {})


OURS = "everthread"
OURS_DEFAULTS = "everthread, every default"
JOINED = "create_agent + everthread"
JOINED_DELTA = "create_agent + everthread, EverthreadState"

CONTENDERS: dict[str, Contender] = {
    # No peer has automatic recall.
    OURS: partial(everthread, recall_tokens=0),
    OURS_DEFAULTS: everthread,
    JOINED: middleware,
    JOINED_DELTA: partial(middleware, is_delta=True),
    "SummarizationMiddleware": summarization,
    "SummarizationMiddleware, archiving": summarization_archiving,
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


def _user(text: str) -> Any:
    return {"messages": [{"role": "user", "content": text}]}


def _config(thread_id: str) -> Any:
    return {"configurable": {"thread_id": thread_id}, "recursion_limit": 10_000}
