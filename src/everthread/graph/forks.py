"""A fork by time travel: a run, or an edit of the state, that goes on from an older checkpoint."""

from collections.abc import Mapping
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.store.base import Item, PutOp

from everthread.state import namespaces
from everthread.state.marks import sequence

__all__ = ["leaving"]


def leaving(
    config: RunnableConfig, newest: CheckpointTuple | None, values: Mapping[str, Any], session: Item | None
) -> PutOp | None:
    """Return the write by which a thread knows that it has branches; None when no branch is left.

    The record of the thread gets the last place that all branches share, from which on the transcript
    is told apart. A run that only answers an old question again brings no new message by which the graph
    could tell; neither does an edit.

    Args:
        config: names a checkpoint.
        newest: the newest checkpoint of the thread.
        values: the state at the named checkpoint.
        session: the record of the thread.
    """
    named = config["configurable"]["checkpoint_id"]
    if session is None or newest is None or newest.config["configurable"].get("checkpoint_id") == named:
        return None
    messages = values.get("messages") or []
    here, earlier = sequence(messages[-1]) if messages else -1, session.value.get("shared")
    if earlier is not None and earlier <= here:
        return None
    return PutOp(namespaces.SESSIONS, session.key, {**session.value, "shared": here}, index=False)
