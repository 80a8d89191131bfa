"""The consolidation job: end one session of a user, or all of their idle ones, from a thread of its own.

It never runs on the conversation's thread: a delayed job there would write over a live turn. It needs
only the store, so the conversation goes on meanwhile.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Annotated, Any

from langgraph.channels import UntrackedValue
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore
from pydantic import ConfigDict, Field, with_config
from typing_extensions import TypedDict

from everthread.errors import NotFoundError, SettingsError
from everthread.graph.ending import end_in_store
from everthread.nodes.deps import check_signed_in
from everthread.state import Agent, State, namespaces
from everthread.storage.open import Storage
from everthread.storage.reading import record_of, records

IDLE_MINUTES = 30
"""A session without activity for this long counts as over."""


@with_config(ConfigDict(title="Consolidation input"))
class ConsolidationInput(TypedDict, total=False):
    """Whose session to end, and which. Without a thread, every idle one of the user ends."""

    thread_id: Annotated[
        str | None,
        Field(
            default=None,
            title="Thread",
            description="Thread whose session ends, idle or not; empty: the user's idle ones. Never this run's own.",
        ),
    ]
    user_id: Annotated[
        str | None,
        Field(
            default=None, title="User", description="Whose sessions; no others are ended. Always needed on a server."
        ),
    ]
    idle_minutes: Annotated[
        float,
        Field(
            default=IDLE_MINUTES,
            ge=0,
            title="Idle minutes",
            description="Without a thread: end the sessions that had no activity for this many minutes.",
        ),
    ]


@with_config(ConfigDict(title="Consolidation output"))
class ConsolidationOutput(TypedDict, total=False):
    """What became of the sessions."""

    ended: Annotated[
        list[str],
        Field(default=[], title="Ended", description="Threads whose session notes are now long-term notes, or gone."),
    ]
    kept: Annotated[
        list[str],
        Field(
            default=[], title="Kept", description="Threads whose consolidation failed; their notes are as they were."
        ),
    ]


class ConsolidationState(State, ConsolidationOutput, total=False):
    """Input and output; the input is not kept, or the next run on this thread would find it again.

    The keys of a conversation are here for a run that is refused on one: its checkpoint would drop what it does not
    know.
    """

    thread_id: Annotated[str | None, UntrackedValue]
    user_id: Annotated[str | None, UntrackedValue]
    idle_minutes: Annotated[float, UntrackedValue]


ConsolidationGraph = CompiledStateGraph[ConsolidationState, None, ConsolidationInput, ConsolidationOutput]


def build_consolidation(
    storage: Storage | None = None, *, agents: Mapping[str, Agent] | None = None, everyone: bool = False
) -> ConsolidationGraph:
    """Build the graph of the job.

    Args:
        storage: an open database, whose locks let one process at a time change a user's notes. Without one
            the graph is bare, as a LangGraph server requires, and guards against its own process only.
        agents: by name, for the schemas of their users' profiles; others count as `recorded_agent` has them.
        everyone: whether a run may leave out `user_id` and end anybody's sessions. For a job of your own; whoever
            reaches a graph on a server could run it.
    """
    graph = StateGraph(
        ConsolidationState, input_schema=ConsolidationInput, output_schema=ConsolidationOutput, context_schema=None
    )
    graph.add_node("end_sessions", partial(end_sessions, agents=agents, everyone=everyone))
    graph.add_edge(START, "end_sessions")
    graph.add_edge("end_sessions", END)
    return graph.compile(name="consolidation", store=None if storage is None else storage.store)


def end_sessions(
    state: ConsolidationState,
    runtime: Runtime[None],
    agents: Mapping[str, Agent] | None = None,
    everyone: bool = False,
) -> ConsolidationOutput:
    """End the named session of a user, or every idle one.

    Raises:
        NotFoundError: the user has no such thread.
        SettingsError: no user is named, or another one than has signed in; the run is on a conversation's thread, or
            `idle_minutes` is no time.
    """
    store = runtime.store
    if store is None:
        raise SettingsError("this graph has no store, so there are no sessions to end; run it on a LangGraph server")
    thread_id, user_id = state.get("thread_id"), state.get("user_id")
    if not user_id and not everyone:
        raise SettingsError("whose sessions? name the user as `user_id`; no others are ended")
    if user_id:
        check_signed_in(runtime.server_info, user_id)
    _check_own_thread(store, runtime, thread_id)
    if thread_id:
        chosen = [_named(store, thread_id, user_id)]
    else:
        chosen = _idle(store, user_id or None, _idle_time(state.get("idle_minutes", IDLE_MINUTES)))
    done: ConsolidationOutput = {"ended": [], "kept": []}
    for record in chosen:
        agent, write = (agents or {}).get(str(record.get("agent"))), runtime.stream_writer
        ending = end_in_store(store, record["thread_id"], record["user_id"], agent, write=write)
        done["kept" if ending.failure else "ended"].append(ending.thread_id)
    return done


def _idle(store: BaseStore, user_id: str | None, idle: timedelta) -> list[dict[str, Any]]:
    """Return the records of open sessions without activity for some time, the longest idle first."""
    since = datetime.now(UTC) - idle
    return [
        record
        for record in reversed(records(store, user_id))
        if record["user_id"] is not None
        and int(record["turns"]) > int(record["consolidated_turns"])
        and datetime.fromisoformat(record["last_activity"]) <= since
    ]


def _named(store: BaseStore, thread_id: str, user_id: str | None) -> dict[str, Any]:
    record = record_of(store, thread_id)
    if record is None or record["user_id"] is None or (user_id and user_id != record["user_id"]):
        # One answer for both: whose a thread is is nobody else's business.
        whose = f"user {user_id!r} has no session on" if user_id else "there is no session on"
        raise NotFoundError(f"{whose} thread {thread_id!r}; check both ids")
    return record


def _check_own_thread(store: BaseStore, runtime: Runtime[None], named: str | None) -> None:
    """Refuse to run on a conversation's thread, named or not."""
    info = runtime.execution_info
    own = info.thread_id if info is not None else None
    if own and (own == named or store.get(namespaces.SESSIONS, own) is not None):
        raise SettingsError(
            f"consolidation cannot run on thread {own!r}, which is a conversation; start the run on a new thread"
        )


def _idle_time(minutes: object) -> timedelta:
    if isinstance(minutes, bool) or not isinstance(minutes, int | float) or not 0 <= minutes < 1e9:
        raise SettingsError(f"`idle_minutes` must be a number of minutes, 0 or more, got {minutes!r}")
    return timedelta(minutes=minutes)
