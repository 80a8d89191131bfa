"""Run tool calls, each as a task of its own, and keep long results out of the prompt."""

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable, Collection
from dataclasses import replace
from functools import partial
from typing import Any

from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import ToolException
from langgraph.prebuilt import ToolNode, ToolRuntime
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.store.base import PutOp
from langgraph.types import Command, Send

from everthread.ledger.events import Event, Offloaded, Refetch
from everthread.ledger.record import now, record
from everthread.nodes.deps import NodeDeps, context_of, is_nested, store_of, thread_of
from everthread.nodes.nested import own_state, own_store, runtime_inside
from everthread.nodes.prompt_plan import checked_session
from everthread.nodes.sizes import has_readers
from everthread.nodes.trim import handle_operation
from everthread.plain import without_guide
from everthread.state import State, Update
from everthread.state.marks import marked, marks, sequence
from everthread.state.reducer import clean, clean_content
from everthread.state.scrubbing import scrub
from everthread.storage.refetches import left_operations, read_back, repeated
from everthread.storage.transcript import append_operations
from everthread.tools import OWN_TOOLS
from everthread.window.masking import mask
from everthread.window.tokens import TokenCounter

logger = logging.getLogger(__name__)

Result = ToolMessage | Command[Any]


def tool_node(deps: NodeDeps) -> ToolNode:
    """Return LangGraph's `ToolNode`, with every result measured before it enters the state.

    A failing tool answers its call with the error's text, so no call stays unanswered. An interrupt
    pauses its call before anything is kept, and that call alone runs again when the run resumes.
    """

    def keep(request: ToolCallRequest, execute: Callable[[ToolCallRequest], Result]) -> Result:
        request = _prepared(request, deps)
        result: Result = _kept_or_failed(_answered(request, deps) or execute(request), request, deps)
        return result

    async def akeep(request: ToolCallRequest, execute: Callable[[ToolCallRequest], Awaitable[Result]]) -> Result:
        # Only these two ask the store.
        is_quick = request.state.get("plan") and not is_nested(request.runtime)
        request = _prepared(request, deps) if is_quick else await asyncio.to_thread(_prepared, request, deps)
        result = _answered(request, deps) or await execute(request)
        kept: Result = await asyncio.to_thread(_kept_or_failed, result, request, deps)
        return kept

    answers = deps.response.tools if deps.response else []
    return ToolNode([*deps.tools, *answers], handle_tool_errors=error_text, wrap_tool_call=keep, awrap_tool_call=akeep)


def _prepared(request: ToolCallRequest, deps: NodeDeps) -> ToolCallRequest:
    """Return a call as its tool is to get it.

    Raises:
        SettingsError: the thread belongs to another user; a run that resumes, without a plan, is not checked yet.
    """
    is_inside, fixed = is_nested(request.runtime), deps.with_fixed_dials(request.runtime)
    if not request.state.get("plan"):
        runtime = runtime_inside(fixed)[0] if is_inside else fixed
        checked_session(store_of(runtime), thread_of(runtime), context_of(runtime))
    request = _named_now(request, deps)
    return _with_store(request, fixed) if is_inside else replace(request, runtime=fixed)


def tool_tasks(reply: AIMessage) -> list[Send]:
    """Return one task per call, so that each approval is asked, answered and resumed by itself.

    Every task reads the whole state beside its call, by LangGraph's `ToolNode`.
    """
    return [Send("tools", [one]) for one in reply.tool_calls]


class _KeepingFailed(Exception):
    """A result could not be kept: an error of the database, which is no news for the model."""


def error_text(error: Exception) -> str:
    """Return what the model reads when a tool fails; the developer finds the traceback in the log.

    Raises:
        Exception: the tool did not fail, but its result could not be kept.
    """
    if isinstance(error, _KeepingFailed):
        raise error.__cause__ or error
    text = clean(scrub(without_guide(str(error)))) or type(error).__name__
    if isinstance(error, ToolException):
        # Said on purpose, by the tool or by LangGraph about the arguments.
        logger.info("a tool refused its call: %s", text)
    else:
        logger.error("a tool failed: %s", text, exc_info=error)
    return f"Error: {text.rstrip('.')}. Correct the arguments, or tell the user."


