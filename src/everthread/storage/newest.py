"""Look at how a thread stands before a run: how the last run ended, whose thread it is, what is known of a message."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.constants import START
from langgraph.store.base import GetOp

from everthread.state import namespaces
from everthread.storage.open import Storage

__all__ = ["Ending", "Standing", "aending", "astanding", "ending", "standing", "unanswered"]

Ending = Literal["done", "unapplied", "unfinished"]
"""`unapplied`: input is checkpointed, but no node has consumed it; `unfinished`: a node of its turn is still to run."""

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Standing:
    """How a thread stands."""

    ending: Ending
    """How its last run ended; a thread without runs is done."""
    session: Record | None = None
    """The record of the thread; None before its first run."""
    archived: Record | None = None
    """What the transcript has under the id of the message that came."""
    unanswered: Record | None = None
    """Where that message was when its turn was left without an answer; None when it never was."""

    @property
    def is_special(self) -> bool:
        """Whether the last run was interrupted, or the message id is known; what it means depends on the state."""
        return self.ending != "done" or self.archived is not None or self.unanswered is not None


def unanswered(thread_id: str) -> namespaces.Namespace:
    """Namespace of the messages whose turn was left without an answer, by message id."""
    return namespaces.thread(thread_id, "unanswered")


def standing(storage: Storage, config: RunnableConfig, message_id: str | None) -> Standing:
    """Tell how a thread stands before a run; the id is of the message that came, if one came and has one."""
    return _of_items(ending(storage.checkpointer, config), storage.store.batch(_reads(config, message_id)))


async def astanding(storage: Storage, config: RunnableConfig, message_id: str | None) -> Standing:
    """Do what `standing` does without blocking the event loop."""
    last = await aending(storage.checkpointer, config)
    return _of_items(last, await storage.store.abatch(_reads(config, message_id)))


def ending(saver: BaseCheckpointSaver[str], config: RunnableConfig) -> Ending:
    """Tell how the last run of a thread ended; a thread without runs is done."""
    return _of_tuple(saver.get_tuple(config))


async def aending(saver: BaseCheckpointSaver[str], config: RunnableConfig) -> Ending:
    """Do what `ending` does without blocking the event loop."""
    return _of_tuple(await saver.aget_tuple(config))


def _of_tuple(last: CheckpointTuple | None) -> Ending:
    names: Collection[Any] = last.checkpoint["channel_values"] if last else ()
    if START in names:
        return "unapplied"
    return "unfinished" if any(str(name).startswith(("branch:to:", "__pregel_tasks")) for name in names) else "done"


def _reads(config: RunnableConfig, message_id: str | None) -> list[GetOp]:
    thread_id = str(config["configurable"]["thread_id"])
    of_message = [] if message_id is None else [namespaces.transcript(thread_id), unanswered(thread_id)]
    return [GetOp(namespaces.SESSIONS, thread_id), *(GetOp(one, str(message_id)) for one in of_message)]


def _of_items(last: Ending, items: Sequence[Any]) -> Standing:
    return Standing(last, *(None if item is None else item.value for item in items))
