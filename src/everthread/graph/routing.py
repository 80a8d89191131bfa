"""Which node comes next. A node that would have nothing to do is left out: a super-step costs a checkpoint.

Edges run outside of a run too, in `update_state`, where there is no plan: then nothing is sized.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import ensure_config, set_config_context
from langgraph.graph import END
from langgraph.runtime import get_runtime
from langgraph.types import Send

from everthread.graph.holds import is_guarded
from everthread.nodes.deps import NodeDeps
from everthread.nodes.nested import own_state
from everthread.nodes.refuse import is_of_another_user
from everthread.nodes.sizes import PromptSize, is_full, needs_trim
from everthread.nodes.tools import last_reply, tool_tasks
from everthread.state import Context, PromptPlan, State
from everthread.state.marks import is_answer, is_new

Next = str | list[Send]

AFTER_REPLY = frozenset({"distill_notes", "summarize", "consolidate"})
"""Nodes of ours that run when the user has the reply."""


class Edge(Runnable[State, Next]):
    """A conditional edge, which decides at once.

    LangGraph would send a plain function to a thread under `ainvoke` and trace it as a run of its own, which takes
    longer than the decision.
    """

    def __init__(self, decide: Callable[..., Next], **arguments: Any) -> None:
        self.name = decide.__name__
        self._decide = decide
        self._arguments = arguments

    def invoke(self, input: State, config: RunnableConfig | None = None, **_: Any) -> Next:
        """Return the node that comes next."""
        return self._decide(own_state(input), **self._arguments)

    async def ainvoke(self, input: State, config: RunnableConfig | None = None, **_: Any) -> Next:
        """Return the node that comes next, on the event loop."""
        return self._decide(own_state(input), **self._arguments)


class Start(Edge):
    """The edge at the beginning, which refuses the run of another user where no guard has done so.

    Only then does it ask the store, and takes a thread under `ainvoke`.
    """

    def invoke(self, input: State, config: RunnableConfig | None = None, **_: Any) -> Next:
        """Return the node that comes next."""
        config = ensure_config(config)
        if not is_guarded(config):
            with set_config_context(config) as context:
                if is_of_another_user(context.run(get_runtime, Context)):
                    return "refuse"
        return super().invoke(input, config)

    async def ainvoke(self, input: State, config: RunnableConfig | None = None, **_: Any) -> Next:
        """Return the node that comes next."""
        if is_guarded(ensure_config(config)):
            return super().invoke(input, config)
        return await asyncio.to_thread(self.invoke, input, config)


def after_start(state: State) -> str:
    """Begin the turn; without a new message, end the session if the caller asked for it.

    A message that was sent again under its id is not new. When the thread ends with its answer, nothing runs;
    without an answer its turn begins again.
    """
    messages = state.get("messages", [])
    if any(map(is_new, messages)):
        return "inject_memory"
    if state.get("end_session"):
        return "consolidate"
    is_answered = bool(messages) and is_answer(messages[-1])
    return END if is_answered else "inject_memory"


def before_model(state: State, deps: NodeDeps) -> str:
    """Go to the model, by way of `trim` when the working set does not surely fit the budget."""
    plan = state.get("plan")
    return "model" if plan and not needs_trim(_size(state, plan, deps), plan.context) else "trim"


def after_model(state: State, deps: NodeDeps) -> str | list[Send]:
    """Run the tools that the model called; trim again after an overflow; go on when there is a reply."""
    if state.get("overflows"):
        return "trim"
    # An edit that removes every message counts as the model's.
    reply = state["messages"][-1] if state["messages"] else None
    if isinstance(reply, AIMessage) and reply.tool_calls:
        return tool_tasks(reply)
    return "distill_notes" if _distills(state) else after_reply(state, deps)


def after_tools(state: State, deps: NodeDeps) -> str:
    """Go back to the model, unless the results are the reply.

    Every task of a round decides for itself and sees its own result only, so with several calls the decision rests on
    the calls alone: `trim` sees all results.
    """
    reply = last_reply(state)
    if reply is not None and deps.ends_turn(reply):
        return "distill_notes" if _distills(state) else end_turn(state)
    return before_model(state, deps) if reply is not None and len(reply.tool_calls) == 1 else "trim"


def after_reply(state: State, deps: NodeDeps) -> str:
    """Compact when the working set asks for it, else end the turn; by now its notes are made, if it makes any."""
    plan = state.get("plan")
    if not (state.get("working_set") or {"takes_part": True})["takes_part"]:
        return end_turn(state)
    return "summarize" if plan and is_full(_size(state, plan, deps), plan.context) else end_turn(state)


def end_turn(state: State) -> str:
    """End the turn, and the session too when the caller asked for it."""
    return "consolidate" if state.get("end_session") else END


def _distills(state: State) -> bool:
    plan = state.get("plan")
    return plan is not None and "turn" in plan.context.distillation


def _size(state: State, plan: PromptPlan, deps: NodeDeps) -> PromptSize:
    return PromptSize.of(state, plan, deps.model_for(plan.context))
