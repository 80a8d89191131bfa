"""Summaries of a thread by version, in the store.

A checkpoint repeats every small channel at every super-step, so the state keeps only the name of the
current summary; a fork keeps the name of its own.
"""

import hashlib

import orjson
from langgraph.store.base import BaseStore, PutOp

from everthread.state import Summary, namespaces

_MOST = 10_000
"""Versions that are looked at in one pruning."""


def put_operation(thread_id: str, summary: Summary) -> tuple[str, PutOp]:
    """Prepare the write of a summary; its name is derived from its content, so a retry changes nothing."""
    value = summary.model_dump(mode="json")
    name = f"{summary.version:06d}-{hashlib.sha256(orjson.dumps(value)).hexdigest()[:12]}"
    return name, PutOp(namespaces.summaries(thread_id), name, value, index=False)


def prune_summaries(store: BaseStore, thread_id: str, keep: int) -> None:
    """Delete all but the newest versions of a thread's summary.

    Args:
        keep: versions that stay; a turn makes one at most, so as many as turns whose checkpoints may name one.
    """
    namespace = namespaces.summaries(thread_id)
    items = store.search(namespace, limit=_MOST)
    newest_first = sorted(items, key=lambda item: item.updated_at, reverse=True)
    gone = [PutOp(namespace, item.key, None) for item in newest_first[keep:]]
    if gone:
        store.batch(gone)
