"""Call the model with a prompt that holds its budget."""

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.messages import AIMessage, ToolCall
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime

from everthread.errors import ModelError
from everthread.ledger.events import Event, Overflow, PinRepaired, PromptAssembled
from everthread.ledger.record import now, record
from everthread.ledger.telemetry import Call
from everthread.nodes.failures import check_complete, classify, is_overflow, overflow_sizes
from everthread.nodes.inject_memory import resolved
from everthread.nodes.wiring import Bound, Wiring, context_of, parts_of, store_of, thread_of
from everthread.state import Context, State, Update
from everthread.state.marks import marked
from everthread.window.assembly import Prompt, assemble
from everthread.window.budget import MAX_OVERFLOWS, Budget, stepped_down
from everthread.window.calibration import Anchor


def model(state: State, config: RunnableConfig, runtime: Runtime[Context], wiring: Wiring) -> Update:
    """Send the prompt once and keep the reply.

    Returns:
        The reply; or, when the provider refuses the prompt as too long, a lower ceiling for `trim`.

    Raises:
        BudgetError: what is pinned does not fit the window.
        ModelError: the call failed for good. The user's message stays, and the next run continues the turn.
    """
    ready = _prepare(state, runtime, wiring)
    call = _call(ready.prompt, runtime, wiring)
    try:
        reply = ready.chat.invoke(ready.prompt.messages, config)
        check_complete(_as_message(reply))
    except Exception as error:  # noqa: BLE001 - providers raise what they like; `_failed` sorts it out
        call.end(error=error)
        return _failed(error, ready, runtime, wiring)
    call.end(_as_message(reply))
    return _kept(_as_message(reply), ready, runtime, wiring)


async def amodel(state: State, config: RunnableConfig, runtime: Runtime[Context], wiring: Wiring) -> Update:
    """Do what `model` does without blocking the event loop."""
    ready = await asyncio.to_thread(_prepare, state, runtime, wiring)
    call = _call(ready.prompt, runtime, wiring)
    try:
        reply = await ready.chat.ainvoke(ready.prompt.messages, config)
        check_complete(_as_message(reply))
    except Exception as error:  # noqa: BLE001 - as in `model`
        call.end(error=error)
        return await asyncio.to_thread(_failed, error, ready, runtime, wiring)
    call.end(_as_message(reply))
    return _kept(_as_message(reply), ready, runtime, wiring)


@dataclass(frozen=True)
class _Ready:
    """One call, ready to be made."""

    state: State
    """What the prompt is made of: with what no checkpoint has."""
    prompt: Prompt
    budget: Budget
    chat: Bound


def _prepare(state: State, runtime: Runtime[Context], wiring: Wiring) -> _Ready:
    context = context_of(runtime)
    state = {**state, **resolved(state, runtime, wiring)}
    counter, reads_back = wiring.counter(context), wiring.reads_back(state)
    budget = wiring.budget(state, context, reads_back=reads_back)
    prompt = assemble(
        parts_of(state, context, wiring),
        budget,
        counter,
        previous=state.get("prefix", b""),
        tools="with reader" if reads_back else "",
    )
    newly_bound = reads_back and not state.get("reads_back")
    cause = "tools" if newly_bound else state.get("moved") or "unknown"
    moved = cause if prompt.head_moved else ""
    event = PromptAssembled(
        window=budget.window,
        budget=budget.tokens,
        tokens=prompt.tokens,
        breakdown=prompt.breakdown,
        cacheable_tokens=prompt.cacheable_tokens,
        accuracy=wiring.calibration(state, context).accuracy,
        messages=len(prompt.messages),
        head_moved=moved,
        attempt=state.get("overflows", 0),
    )
    events: list[Event] = [event]
    if prompt.returned_pins and prompt.head_moved:
        events.append(PinRepaired(pins=prompt.returned_pins))
    _record(events, state, runtime)
    chat = wiring.bound(context, reads_back=reads_back)
    if context.max_output_tokens is not None:
        chat = replace(chat, kwargs={**chat.kwargs, "max_tokens": context.max_output_tokens})
    return _Ready(state, prompt, budget, chat)


def _record(events: Sequence[Event], state: State, runtime: Runtime[Context]) -> None:
    record(store_of(runtime), thread_of(runtime), events, write=runtime.stream_writer, turn=state.get("turns", 0))


