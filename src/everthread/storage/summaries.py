"""Summaries of a thread by version, in the store.

A checkpoint repeats every small channel at every super-step, so the state keeps only the name of the
current summary; a fork keeps the name of its own.
"""

import hashlib
from typing import Any

import orjson
from langgraph.store.base import BaseStore, GetOp, PutOp

from everthread.state import Summary, namespaces

__all__ = ["get_operation", "load_summary", "put_operation"]


def put_operation(thread_id: str, summary: Summary) -> tuple[str, PutOp]:
    """Prepare the write of a summary; its name is derived from its content, so a retry changes nothing."""
    value = summary.model_dump(mode="json")
    name = f"{summary.version:06d}-{hashlib.sha256(orjson.dumps(value)).hexdigest()[:12]}"
    return name, PutOp(namespaces.summaries(thread_id), name, value, index=False)


def get_operation(thread_id: str, name: str) -> GetOp:
    """Prepare the read of a summary."""
    return GetOp(namespaces.summaries(thread_id), name)


def load_summary(store: BaseStore, thread_id: str, name: str | None) -> dict[str, Any] | None:
    """Return a summary as JSON; None when there is none of that name."""
    item = store.get(namespaces.summaries(thread_id), name) if name else None
    return item.value if item else None
