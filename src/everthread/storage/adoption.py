"""Threads of other graphs: what they hold, and how our own graph gets a thread with their messages.

Nothing here writes to a thread of another graph. It goes on as it is in its own graph, with our middleware or without.
"""

from collections.abc import Collection, Sequence

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.serde.types import INTERRUPT
from langgraph.types import Interrupt

from everthread.errors import SettingsError
from everthread.storage.kept_checkpoints import OWN_GRAPH
from everthread.storage.sqlite.checkpointer import SqliteCheckpointer

__all__ = ["pending_interrupts", "refuse_foreign", "state_keys"]


def refuse_foreign(checkpointer: SqliteCheckpointer, thread_id: str, channels: Collection[str]) -> None:
    """Refuse a run of our own graph on a thread of another one.

    Args:
        checkpointer: has the thread.
        thread_id: a thread with checkpoints.
        channels: of our graph.

    Raises:
        SettingsError: the newest checkpoint is another graph's.
    """
    if checkpointer.last_writer(thread_id) == OWN_GRAPH:
        return
    config: RunnableConfig = {"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}}
    saved = checkpointer.get_tuple(config)
    if saved is None:
        return
    loses = [f"its state key {name!r}" for name in state_keys(saved) if name not in channels]
    if waiting := len(pending_interrupts(saved)):
        loses.append("its open approval" if waiting == 1 else f"its {waiting:,} open approvals")
    reason = f", and this graph would drop {_enumerated(loses)}" if loses else ""
    raise SettingsError(
        f"thread {thread_id!r} was made by another graph{reason}; it was left as it is. Add EverthreadMiddleware to "
        f"the graph that made it, or begin a thread of its own with these messages: "
        f"`everthread adopt {thread_id} --into NEW`"
    )


def state_keys(saved: CheckpointTuple) -> list[str]:
    """Return the keys of a state that have a value, without LangGraph's own."""
    return [name for name in saved.checkpoint["channel_values"] if ":" not in name and not name.startswith("__")]


def pending_interrupts(saved: CheckpointTuple) -> list[Interrupt]:
    """Return what the newest run of a thread waits for."""
    written = [value for _, channel, value in saved.pending_writes or () if channel == INTERRUPT]
    return [one for value in written for one in (value if isinstance(value, list | tuple) else [value])]


def _enumerated(parts: Sequence[str]) -> str:
    return " and ".join([*([", ".join(parts[:-1])] if parts[1:] else []), parts[-1]])
