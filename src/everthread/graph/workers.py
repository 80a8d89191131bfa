"""The threads that LangGraph starts for a run: one, where more could do nothing at the same time.

Its executor starts a thread for whatever it is given while the others are busy, and there is nothing to give but
the writes of a step, which the run's journal takes at once. Starting a thread costs more than taking them.
"""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config

__all__ = ["for_nodes", "for_run"]

_OURS = "__everthread_one_worker"
"""In `configurable`: the limit is ours, and not for the nodes. LangGraph keeps such names out of checkpoints."""

_UNWATCHED = frozenset({"values", "updates"})
"""Stream modes for which no thread has to watch a running node."""

_TASKS = "langgraph.func"
"""Whoever calls tasks from a tool has imported it. Tasks run beside their caller, and may wait for others.

A tool that imports it for the first time while its run is under way comes too late: a task that waits for a task of
its own would wait for ever.
"""


def for_run(
    config: RunnableConfig | None, options: Mapping[str, Any], own: RunnableConfig | None = None
) -> RunnableConfig | None:
    """Return the config of a run whose executor needs one thread; any other run keeps its own.

    Args:
        config: of the caller.
        options: of `stream`.
        own: the graph's. Whoever sets a limit here, there or around the call has it.
    """
    modes = {*_names(options.get("stream_mode")), *_names(options.get("print_mode"))}
    limited = any((one or {}).get("max_concurrency") for one in (config, own, var_child_runnable_config.get()))
    if options.get("subgraphs") or not modes <= _UNWATCHED or limited or _TASKS in sys.modules:
        return config
    known: RunnableConfig = config or {}
    return {**known, "max_concurrency": 1, "configurable": {**known.get("configurable", {}), _OURS: True}}


def _names(mode: Any) -> set[str]:
    return {mode} if isinstance(mode, str) else set(mode or ())


@contextmanager
def for_nodes(config: RunnableConfig | None) -> Iterator[RunnableConfig]:
    """Give the config of a node: what it runs, such as tools in parallel, is not limited by us.

    LangChain fills in what a config leaves open from the one of the context, so that one changes, too.
    """
    known = config or {}
    configurable = known.get("configurable", {})
    if _OURS not in configurable:
        yield known
        return
    kept = {name: configurable[name] for name in configurable if name != _OURS}
    own: RunnableConfig = {**known, "max_concurrency": None, "configurable": kept}
    token = var_child_runnable_config.set(own)
    try:
        yield own
    finally:
        var_child_runnable_config.reset(token)
