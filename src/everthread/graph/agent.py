"""Wire the nodes into a graph."""

from collections.abc import Hashable, Mapping
from dataclasses import replace
from functools import cache, partial
from typing import Any, Self, overload

from langchain_core.runnables import Runnable
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from everthread.errors import SettingsError
from everthread.graph import routing
from everthread.graph.guard import GuardedGraph
from everthread.graph.inputs import Intake
from everthread.graph.routing import Edge, Start
from everthread.memory.rules import BUILT_IN, Rules
from everthread.models.identity import provider, tokenizer_name
from everthread.models.provider import resolve
from everthread.models.wrapped import ChatModel, check_takes_tools
from everthread.nodes.consolidate import consolidate
from everthread.nodes.deps import ModelWithTools, NodeDeps
from everthread.nodes.distill_notes import distill_notes
from everthread.nodes.inject_memory import inject_memory
from everthread.nodes.model import model as call_model
from everthread.nodes.nested import ModelNode, run_joined
from everthread.nodes.refuse import refuse, report_refusal
from everthread.nodes.response_format import ResponseFormat
from everthread.nodes.second_opinion import judge
from everthread.nodes.spending import no_price
from everthread.nodes.summarize import summarize
from everthread.nodes.tools import tool_node
from everthread.nodes.trim import trim
from everthread.spend.prices import read_price_list
from everthread.state import Agent, Context, Conversation, Input, Output, Spend, State
from everthread.state.context import fixed_context
from everthread.state.schemas import with_answer, with_keys
from everthread.storage.open import Storage
from everthread.tools import READERS
from everthread.tools.save_memory_note import memory_tool, save_memory_note


@overload
def build_graph(
    agent: Agent | None = None,
    *,
    model: ChatModel | str | None = None,
    summarizer: ChatModel | str | None = None,
    response_format: Any = None,
    state_schema: type[Any] | None = None,
    storage: None = None,
    fixed: Mapping[str, Any] | None = None,
    spend: Spend | None = None,
) -> CompiledStateGraph[State, Context, Input, Output]: ...


@overload
def build_graph(
    agent: Agent | None = None,
    *,
    model: ChatModel | str | None = None,
    summarizer: ChatModel | str | None = None,
    response_format: Any = None,
    state_schema: type[Any] | None = None,
    storage: Storage,
    fixed: Mapping[str, Any] | None = None,
    spend: Spend | None = None,
) -> GuardedGraph: ...


def build_graph(
    agent: Agent | None = None,
    *,
    model: ChatModel | str | None = None,
    summarizer: ChatModel | str | None = None,
    response_format: Any = None,
    state_schema: type[Any] | None = None,
    storage: Storage | None = None,
    fixed: Mapping[str, Any] | None = None,
    spend: Spend | None = None,
) -> CompiledStateGraph[State, Context, Input, Output] | GuardedGraph:
    """Build the graph of an agent.

    Args:
        agent: instructions, tools, profile schema and summary sections; None takes the travel concierge.
        model: a chat model, also with wrappers such as `.with_retry()`, or `provider:name`; None takes
            `EVERTHREAD_MODEL`, else the offline model.
        summarizer: writes summaries; None takes `model`.
        response_format: schema of the answers, which a run returns as `structured_response`: a Pydantic model, a
            dataclass, a TypedDict, a JSON Schema, or LangChain's `ToolStrategy` or `ProviderStrategy` of one.
        state_schema: a TypedDict with state keys of your own, which a run takes, keeps and returns beside ours.
        storage: an open database. Without one the graph is bare, as a LangGraph server requires,
            which brings its own checkpointer and store.
        fixed: dials that a run may not set, with their values, such as `{"model": None, "window": 16_000}`: for
            clients who are not to choose what your key pays for.
        spend: counts what calls cost and asks before a limit is passed; None takes that of `agent`.

    Returns:
        A compiled graph; with `storage`, one whose runs hold the lock of their thread and are the owner's alone.

    Raises:
        SettingsError: the model cannot be made, a fixed dial is none, or a state key has a name of ours; the message
            says what to set or install.
    """
    if storage is not None and not isinstance(storage, Storage):
        raise SettingsError(
            "`storage` must be open: `with open_storage(url) as storage: build_graph(agent, storage=storage)`, "
            f"got {type(storage).__name__}"
        )
    agent = ready_agents()["travel"] if agent is None else agent
    graph = pipeline(
        agent,
        model=model,
        summarizer=summarizer,
        response_format=response_format,
        state_schema=state_schema,
        fixed=fixed,
        spend=spend,
    )
    if storage is None:
        return graph.compile(name=agent.name)
    return storage.guard(graph.compile(checkpointer=storage.checkpointer, store=storage.store, name=agent.name))


