"""Which threads the agents of today could not continue, and why; nothing is changed."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import StateSnapshot

from everthread.errors import EverthreadError, SettingsError
from everthread.graph.agent import build_graph
from everthread.graph.guard import GuardedGraph
from everthread.graph.inputs import can_take_saved
from everthread.graph.run import is_own
from everthread.graph.schema_changes import StateSchema
from everthread.nodes.deps import NodeDeps
from everthread.profiles import get_profile, valid_profile
from everthread.state import Agent
from everthread.storage.open import Storage
from everthread.storage.reader import Reader
from everthread.storage.reading import records

AgentLike = Agent | GuardedGraph | StateGraph[Any, Any, Any, Any] | CompiledStateGraph[Any, Any, Any, Any]
"""An agent, or a graph, which knows its state keys and nodes too."""


@dataclass(frozen=True)
class Problem:
    """What an agent of today has no place for in a thread."""

    kind: Literal["step", "tool", "version", "migration", "unreadable", "input", "key", "profile"]
    detail: str
    stops: bool
    """Whether the thread cannot go on as it was going to."""


@dataclass(frozen=True)
class ThreadCheck:
    """A thread, and what an agent of today would make of it."""

    thread_id: str
    user_id: str | None
    agent: str
    problems: tuple[Problem, ...]

    @property
    def can_continue(self) -> bool:
        """Whether nothing stops it."""
        return not any(one.stops for one in self.problems)

    def as_json(self) -> dict[str, Any]:
        """Return it as one JSON object."""
        return {**asdict(self), "can_continue": self.can_continue}


@dataclass(frozen=True)
class ThreadChecks:
    """All threads of a database."""

    checked: tuple[ThreadCheck, ...]
    """Those of the agents, the latest activity first."""
    others: Mapping[str, int]
    """Threads of agents that were not given, by the agent's name."""
    foreign: int
    """Threads with a record that another graph wrote, with our middleware or a guard."""

    def as_json(self) -> dict[str, Any]:
        """Return it as one JSON object, with the threads that have a problem."""
        return {
            "ok": all(one.can_continue for one in self.checked),
            "checked": len(self.checked),
            "threads": [one.as_json() for one in self.checked if one.problems],
            "other_agents": dict(self.others),
            "foreign": self.foreign,
        }


def check_threads(
    storage: Storage,
    agents: Iterable[AgentLike],
    *,
    progress: Callable[[str, int, int], None] = lambda step, done, total: None,
) -> ThreadChecks:
    """Tell which threads the agents of today could not continue, and what they have no place for.

    Args:
        agents: each for the threads that have its name in their record. An agent knows its tools and its migrations;
            one with state keys or nodes of your own is given as its graph, which knows these too.

    Raises:
        SettingsError: a graph is not of `build_graph` or `pipeline`.
    """
    graphs = {str(graph.name): graph for graph in (graph_on(storage, one) for one in agents)}
    if not all(is_own(graph.graph) for graph in graphs.values()):
        raise SettingsError("only agents and graphs of `build_graph` or `pipeline` can be checked")
    reader, every = Reader(storage.tables), records(storage.store)
    checked: list[ThreadCheck] = []
    others: Counter[str] = Counter()
    foreign = 0
    for place, record in enumerate(every):
        progress("checking threads", place, len(every))
        thread_id, name = str(record["thread_id"]), str(record.get("agent", ""))
        if not reader.is_ours(thread_id):
            foreign += 1
        elif name not in graphs:
            others[name] += 1
        else:
            problems = tuple(_problems(storage, reader, graphs[name], record))
            checked.append(ThreadCheck(thread_id, record.get("user_id"), name, problems))
    return ThreadChecks(tuple(checked), others, foreign)


async def acheck_threads(storage: Storage, agents: Iterable[AgentLike]) -> ThreadChecks:
    """Do what `check_threads` does without blocking the event loop."""
    return await asyncio.to_thread(check_threads, storage, agents)


def graph_on(storage: Storage, one: AgentLike) -> GuardedGraph:
    """Return the graph of an agent, or a graph, on a storage, whatever it was compiled with."""
    if isinstance(one, Agent):
        return build_graph(one, model="offline", storage=storage)
    kept: Any = {"checkpointer": storage.checkpointer, "store": storage.store}
    if isinstance(one, StateGraph):
        deps = getattr(one, "deps", None)
        compiled = one.compile(**kept, name=deps.agent.name if isinstance(deps, NodeDeps) else None)
    else:
        compiled = (one.graph if isinstance(one, GuardedGraph) else one).copy(kept)
    return storage.guard(compiled)


def _problems(storage: Storage, reader: Reader, graph: GuardedGraph, record: Mapping[str, Any]) -> Iterator[Problem]:
    thread_id, user_id = str(record["thread_id"]), record.get("user_id")
    config: RunnableConfig = {"configurable": {"thread_id": thread_id}}
    deps: NodeDeps = graph.builder.deps
    try:
        snapshot, stored = graph.get_state(config), reader.state(thread_id)
        if (stored.is_unfinished or stored.asked) and not snapshot.tasks:
            yield Problem("step", "it waits in a step that the agent no longer has; a new message gives that up", True)
        if not can_take_saved(graph.graph, snapshot):
            yield Problem("input", "what was sent last is none that the graph can take; it will be left out", False)
        yield from _calls(snapshot, deps)
        yield from _state(storage, graph, snapshot)
    except EverthreadError as error:
        yield Problem("unreadable", str(error), True)
    profile = get_profile(storage, str(user_id)) if user_id else None
    try:
        valid_profile(profile or {}, deps.agent if profile else None)
    except SettingsError as error:
        yield Problem("profile", f"of the user, which stays as it is: {error}", False)


def _calls(snapshot: StateSnapshot, deps: NodeDeps) -> Iterator[Problem]:
    """Yield the open calls of tools that are gone."""
    messages = snapshot.values.get("messages") or []
    newest = next((one for one in reversed(messages) if isinstance(one, AIMessage)), None)
    if newest is None or not snapshot.tasks:
        return
    answered = {one.tool_call_id for one in messages if isinstance(one, ToolMessage)}
    answers = deps.response.tools if deps.response else []
    known = {tool.name for tool in (*deps.tools, *answers)} | set(deps.agent.renamed_tools)
    for name in dict.fromkeys(call["name"] for call in newest.tool_calls if call["id"] not in answered):
        if name not in known:
            detail = f"an open call of the tool {name!r}, which is gone; `renamed_tools` says what it is called now"
            yield Problem("tool", detail, True)


def _state(storage: Storage, graph: GuardedGraph, snapshot: StateSnapshot) -> Iterator[Problem]:
    """Yield what becomes of state keys that changed."""
    schema = StateSchema(graph.graph)
    saved = schema.checkpointer.get_tuple(snapshot.config) if snapshot.metadata is not None else None
    if saved is None:
        return
    try:
        change = schema.change(storage, saved)
    except SettingsError as error:
        kind: Any = "version" if schema.is_older_than(saved.metadata) else "migration"
        yield Problem(kind, str(error), True)
        return
    for name in sorted(change.kept):
        yield Problem("key", f"the state key {name!r}, which is gone; its value is kept", False)