def _answered(request: ToolCallRequest, deps: NodeDeps) -> ToolMessage | None:
    """Return the result of a call that is the structured answer; None for any other."""
    reply = last_reply(request.state)
    return deps.response.result(reply, request.tool_call) if deps.response and reply else None


def _named_now(request: ToolCallRequest, deps: NodeDeps) -> ToolCallRequest:
    """Return the call of a tool under its name of today, if an earlier version of the agent asked for it."""
    new = deps.agent.renamed_tools.get(request.tool_call["name"])
    if new is None:
        return request
    tool = next(tool for tool in deps.tools if tool.name == new)
    return replace(request, tool=tool, tool_call={**request.tool_call, "name": new})


def _with_store(request: ToolCallRequest, fixed: ToolRuntime[Any, Any]) -> ToolCallRequest:
    """Inside another graph, give a tool the store of our graph's own guard where the parent has none.

    Tools of ours read the dials of our own context there, and get no store in a run that keeps nothing.
    """
    runtime: Any = replace(request.runtime, store=own_store(request.runtime))
    if request.tool_call["name"] in OWN_TOOLS:
        inside, takes_part = runtime_inside(fixed)
        runtime = replace(runtime, context=context_of(inside), store=inside.store if takes_part else None)
    return replace(request, runtime=runtime)


def _kept_or_failed(result: Any, request: ToolCallRequest, deps: NodeDeps) -> Any:
    """Return a result as the state gets it, once what is long of it is in the transcript.

    Raises:
        _KeepingFailed: it could not be written there.
    """
    request = replace(request, runtime=deps.with_fixed_dials(request.runtime))
    counter, reply = deps.model_for(context_of(request.runtime)).counter, last_reply(request.state)
    if isinstance(result, ToolMessage) and reply is not None and deps.ends_turn(reply):
        result = marked(result, final=True)
    if is_nested(request.runtime):
        runtime, takes_part = runtime_inside(request.runtime)
        request = replace(request, state=own_state(request.state), runtime=runtime)
        if not takes_part and isinstance(result, ToolMessage):
            # Whole, since nothing else would have it; `trim` shortens it for the prompt.
            return _placed(result, request.state)
    try:
        return _place_and_offload(result, request, counter, {tool.name for tool in deps.model.readers})
    except Exception as error:
        raise _KeepingFailed from error


def offload_new(state: State, new: Collection[str], runtime: Any, deps: NodeDeps) -> tuple[Update, Callable[[], None]]:
    """Offload the results over `tool_output_tokens` among new messages of somebody else's agent.

    Ahead of the call that reads them: what its other middlewares redact has been redacted by now, and what a tool
    returns to the user directly stays whole.

    Args:
        state: a view that has the places of its messages.
        new: ids of those that came since the last call.

    Returns:
        The stand-ins, and what keeps the results: to be called once the call is made, since one that fails is made
        again from the same state.
    """
    readers, calls, shown = {tool.name for tool in deps.model.readers}, dict[str, Any](), []
    events, operations = list[Event](), list[PutOp]()
    for message in state["messages"]:
        if isinstance(message, AIMessage):
            calls |= {str(call["id"]): call for call in message.tool_calls}
        elif isinstance(message, ToolMessage) and message.id in new and message.tool_call_id in calls:
            request = ToolCallRequest(calls[message.tool_call_id], None, state, runtime)
            result, told, writes = _offloaded(message, request, deps.model.counter, readers)
            events += told
            operations += writes
            if result is not message:
                shown.append(result)
    keep = partial(record, store_of(runtime), thread_of(runtime), events, write=runtime.stream_writer)
    return {"messages": shown}, partial(keep, turn=state.get("turns", 0), operations=operations)


def _place_and_offload(result: Any, request: ToolCallRequest, counter: TokenCounter, readers: Collection[str]) -> Any:
    """Give a result its place in the thread, and offload one over `tool_output_tokens`; commands pass unchanged.

    The tool has run by now. Killed before LangGraph has saved what this returns, it runs again when the turn goes on.

    Args:
        result: what the tool returned: a message, a command, or a list of them.
        request: its call.
        readers: names of the tools that read what the prompt no longer shows.
    """
    if isinstance(result, list):
        return [_place_and_offload(one, request, counter, readers) for one in result]
    if not isinstance(result, ToolMessage):
        return result
    runtime, turn = request.runtime, request.state.get("turns", 0)
    shown, events, operations = _offloaded(_placed(result, request.state), request, counter, readers)
    record(store_of(runtime), thread_of(runtime), events, write=runtime.stream_writer, turn=turn, operations=operations)
    return shown


