"""The threads that LangGraph starts for a run: one, where more could do nothing at the same time.

Its executor starts a thread for whatever it is given while the others are busy, and there is nothing to give but
the writes of a step, which the run's journal takes at once. Starting a thread costs more than taking them.
"""

import sys
from collections.abc import Mapping
from typing import Any

from langchain_core.runnables import RunnableConfig

__all__ = ["for_nodes", "for_run"]

_OURS = "__everthread_one_worker"
"""In `configurable`: the limit is ours, and not for the nodes. LangGraph keeps such names out of checkpoints."""

_UNWATCHED = frozenset({"values", "updates"})
"""Stream modes for which no thread has to watch a running node."""

_TASKS = "langgraph.func"
"""Whoever calls tasks from a tool has imported it. Tasks run beside their caller, and may wait for others."""


def for_run(config: RunnableConfig | None, options: Mapping[str, Any]) -> RunnableConfig | None:
    """Return the config of a run whose executor needs one thread; any other run keeps its own.

    Args:
        config: of the caller, whose own limit stands.
        options: of `stream`.
    """
    mode = options.get("stream_mode")
    known: RunnableConfig = config or {}
    modes = {mode} if isinstance(mode, str) else set(mode or ())
    if options.get("subgraphs") or not modes <= _UNWATCHED or known.get("max_concurrency") or _TASKS in sys.modules:
        return config
    return {**known, "max_concurrency": 1, "configurable": {**known.get("configurable", {}), _OURS: True}}


def for_nodes(config: RunnableConfig | None) -> RunnableConfig:
    """Return the config of a node: what it runs, such as tools in parallel, is not limited by us."""
    known: RunnableConfig = config or {}
    configurable = known.get("configurable", {})
    if _OURS not in configurable:
        return known
    kept = {name: configurable[name] for name in configurable if name != _OURS}
    return {**known, "max_concurrency": None, "configurable": kept}
