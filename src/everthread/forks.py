"""Fork a thread from one of its calls: go on from there, on a branch of its own."""

from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import RunnableConfig

from everthread.calls import prompt_at
from everthread.errors import SettingsError
from everthread.graph.guard import GuardedGraph, check_guarded
from everthread.graph.run import is_own
from everthread.ledger.events import Steered
from everthread.ledger.record import record
from everthread.storage.reading import record_of


@dataclass(frozen=True)
class Fork:
    """A branch that a thread goes on with."""

    thread_id: str
    call: str
    """Name of the call that is made again, or answered otherwise."""
    left_call: str
    """Name of the newest call of the branch that was left; a fork from it comes close to going back."""
    config: RunnableConfig
    """Of the new head."""


def fork(graph: GuardedGraph, thread_id: str, call: int | str, *, actor: str = "") -> Fork:
    """Go on from where a call was about to be made; what came after it stays as another branch.

    The turn is then without its answer: running the thread makes the call again, and a new message takes the place of
    the turn's answer. Notes and the ledger stay as they are.

    Args:
        graph: from `build_graph(…, storage=storage)`.
        call: its number from 1, from the end when negative, or its name in the ledger.
        actor: who asks for it, for the ledger; empty names the thread's user.

    Raises:
        NotFoundError: there is no such thread or call.
        SettingsError: the graph is not ours, or the checkpoints of the call are not kept any more.
        ThreadBusyError: a run kept the thread for longer than the lock's timeout.
    """
    if not is_own(check_guarded(graph).graph):
        raise SettingsError(
            "only a thread of `build_graph` or `pipeline` forks from a call; other graphs fork by `checkpoint_id`, "
            "as LangGraph's documentation shows"
        )
    storage, thread_id = graph.storage, str(thread_id)
    name = prompt_at(storage, thread_id, call).name
    latest: Any = {"configurable": {"thread_id": thread_id}}
    left = str(graph.get_state(latest).values.get("call", ""))
    # By name in the saved values: no checkpoint says which node wrote it.
    saved = storage.checkpointer.list({"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}})
    behind = [one for one in saved if one.checkpoint["channel_values"].get("call") == name]
    parent = min(behind, key=lambda one: str(one.checkpoint["id"])).parent_config if behind else None
    if parent is None or graph.get_state(parent).next != ("model",):
        raise SettingsError(
            f"call {name!r} of thread {thread_id!r} cannot be gone back to: its checkpoints were pruned "
            "(`keep_checkpoints`), or its run did not save every step (`durability`)"
        )
    config = graph.update_state(parent, None, as_node="trim")
    session = record_of(storage.store, thread_id) or {}
    event = Steered(action="fork", call=name, left_call=left, actor=actor or str(session.get("user_id") or ""))
    record(storage.store, thread_id, [event], turn=int(session.get("turns") or 0))
    return Fork(thread_id, name, left, config)


async def afork(graph: GuardedGraph, thread_id: str, call: int | str, *, actor: str = "") -> Fork:
    """Do what `fork` does without blocking the event loop."""
    return await graph.storage.worker.call(lambda: fork(graph, thread_id, call, actor=actor))