def _call(prompt: Prompt, runtime: Runtime[Context], wiring: Wiring) -> Call:
    """Note when a call begins, for OpenTelemetry when that is configured."""
    chat = wiring.model_for(context_of(runtime))
    known = chat._get_ls_params()
    name = known.get("ls_model_name") or wiring.name_of(chat) or "unknown"
    return Call.begin(thread_of(runtime), name, str(known.get("ls_provider") or chat._llm_type), prompt.tokens)


def _failed(error: Exception, ready: _Ready, runtime: Runtime[Context], wiring: Wiring) -> Update:
    """Step the budget down after an overflow; turn every other failure into one clear error."""
    state, prompt, budget = ready.state, ready.prompt, ready.budget
    if not is_overflow(error):
        failure = error if isinstance(error, ModelError) else classify(error)
        raise failure if failure is not None else error
    attempt = state.get("overflows", 0) + 1
    told = overflow_sizes(error)
    if attempt > MAX_OVERFLOWS:
        raise ModelError(
            f"the provider refused the prompt as too long {attempt} times, the last one with {prompt.tokens:,} tokens "
            f"by our count; set `window` to the model's real input limit (now {budget.window:,})",
            kind="overflow",
        ) from error
    used = sum(prompt.breakdown[name] for name in ("summary", "session_notes", "recalled", "history"))
    ceiling = stepped_down(budget.tokens, used, told=told)
    event = Overflow(attempt=attempt, tokens=prompt.tokens, budget=budget.tokens, next_budget=ceiling)
    _record([event], state, runtime)
    return {"overflows": attempt, "ceiling": ceiling, **_learned(told, state, runtime, prompt, wiring)}


def _learned(
    told: tuple[int | None, int | None], state: State, runtime: Runtime[Context], prompt: Prompt, wiring: Wiring
) -> Update:
    """Let the counts learn from a refusal that names sizes; one without sizes teaches only to step down."""
    context = context_of(runtime)
    reported, limit = told
    calibration = wiring.calibration(state, context)
    if reported:
        calibration = calibration.observe(prompt.tokens, reported)
    elif limit:
        calibration = calibration.observe_refusal(prompt.tokens, limit)
    if not calibration.anchors:
        return {}
    return {"calibration": {"model": wiring.model_name(context), **calibration.to_json()}}


def _kept(reply: AIMessage, ready: _Ready, runtime: Runtime[Context], wiring: Wiring) -> Update:
    state, prompt = ready.state, ready.prompt
    reply = _callable(_renamed(reply, state))
    update: Update = {
        "messages": [marked(reply, at=now())],
        "prefix": prompt.prefix,
        "overflows": 0,
        "moved": "",
        "reads_back": wiring.reads_back(state),
    }
    if anchor := Anchor.of(reply, prompt.tokens):
        context = context_of(runtime)
        learned = wiring.calibration(state, context).observe(anchor.counted, anchor.reported)
        update["calibration"] = {"model": wiring.model_name(context), **learned.to_json()}
    return update


def _as_message(reply: object) -> AIMessage:
    if not isinstance(reply, AIMessage):
        raise ModelError(f"the model returned a {type(reply).__name__} instead of an assistant message", kind="invalid")
    return reply


def _renamed(reply: AIMessage, state: State) -> AIMessage:
    """Give a reply an id of its own: some servers use one again, and it would replace the earlier message."""
    known = {message.id for message in state.get("messages", [])}
    if reply.id and reply.id not in known:
        return reply
    told = f"{reply.id}\x00{state.get('turns', 0)}\x00{len(known)}"
    return reply.model_copy(update={"id": "a-" + hashlib.sha256(told.encode()).hexdigest()[:24]})


def _callable(reply: AIMessage) -> AIMessage:
    """Give every call an id of its own and make malformed calls answerable.

    Some servers send calls without ids or with the same id twice, and a call whose arguments are not
    JSON would stay unanswered; with empty arguments the tool answers with what is missing.
    """
    calls = [*reply.tool_calls, *(_repaired(call) for call in reply.invalid_tool_calls)]
    if not calls:
        return reply
    seen: set[str] = set()
    unique: list[ToolCall] = []
    for place, call in enumerate(calls):
        name = call.get("id") or ""
        if not name or name in seen:
            name = "call_" + hashlib.sha256(f"{reply.id}\x00{place}".encode()).hexdigest()[:16]
        seen.add(name)
        unique.append({**call, "id": name})
    return reply.model_copy(update={"tool_calls": unique, "invalid_tool_calls": []})


def _repaired(call: Any) -> ToolCall:
    return ToolCall(name=call.get("name") or "unknown", args={}, id=call.get("id"), type="tool_call")