def pipeline(
    agent: Agent | None = None,
    *,
    model: ChatModel | str | None = None,
    summarizer: ChatModel | str | None = None,
    response_format: Any = None,
    state_schema: type[Any] | None = None,
    fixed: Mapping[str, Any] | None = None,
    spend: Spend | None = None,
    after: str = START,
    before: str = END,
) -> StateGraph[State, Context, Input, Output]:
    """Return the graph of an agent before it is compiled, to add nodes, edges and subgraphs of your own.

    Then `storage.guard(graph.compile(checkpointer=storage.checkpointer, store=storage.store))` gives what
    `build_graph` gives.

    Args:
        agent: as in `build_graph`, like the other arguments.
        after: a node of yours, behind which the agent's first node comes.
        before: a node of yours that comes when the turn is answered, where the graph would end.

    Returns:
        A graph whose nodes are named for what they do, such as `inject_memory`, `model` and `tools`.

    Raises:
        SettingsError: as in `build_graph`.
    """
    agent = ready_agents()["travel"] if agent is None else agent
    if not isinstance(agent, Agent):
        raise SettingsError(f"`agent` must be an Agent, such as everthread.agents.travel, got {agent!r}")
    if spend is not None:
        agent = replace(agent, spend=spend)
    chat = check_takes_tools(resolve(model))
    response = None if response_format is None else ResponseFormat(response_format)
    deps = node_deps(agent, chat, chat if summarizer is None else resolve(summarizer), response)
    deps = replace(deps, dials=fixed_context(fixed or {}))
    return _wire_nodes(deps, state_schema, after, before)


def ready_agents() -> Mapping[str, Agent]:
    """Return the ready agents by name; imported when asked for, so that the core does without them."""
    from everthread.agents import AGENTS

    return AGENTS


def recorded_agent(record: Mapping[str, Any]) -> Agent:
    """Return the agent of a thread's record.

    One that is not ours has left only its name: it stands without tools and without a profile schema.
    """
    agents = ready_agents()
    travel = agents["travel"]
    recorded = str(record.get("agent", travel.name))
    return agents.get(recorded) or replace(travel, name=recorded, tools=(), profile=None)


def node_deps(
    agent: Agent,
    model: ChatModel,
    summarizer: ChatModel | None = None,
    response: ResponseFormat | None = None,
) -> NodeDeps:
    """Return what the nodes of a graph share.

    Raises:
        SettingsError: the schema of the answers has the name of a tool.
    """
    taken = {tool.name for tool in (*agent.tools, *READERS)}
    if response and (same := sorted(taken & {tool.name for tool in response.tools})):
        raise SettingsError(f"`response_format` has the name of the tool {same[0]!r}; give the schema another name")
    rules = Rules(agent.rules) if agent.rules else BUILT_IN

    def with_tools(chat: ChatModel) -> ModelWithTools:
        # Of the agent as it is when this is called: below it gets a tool of its own to save notes.
        return ModelWithTools.of(chat, agent.tools, READERS, response=response)

    # A client keeps its connections open, so one is made per name and not per run.
    named_model = cache(lambda name: with_tools(resolve(name)))
    deps = NodeDeps(agent, with_tools(model), model if summarizer is None else summarizer, named_model, rules=rules)
    if agent.spend is not None:
        deps = priced(deps, agent.spend)
    own = memory_tool(rules, partial(judge, deps=deps))
    agent = replace(agent, tools=[own if tool is save_memory_note else tool for tool in agent.tools])
    return replace(deps, agent=agent, model=with_tools(model))


