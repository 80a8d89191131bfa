"""Run the tools and keep long results out of the prompt."""

import asyncio
import hashlib
from collections.abc import Sequence
from contextvars import copy_context
from typing import Any

from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import get_config_list, get_executor_for_config
from langgraph.prebuilt import ToolNode, ToolRuntime
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore, PutOp

from everthread.ledger.events import Event, Offloaded, Regret
from everthread.ledger.record import now, record
from everthread.nodes.trim import handle_operation
from everthread.nodes.wiring import Wiring, context_of, store_of, thread_of
from everthread.state import Context, State, Update
from everthread.state.marks import marked, marks, sequence
from everthread.state.messages import clean, clean_content
from everthread.state.scrubbing import scrub
from everthread.storage.regrets import left_operations, read_back, repeated
from everthread.storage.transcript import append_operations
from everthread.window.masking import mask


class ToolRunner:
    """The node: langgraph's `ToolNode`, with every result measured before it enters the state.

    A failing tool answers its call with the error's text, so no call stays unanswered. An interrupt
    pauses the run before anything is kept, and the whole node runs again when it resumes.
    """

    def __init__(self, wiring: Wiring) -> None:
        self._node = _Node([*wiring.agent.tools, *wiring.readers], handle_tool_errors=error_text)

    def tools(self, state: State, config: RunnableConfig, runtime: Runtime[Context], wiring: Wiring) -> Update:
        """Run the calls of the last message."""
        update: Update = _kept(self._node.invoke(state, config), state, runtime, wiring)
        return update

    async def atools(self, state: State, config: RunnableConfig, runtime: Runtime[Context], wiring: Wiring) -> Update:
        """Do what `tools` does without blocking the event loop."""
        results = await self._node.ainvoke(state, config)
        update: Update = await asyncio.to_thread(_kept, results, state, runtime, wiring)
        return update


class _Node(ToolNode):
    """A `ToolNode` that runs one of its calls in the thread of its node: a thread more costs more than most tools.

    LangGraph gives the thread of each call a copy of the context, and so does this. A tool that starts an event loop
    could not do so beside a running one, as in a notebook, and would take away one that is set; there every call keeps
    its thread, as where the caller set a limit for them.
    """

    def _func(self, input: Any, config: RunnableConfig, runtime: Runtime[Any]) -> Any:
        calls, kind = self._parse_input(input)
        if not calls or _has_loop() or (len(calls) > 1 and config.get("max_concurrency")):
            return super()._func(input, config, runtime)
        told: list[Any] = [
            ToolRuntime(
                state=self._extract_state(input, own),
                tool_call_id=call["id"],
                config=own,
                context=runtime.context,
                store=runtime.store,
                stream_writer=runtime.stream_writer,
                tools=list(self.tools_by_name.values()),
                execution_info=runtime.execution_info,
                server_info=runtime.server_info,
            )
            for call, own in zip(calls, get_config_list(config, len(calls)), strict=True)
        ]
        if len(calls) == 1:
            return self._combine_tool_outputs([copy_context().run(self._run_one, calls[0], kind, told[0])], kind)
        with get_executor_for_config(config) as executor:
            others = [
                executor.submit(self._run_one, call, kind, one) for call, one in zip(calls[1:], told[1:], strict=True)
            ]
            first = copy_context().run(self._run_one, calls[0], kind, told[0])
            return self._combine_tool_outputs([first, *(other.result() for other in others)], kind)


def _has_loop() -> bool:
    """Tell whether this thread has an event loop, running or set; asking asyncio for one would make it."""
    policy = getattr(asyncio.events, "_event_loop_policy", None)
    is_set = getattr(getattr(policy, "_local", None), "_loop", None) is not None
    return is_set or asyncio._get_running_loop() is not None


def error_text(error: Exception) -> str:
    """Return what the model reads when a tool fails."""
    return f"Error: {clean(scrub(str(error))) or type(error).__name__}. Correct the arguments, or tell the user."