def _offloaded(
    result: ToolMessage, request: ToolCallRequest, counter: TokenCounter, readers: Collection[str]
) -> tuple[ToolMessage, list[Event], list[PutOp]]:
    """Return head and tail of a long result with a handle, and the writes that keep it whole in the transcript."""
    state: State = request.state
    context, thread_id, turn = context_of(request.runtime), thread_of(request.runtime), state.get("turns", 0)
    events: list[Event] = []
    operations: list[PutOp] = []
    if (refetch := _refetch(request, result, readers)) is not None:
        event, forgotten = refetch
        events.append(event)
        operations += forgotten
        if context.learn_from_refetches and event.why == "repeated_call":
            result = marked(result, kept=True)
    if _is_long(str(result.text), context.tool_output_tokens, counter):
        stand_in = mask(result, context.tool_output_tokens, counter)
        events.append(
            Offloaded(
                reason="tool output over the limit",
                message_id=str(result.id),
                handle=str(marks(stand_in)["handle"]),
                tokens_before=counter.message(result),
                tokens_after=counter.message(stand_in),
                limit=context.tool_output_tokens,
            )
        )
        operations += append_operations(thread_id, context.user_id, [result], why="offloaded", at=now())
        operations.append(handle_operation(thread_id, str(result.id)))
        operations += left_operations(thread_id, [result], state.get("messages", []), "offloaded", turn)
        result = stand_in
    return result, events, operations


def _refetch(
    request: ToolCallRequest, result: ToolMessage, readers: Collection[str]
) -> tuple[Refetch, list[PutOp]] | None:
    """Return the event of a call that asks again for what had left the prompt, and the writes that forget it."""
    if result.status == "error" or not has_readers(request.state):
        return None
    store, thread_id, call = store_of(request.runtime), thread_of(request.runtime), request.tool_call
    if call["name"] not in readers:
        missed = repeated(store, thread_id, call)
        # What has left may be this very result, when it did so for a model call that failed.
        return missed if missed and missed[0].message_ids != [str(result.id)] else None
    # A long text is read in parts; it was missed once.
    if call["name"] == "read_tool_output" and not call["args"].get("offset"):
        read = read_back(store, thread_id, str(call["args"].get("handle", "")), str(call["id"]))
        return (read, []) if read is not None else None
    return None


def _is_long(text: str, limit: int, counter: TokenCounter) -> bool:
    # A token is at least one byte: short texts need no count.
    return len(text.encode("utf-8", "replace")) > limit and counter.text(text) > limit


def _placed(result: ToolMessage, state: State) -> ToolMessage:
    """Give a result its id and its place in the thread before the reducer does.

    The transcript may get it first, and a task that runs again after a crash must write the same key.
    """
    reply = last_reply(state)
    if reply is None:
        return result
    named: ToolMessage = with_id(result, state)
    ids = [str(one["id"]) for one in reply.tool_calls]
    place = ids.index(result.tool_call_id) if result.tool_call_id in ids else 0
    previous = str(reply.id) if place == 0 else result_id(reply, ids[place - 1])
    return marked(named, seq=sequence(reply) + 1 + place, previous=previous, at=now())


def with_id(result: Any, state: State) -> Any:
    """Give a result the id by which the results beside it know it; commands and lists pass unchanged."""
    reply = last_reply(state)
    if reply is None or not isinstance(result, ToolMessage):
        return result
    content = clean_content(result.content)
    return result.model_copy(update={"id": result_id(reply, result.tool_call_id), "content": content})


def last_reply(state: State) -> AIMessage | None:
    """Return the newest message of the model, whether it calls tools or not."""
    return next((message for message in reversed(state.get("messages", [])) if isinstance(message, AIMessage)), None)


def result_id(reply: AIMessage, call_id: str) -> str:
    """Return the id of the message with the result of one of a reply's calls."""
    return "r-" + hashlib.sha256(f"{reply.id}\x00{call_id}".encode("utf-8", "replace")).hexdigest()[:24]
