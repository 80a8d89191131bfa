"""Which node comes next. A node that would have nothing to do is left out: a super-step costs a checkpoint."""

from collections.abc import Sequence
from typing import Any, Literal, cast

from langchain_core.messages import BaseMessage, RemoveMessage
from langgraph.runtime import Runtime
from langgraph.types import Command

from everthread.nodes.sizing import fits, is_full
from everthread.nodes.wiring import Wiring, context_of
from everthread.state import Context, State, Update
from everthread.state.marks import marks
from everthread.state.messages import reduce_messages


def after_start(state: State) -> Literal["inject_memory", "consolidate", "__end__"]:
    """End the session at once when no new message came with the wish to end it.

    A client that sends a message again which has its answer already gets that answer: nothing runs.
    """
    messages = state.get("messages", [])
    if not any("at" not in marks(message) for message in messages):
        if state.get("end_session"):
            return "consolidate"
        if messages and messages[-1].type == "ai" and not messages[-1].tool_calls:
            return "__end__"
    return "inject_memory"


def before_model(state: State, update: Update, runtime: Runtime[Context], wiring: Wiring) -> str:
    """Go to the model, by way of `trim` when the working set does not surely fit the budget."""
    now = _updated(state, update)
    return "model" if fits(now, context_of(runtime), wiring) else "trim"


def after_trim(state: State, update: Update, runtime: Runtime[Context], wiring: Wiring) -> str:
    """Go to the model."""
    return "model"


def after_model(state: State, update: Update, runtime: Runtime[Context], wiring: Wiring) -> str:
    """Go to the tools that the model called, back to trim after a refusal, on when there is a reply."""
    if update.get("overflows"):
        return "trim"
    if getattr(update["messages"][-1], "tool_calls", None):
        return "tools"
    context = context_of(runtime)
    if "turn" in context.distillation:
        return "distill_notes"
    now = _updated(state, update)
    return "summarize" if is_full(now, context, wiring) else _end(now)


def after_distill_notes(state: State, update: Update, runtime: Runtime[Context], wiring: Wiring) -> str:
    """Compact when the working set asks for it, then end the session when the caller does."""
    return "summarize" if is_full(_updated(state, update), context_of(runtime), wiring) else _end(state)


def after_summarize(state: State, update: Update, runtime: Runtime[Context], wiring: Wiring) -> str:
    """End the session when the caller asked for it."""
    return _end(state)


def after_consolidate(state: State, update: Update, runtime: Runtime[Context], wiring: Wiring) -> str:
    """End the run."""
    return "__end__"


def _end(state: State) -> Literal["consolidate", "__end__"]:
    return "consolidate" if state.get("end_session") else "__end__"


def _updated(state: State, update: Any) -> State:
    """Return the state as the next node will read it."""
    parts = update if isinstance(update, list) else [update]
    told = [part.update if isinstance(part, Command) else part for part in parts]
    new = [message for part in told if isinstance(part, dict) for message in part.get("messages", [])]
    messages: Sequence[Any] = state.get("messages", [])
    known = {message.id for message in messages}
    is_plain = all(isinstance(message, BaseMessage) for message in new)
    if is_plain and not any(isinstance(message, RemoveMessage) or message.id in known for message in new):
        messages = [*messages, *new]
    else:
        messages = reduce_messages(messages, [new])
    return cast(State, {**state, **(update if isinstance(update, dict) else {}), "messages": messages})
