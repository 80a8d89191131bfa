"""Look at how a thread stands before a run, without reading what its checkpoint holds.

Every run looks, so it is one short query: how the last run ended, whose thread it is, and what is known of
the message that came. The store is read past its interface where its tables are in the checkpointer's file;
elsewhere it is asked as any store.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import orjson
import ormsgpack
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.constants import START
from langgraph.store.base import GetOp

from everthread.state import namespaces
from everthread.storage.open import Storage
from everthread.storage.whole import WholeSqliteSaver

__all__ = ["Ending", "Standing", "aending", "astanding", "ending", "standing", "unanswered"]

Ending = Literal["done", "unapplied", "unfinished"]
"""`unapplied`: an input was saved and waits in LangGraph's way in; `unfinished`: a node of its turn is still to run."""

_NEWEST = (
    "SELECT 0, type, checkpoint, NULL FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ?"
    " ORDER BY checkpoint_id DESC LIMIT 1"
)
_RECORDS = tuple(f"SELECT {place}, NULL, NULL, value FROM store WHERE prefix = ? AND key = ?" for place in (1, 2, 3))
_WITH_NEWEST = f"SELECT * FROM ({_NEWEST})"

_SESSIONS = ".".join(namespaces.SESSIONS)

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
        """Whether the last run was cut off, or the message is no news: what it means depends on the state."""
        return self.ending != "done" or self.archived is not None or self.unanswered is not None


def unanswered(thread_id: str) -> namespaces.Namespace:
    """Namespace of the messages whose turn was left without an answer, by message id."""
    return namespaces.thread(thread_id, "unanswered")


def standing(storage: Storage, config: RunnableConfig, message_id: str | None) -> Standing:
    """Tell how a thread stands before a run.

    Args:
        storage: where it is kept.
        config: `thread_id`, `checkpoint_ns`, and `checkpoint_id` when a run starts from an older one.
        message_id: of the message that came; None when it has none, or none came.
    """
    saver = storage.checkpointer
    if isinstance(saver, WholeSqliteSaver) and storage.is_one_file and not _names_one(config):
        last = _of_tuple(saver.read_ahead(config))
        with saver.lock:
            return _of_rows(last, saver.conn.execute(*_query(config, message_id)).fetchall())
    return _of_items(ending(saver, config), storage.store.batch(_reads(config, message_id)))


async def astanding(storage: Storage, config: RunnableConfig, message_id: str | None) -> Standing:
    """Do what `standing` does without blocking the event loop."""
    saver = storage.checkpointer
    if isinstance(saver, AsyncSqliteSaver) and storage.is_one_file and not _names_one(config):
        sql, values = _query(config, message_id)
        async with saver.lock:
            rows = await saver.conn.execute_fetchall(f"{_WITH_NEWEST} UNION ALL {sql}", (*_key(config), *values))
        return _of_rows(_of_row(next((row for row in rows if row[0] == 0), None)), rows)
    return _of_items(await aending(saver, config), await storage.store.abatch(_reads(config, message_id)))


def ending(saver: BaseCheckpointSaver[str], config: RunnableConfig) -> Ending:
    """Tell how the last run of a thread ended; a thread without runs is done.

    Args:
        saver: the graph's checkpointer.
        config: `thread_id`, `checkpoint_ns`, and `checkpoint_id` when a run starts from an older one.
    """
    if not isinstance(saver, SqliteSaver) or _names_one(config):
        return _of_tuple(saver.get_tuple(config))
    with saver.lock:
        return _of_row(saver.conn.execute(_NEWEST, _key(config)).fetchone())


async def aending(saver: BaseCheckpointSaver[str], config: RunnableConfig) -> Ending:
    """Do what `ending` does without blocking the event loop."""
    if not isinstance(saver, AsyncSqliteSaver) or _names_one(config):
        return _of_tuple(await saver.aget_tuple(config))
    async with saver.lock:
        return _of_row(next(iter(await saver.conn.execute_fetchall(_NEWEST, _key(config))), None))


def _names_one(config: RunnableConfig) -> bool:
    return bool(config["configurable"].get("checkpoint_id"))


def _key(config: RunnableConfig) -> tuple[str, str]:
    return str(config["configurable"]["thread_id"]), str(config["configurable"].get("checkpoint_ns", ""))


def _of_row(row: Any) -> Ending:
    if row is None:
        return "done"
    _, kind, checkpoint, _ = row
    if kind != "msgpack":
        return "done"
    # Only the names of the channels are wanted, so messages and other values stay as they are.
    read = ormsgpack.unpackb(checkpoint, ext_hook=lambda code, data: None, option=ormsgpack.OPT_NON_STR_KEYS)
    return _of_channels(read.get("channel_values") or ())


def _of_tuple(last: CheckpointTuple | None) -> Ending:
    if last is None:
        return "done"
    return _of_channels(last.checkpoint["channel_values"])


def _of_channels(names: Collection[Any]) -> Ending:
    if START in names:
        return "unapplied"
    return "unfinished" if any(str(name).startswith(("branch:to:", "__pregel_tasks")) for name in names) else "done"


def _reads(config: RunnableConfig, message_id: str | None) -> list[GetOp]:
    thread_id, _ = _key(config)
    of_message = [] if message_id is None else [namespaces.transcript(thread_id), unanswered(thread_id)]
    return [GetOp(namespaces.SESSIONS, thread_id), *(GetOp(one, str(message_id)) for one in of_message)]


def _query(config: RunnableConfig, message_id: str | None) -> tuple[str, list[str]]:
    thread_id, _ = _key(config)
    values = [_SESSIONS, thread_id]
    if message_id is None:
        return _RECORDS[0], values
    own = ".".join(namespaces.thread(thread_id))
    return " UNION ALL ".join(_RECORDS), [*values, f"{own}.transcript", message_id, f"{own}.unanswered", message_id]


def _of_rows(last: Ending, rows: Iterable[Any]) -> Standing:
    found = {row[0]: row for row in rows}
    records = (orjson.loads(found[place][3]) if place in found else None for place in (1, 2, 3))
    return Standing(last, *records)


def _of_items(last: Ending, items: Sequence[Any]) -> Standing:
    return Standing(last, *(None if item is None else item.value for item in items))