def priced(deps: NodeDeps, spend: Spend) -> NodeDeps:
    """Return what nodes share, with the prices that `spend` counts by.

    Raises:
        SettingsError: the file of prices cannot be read, or there is a limit and the model has no price.
    """
    prices, model = read_price_list(spend.price_file), deps.model
    if spend.limits and prices.find(model.provider, model.name) is None:
        raise SettingsError(no_price(model.provider, model.name))
    name = tokenizer_name(deps.summarizer) or "unknown"
    return replace(deps, prices=prices, summarizer_name=(provider(deps.summarizer), name))


class _Pipeline(StateGraph[State, Context, Input, Output]):
    """A graph whose subgraphs see the messages and the user's own keys, and nothing else of ours.

    A subgraph saves what it is given in its first checkpoint, and the plan of a turn is never to be saved.
    """

    shown: type[Any] | None = None
    deps: NodeDeps
    """What its nodes share, for those who ask what they would do."""

    def add_node(self, node: Any, action: Any = None, *, input_schema: Any = None, **options: Any) -> Self:
        """Add a node; see LangGraph."""
        if input_schema is None and isinstance(node if action is None else action, Runnable):
            input_schema = self.shown
        return super().add_node(node, action, input_schema=input_schema, **options)

    def compile(self, *args: Any, **options: Any) -> CompiledStateGraph[State, Context, Input, Output]:
        """Compile it; see LangGraph."""
        graph = super().compile(*args, **options)
        graph.nodes[START].bound = Intake()
        return graph


def _wire_nodes(
    deps: NodeDeps, state_schema: type[Any] | None, after: str, before: str
) -> StateGraph[State, Context, Input, Output]:
    """Add the nodes of a graph, and what comes after each."""
    ours = (State, Input, Output, Conversation)
    state, sent, returned, shown = (with_keys(schema, state_schema) for schema in ours)
    if deps.response is not None:
        state, returned, shown = (with_answer(schema, deps.response.types) for schema in (state, returned, shown))
    graph = _Pipeline(state, context_schema=deps.dials, input_schema=sent, output_schema=returned)
    graph.shown, graph.deps = shown, deps

    def add(name: str, node: Any) -> None:
        graph.add_node(name, node, input_schema=state)

    add("inject_memory", run_joined(inject_memory, deps))
    add("trim", run_joined(trim, deps))
    add("model", ModelNode(call_model, deps))
    add("tools", tool_node(deps))
    add("distill_notes", ModelNode(distill_notes, deps))
    add("summarize", ModelNode(summarize, deps))
    add("consolidate", ModelNode(consolidate, deps))
    add("refuse", refuse)
    add("report_refusal", report_refusal)

    def to(*names: str) -> dict[Hashable, str]:
        return {name: before if name == END else name for name in names}

    answered = ("summarize", "consolidate", END)
    decide = graph.add_conditional_edges
    decide(after, Start(routing.after_start), to("refuse", "inject_memory", "consolidate", END))
    graph.add_edge("refuse", "report_refusal")
    decide("inject_memory", Edge(routing.before_model, deps=deps), to("trim", "model"))
    graph.add_edge("trim", "model")
    decide("model", Edge(routing.after_model, deps=deps), to("tools", "trim", "distill_notes", *answered))
    decide("tools", Edge(routing.after_tools, deps=deps), to("trim", "model", "distill_notes", "consolidate", END))
    decide("distill_notes", Edge(routing.after_reply, deps=deps), to(*answered))
    decide("summarize", Edge(routing.end_turn), to("consolidate", END))
    graph.add_edge("consolidate", before)
    graph.add_edge("report_refusal", before)
    return graph