def _kept(results: Any, state: State, runtime: Runtime[Context], wiring: Wiring) -> Any:
    """Offload results over `tool_output_tokens`: whole to the transcript, head and tail to the state.

    Commands of tools pass unchanged.
    """
    if isinstance(results, list):
        return [
            _kept(result, state, runtime, wiring) if isinstance(result, dict) and "messages" in result else result
            for result in results
        ]
    placed = [
        _placed(message, state) if isinstance(message, ToolMessage) else message for message in results["messages"]
    ]
    context, thread_id = context_of(runtime), thread_of(runtime)
    answers = [message for message in placed if isinstance(message, ToolMessage)]
    regrets, forgotten = _regrets(answers, state, store_of(runtime), thread_id, wiring)
    if context.learn_from_regret:
        missed = {name for name, regret in regrets.items() if regret.why == "repeated_call"}
        placed = [marked(one, kept=True) if getattr(one, "tool_call_id", "") in missed else one for one in placed]
    long = _long([message for message in placed if isinstance(message, ToolMessage)], runtime, wiring)
    told: list[Event] = list(regrets.values())
    turn = state.get("turns", 0)
    if not long:
        if told:
            record(store_of(runtime), thread_id, told, write=runtime.stream_writer, turn=turn, operations=forgotten)
        return {**results, "messages": placed}
    counter = wiring.counter(context)
    stand_ins = {
        str(message.id): mask(
            message.model_copy(update={"content": str(message.text)}), context.tool_output_tokens, counter
        )
        for message in long
    }
    operations: list[PutOp] = append_operations(thread_id, context.user_id, long, why="offloaded", at=now())
    operations += [handle_operation(thread_id, name) for name in stand_ins]
    operations += [*forgotten, *left_operations(thread_id, long, state.get("messages", []), "offloaded", turn)]
    record(
        store_of(runtime),
        thread_id,
        [*told, *_events(long, stand_ins, wiring, context)],
        write=runtime.stream_writer,
        turn=turn,
        operations=operations,
    )
    return {**results, "messages": [stand_ins.get(str(message.id), message) for message in placed]}


def _regrets(
    answers: Sequence[ToolMessage], state: State, store: BaseStore, thread_id: str, wiring: Wiring
) -> tuple[dict[str, Regret], list[PutOp]]:
    """Return which calls asked again for what had left the prompt, by call id; nothing is read before anything left."""
    if not wiring.reads_back(state):
        return {}, []
    asked = {answer.tool_call_id for answer in answers if answer.status != "error"}
    last = next((message for message in reversed(state.get("messages", [])) if isinstance(message, AIMessage)), None)
    calls = [call for call in (last.tool_calls if last else ()) if call["id"] in asked]
    regrets, forgotten = repeated(store, thread_id, calls, {tool.name for tool in wiring.readers})
    for call in calls:
        # A long text is read in parts; it was missed once.
        if call["name"] == wiring.read_tool_output.name and not call["args"].get("offset"):
            regret = read_back(store, thread_id, str(call["args"].get("handle", "")), str(call["id"]))
            if regret is not None:
                regrets[str(call["id"])] = regret
    return regrets, forgotten


def _long(results: Sequence[ToolMessage], runtime: Runtime[Context], wiring: Wiring) -> list[ToolMessage]:
    context = context_of(runtime)
    limit, count = context.tool_output_tokens, wiring.counter(context).text
    texts = [(result, str(result.text)) for result in results]
    # A token is at least one byte: short texts need no count.
    return [result for result, text in texts if len(text.encode("utf-8", "replace")) > limit and count(text) > limit]


def _events(
    long: Sequence[ToolMessage], stand_ins: dict[str, ToolMessage], wiring: Wiring, context: Context
) -> list[Event]:
    counter = wiring.counter(context)
    return [
        Offloaded(
            reason="tool output over the limit",
            message_id=str(message.id),
            handle=str(marks(stand_ins[str(message.id)])["handle"]),
            tokens_before=counter.message(message),
            tokens_after=counter.message(stand_ins[str(message.id)]),
            limit=context.tool_output_tokens,
        )
        for message in long
    ]


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
    return "r-" + hashlib.sha256(f"{call.id}\x00{call_id}".encode("utf-8", "replace")).hexdigest()[:24]
