"""Run the tools and keep long results out of the prompt."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence

from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.prebuilt import ToolNode
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command

from everthread.ledger.events import Masked
from everthread.ledger.record import now, record
from everthread.nodes.trim import handle_operation
from everthread.nodes.wiring import Wiring
from everthread.state import Context, State
from everthread.state.marks import marked, marks, sequence
from everthread.state.messages import clean, clean_content
from everthread.storage.transcript import append_operations
from everthread.window.masking import mask

Result = ToolMessage | Command[object]


def tools_node(wiring: Wiring) -> ToolNode:
    """Make the node: langgraph's `ToolNode` with every result measured before it enters the state.

    A failing tool answers its call with the error's text, so no call stays unanswered; an interrupt
    pauses the run and the whole node runs again when it resumes.
    """
    keep = _Keeper(wiring)
    tools: Sequence[BaseTool] = [*wiring.agent.tools, wiring.read_tool_output]
    return ToolNode(tools, handle_tool_errors=error_text, wrap_tool_call=keep.call, awrap_tool_call=keep.acall)


def error_text(error: Exception) -> str:
    """Return what the model reads when a tool fails."""
    return f"Error: {clean(str(error)) or type(error).__name__}. Correct the arguments, or tell the user."


class _Keeper:
    """Offloads a result over `tool_output_tokens`: whole to the transcript, head and tail to the state."""

    def __init__(self, wiring: Wiring) -> None:
        self._wiring = wiring

    def call(self, request: ToolCallRequest, execute: Callable[[ToolCallRequest], Result]) -> Result:
        return self._kept(request, execute(request))

    async def acall(self, request: ToolCallRequest, execute: Callable[[ToolCallRequest], Awaitable[Result]]) -> Result:
        result = await execute(request)
        return await asyncio.to_thread(self._kept, request, result)

    def _kept(self, request: ToolCallRequest, result: Result) -> Result:
        if not isinstance(result, ToolMessage):
            return result
        result = _placed(result, request.state)
        context = request.runtime.context if isinstance(request.runtime.context, Context) else Context()
        counter = self._wiring.counter(context)
        text = str(result.text)
        limit = context.tool_output_tokens
        # A token is at least one byte: short texts need no count.
        if len(text.encode("utf-8", "replace")) <= limit or counter.text(text) <= limit:
            return result
        return self._offloaded(request, result, context, limit)

    def _offloaded(self, request: ToolCallRequest, result: ToolMessage, context: Context, limit: int) -> ToolMessage:
        counter = self._wiring.counter(context)
        runtime = request.runtime
        if runtime.store is None:
            return result
        thread_id = str(runtime.config.get("configurable", {}).get("thread_id", ""))
        stand_in = mask(result.model_copy(update={"content": str(result.text)}), limit, counter.text)
        event = Masked(
            reason="tool output over the limit",
            message_id=str(result.id),
            handle=str(marks(stand_in)["handle"]),
            tokens_before=counter.message(result),
            tokens_after=counter.message(stand_in),
        )
        record(
            runtime.store,
            thread_id,
            [event],
            write=runtime.stream_writer,
            turn=int(request.state.get("turns", 0)),
            operations=[
                *append_operations(thread_id, context.user_id, [result], why="offloaded", at=now()),
                handle_operation(thread_id, str(result.id)),
            ],
        )
        return stand_in


def _placed(result: ToolMessage, state: State) -> ToolMessage:
    """Give a result its id and its place in the thread before the reducer does.

    The transcript may get it first, and a node that runs again after a crash must write the same key.
    """
    call = next((message for message in reversed(state.get("messages", [])) if isinstance(message, AIMessage)), None)
    if call is None:
        return result
    ids = [str(known["id"]) for known in call.tool_calls]
    place = ids.index(result.tool_call_id) if result.tool_call_id in ids else 0
    previous = str(call.id) if place == 0 else _result_id(call, ids[place - 1])
    content = clean_content(result.content)
    named = result.model_copy(update={"id": _result_id(call, result.tool_call_id), "content": content})
    return marked(named, seq=sequence(call) + 1 + place, previous=previous, at=now())


def _result_id(call: AIMessage, call_id: str) -> str:
    return "r-" + hashlib.sha256(f"{call.id}\x00{call_id}".encode()).hexdigest()[:24]
