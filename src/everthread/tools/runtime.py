"""Whose run a tool is called in: its thread, its user, its dials."""

from typing import Any

from langgraph.prebuilt import ToolRuntime

from everthread.state import Context
from everthread.state.context import named_user


def thread_of(runtime: ToolRuntime[Any, Any]) -> str:
    """Return the id of the run's thread; empty where it has none."""
    return str(runtime.config.get("configurable", {}).get("thread_id", ""))


def user_of(runtime: ToolRuntime[Any, Any]) -> str:
    """Return the run's user, whom its context of any kind names or its config; `local` where neither does."""
    return str(named_user(runtime.context, runtime.config.get("configurable", {})) or Context.user_id)


def dials_of(runtime: ToolRuntime[Any, Any]) -> Context:
    """Return the run's dials; the defaults where its context is another app's."""
    return runtime.context if isinstance(runtime.context, Context) else Context()
