"""Look at how a thread's last run ended, without reading what its checkpoint holds."""

import json
from collections.abc import Iterable
from typing import Any, Literal

import ormsgpack
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

__all__ = ["Ending", "aending", "ending"]

Ending = Literal["done", "unapplied", "unfinished"]
"""`unapplied`: an input was saved and no step ran; `unfinished`: a node of its turn is still to run."""

_NEWEST = (
    "SELECT metadata, type, checkpoint FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ?"
    " ORDER BY checkpoint_id DESC LIMIT 1"
)


def ending(saver: BaseCheckpointSaver[str], config: RunnableConfig) -> Ending:
    """Tell how the last run of a thread ended; a thread without runs is done.

    Args:
        saver: the graph's checkpointer.
        config: `thread_id`, `checkpoint_ns`, and `checkpoint_id` when a run starts from an older one.
    """
    if not isinstance(saver, SqliteSaver) or _names_one(config):
        return _of_tuple(saver.get_tuple(config))
    with saver.cursor(transaction=False) as cursor:
        return _of_row(cursor.execute(_NEWEST, _key(config)).fetchone())


async def aending(saver: BaseCheckpointSaver[str], config: RunnableConfig) -> Ending:
    """Do what `ending` does without blocking the event loop."""
    if not isinstance(saver, AsyncSqliteSaver) or _names_one(config):
        return _of_tuple(await saver.aget_tuple(config))
    async with saver.lock, saver.conn.execute(_NEWEST, _key(config)) as cursor:
        return _of_row(await cursor.fetchone())


def _names_one(config: RunnableConfig) -> bool:
    return bool(config["configurable"].get("checkpoint_id"))


def _key(config: RunnableConfig) -> tuple[str, str]:
    return str(config["configurable"]["thread_id"]), str(config["configurable"].get("checkpoint_ns", ""))


def _of_row(row: Any) -> Ending:
    if row is None:
        return "done"
    source = json.loads(row[0]).get("source") if row[0] else None
    if source == "input":
        return "unapplied"
    if row[1] != "msgpack":
        return "done"
    # Only the names of the channels are wanted, so messages and other values stay as they are.
    read = ormsgpack.unpackb(row[2], ext_hook=lambda code, data: None, option=ormsgpack.OPT_NON_STR_KEYS)
    return _of_channels(read.get("channel_values") or ())


def _of_tuple(last: CheckpointTuple | None) -> Ending:
    if last is None:
        return "done"
    if last.metadata.get("source") == "input":
        return "unapplied"
    return _of_channels(last.checkpoint["channel_values"])


def _of_channels(names: Iterable[Any]) -> Ending:
    return "unfinished" if any(str(name).startswith("branch:to:") for name in names) else "done"
