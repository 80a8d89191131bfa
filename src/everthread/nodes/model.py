"""Call the model with a prompt that holds its budget."""

import hashlib
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, ToolCall
from langgraph.runtime import Runtime
from langgraph.store.base import PutOp

from everthread.errors import ModelError
from everthread.ledger.events import Event, Overflow, PinRepaired, PromptAssembled
from everthread.ledger.record import now, record
from everthread.ledger.telemetry import Call
from everthread.models.names import did_you_mean
from everthread.models.wrapped import reply_limited
from everthread.nodes.deps import ModelWithTools, NodeDeps, context_of, store_of, thread_of
from everthread.nodes.failures import check_complete, classify, is_overflow, overflow_sizes
from everthread.nodes.model_calls import ModelCall, ModelCalls
from everthread.nodes.prompt_plan import plan_of, plan_update
from everthread.nodes.prompt_recipe import kept_recipe
from everthread.nodes.sizes import PromptSize, calibration_of, has_readers
from everthread.nodes.spending import Account, limit_reply
from everthread.state import Context, PromptPlan, State, Update
from everthread.state.marks import marked
from everthread.state.reducer import clean_content
from everthread.window.assembly import Prompt, assemble
from everthread.window.budget import MAX_OVERFLOWS, Budget, stepped_down
from everthread.window.calibration import Anchor, Calibration
from everthread.window.prompt_cache import mark_cache


def model(state: State, runtime: Runtime[Context], deps: NodeDeps) -> ModelCalls[Update]:
    """Send the prompt once and keep the reply.

    Returns:
        The reply, which says so when a limit of `Spend` ends the turn; or, when the provider refuses the prompt as too
        long, a lower ceiling for `trim`.

    Raises:
        BudgetError: what is pinned does not fit the window.
        ModelError: the call failed for good. The user's message stays, and the next run continues the turn.
    """
    context, plan = context_of(runtime), plan_of(state, runtime, deps)
    chat = deps.model_for(context)
    is_bound = has_readers(state)
    is_marked = chat.takes_cache_control if context.prompt_cache is None else context.prompt_cache
    marks = chat.cache_slots if is_marked else 0
    size = PromptSize.of(state, plan, chat, reads_back=is_bound)
    prompt = _assembled(state, size, chat, reads_back=is_bound, marks=marks)
    account = Account.of(state, runtime, deps)
    reservation = account.reply(size, prompt.tokens) if account is not None else None
    if isinstance(reservation, str):
        ended: Update = {"messages": [marked(limit_reply(reservation, state), at=now())]}
        return {**plan_update(state, plan), **ended, **({} if chat.response is None else {"structured_response": None})}
    name = _recorded(prompt, size, state, plan, runtime, chat, reads_back=is_bound, marks=marks)
    telemetry = Call.begin(thread_of(runtime), chat.name, chat.provider, prompt.tokens)
    try:
        bound = chat.bound(reads_back=is_bound)
        if context.max_output_tokens is not None:
            bound = reply_limited(bound, context.max_output_tokens)
        messages = mark_cache(prompt.messages, slots=marks) if marks else prompt.messages
        try:
            reply = yield ModelCall(bound, messages, is_reply=True)
        except Exception as error:
            if account is not None and reservation is not None:
                account.failed(reservation, error)
            raise
        if account is not None and reservation is not None:
            account.settle(reservation, reply, messages, chat.provider, chat.name, name)
        if not isinstance(reply, AIMessage):
            kind = type(reply).__name__
            raise ModelError(f"the model returned a {kind} instead of an assistant message", kind="invalid")
        check_complete(reply)
        reply = _savable(reply)
    except Exception as error:
        telemetry.end(error=error)
        if not is_overflow(error):
            failure = classify(error)
            if failure is None or failure is error:
                raise
            raise _with_suggestion(failure, chat) from error
        smaller = _stepped_down(error, state, prompt, size.budget, runtime, chat)
        return {**plan_update(state, plan), **smaller}
    telemetry.end(reply)
    update = _kept(reply, state, prompt, name, chat, reads_back=is_bound)
    if chat.response is not None:
        # None as well: the answer of an earlier turn is not this one's.
        update["structured_response"] = chat.answer(update["messages"][0])
    return {**plan_update(state, plan), **update}


def _with_suggestion(failure: ModelError, chat: ModelWithTools) -> ModelError:
    """Say which model was probably meant by a name that the provider does not know."""
    guess = did_you_mean(f"{chat.provider}:{chat.name}") if failure.kind == "not_found" else ""
    return ModelError(f"{failure}{guess}", kind=failure.kind) if guess else failure


def _assembled(state: State, size: PromptSize, chat: ModelWithTools, *, reads_back: bool, marks: int) -> Prompt:
    """Put the prompt together."""
    return assemble(
        size.parts,
        size.budget,
        size.counter,
        previous=state.get("prefix", b""),
        # A provider caches for one model, behind the schemas of its tools.
        tools="\x00".join((chat.name, str(marks), *chat.tool_names(reads_back=reads_back))),
    )


def _recorded(
    prompt: Prompt,
    size: PromptSize,
    state: State,
    plan: PromptPlan,
    runtime: Runtime[Context],
    chat: ModelWithTools,
    *,
    reads_back: bool,
    marks: int,
) -> str:
    """Record what a prompt that is about to be sent is made of, and name the call."""
    tools = chat.tool_names(reads_back=reads_back)
    cause = "tools" if reads_back and not state.get("reads_back") else state.get("moved") or "unknown"
    recipe, texts = kept_recipe(
        prompt, state, plan, store_of(runtime), thread_of(runtime), tools=tools, model=chat.name, cache_marks=marks
    )
    if chat.is_altered:
        recipe["altered"] = True
    event = PromptAssembled(
        window=size.budget.window,
        budget=size.budget.tokens,
        tokens=prompt.tokens,
        breakdown=prompt.breakdown,
        cacheable_tokens=prompt.cacheable_tokens,
        accuracy=calibration_of(state, chat).accuracy,
        messages=len(prompt.messages),
        head_moved=cause if prompt.head_moved else "",
        attempt=state.get("overflows", 0),
        recipe=recipe,
        watermarks=size.watermarks(plan.context),
    )
    events: list[Event] = [event]
    if prompt.returned_pins and prompt.head_moved:
        events.append(PinRepaired(pins=prompt.returned_pins))
    _record(events, state, runtime, texts)
    return recipe["call"]


def _record(events: Sequence[Event], state: State, runtime: Runtime[Context], operations: Sequence[PutOp] = ()) -> None:
    store, turn = store_of(runtime), state.get("turns", 0)
    record(store, thread_of(runtime), events, write=runtime.stream_writer, turn=turn, operations=operations)


def _stepped_down(
    error: Exception,
    state: State,
    prompt: Prompt,
    budget: Budget,
    runtime: Runtime[Context],
    chat: ModelWithTools,
) -> Update:
    """Lower the budget after an overflow, and let the counts learn from one that names sizes.

    Raises:
        ModelError: the prompt overflowed too often.
    """
    attempt = state.get("overflows", 0) + 1
    if attempt > MAX_OVERFLOWS:
        raise ModelError(
            f"the provider refused the prompt as too long {attempt} times, the last one with {prompt.tokens:,} tokens "
            f"by our count; set `window` to the model's real input limit (now {budget.window:,})",
            kind="overflow",
        ) from error
    sizes = overflow_sizes(error)
    used = sum(prompt.breakdown[name] for name in ("summary", "session_notes", "recalled", "history"))
    ceiling = stepped_down(budget.tokens, used, reported=sizes)
    event = Overflow(attempt=attempt, tokens=prompt.tokens, budget=budget.tokens, next_budget=ceiling)
    _record([event], state, runtime)
    reported, limit = sizes
    calibration = calibration_of(state, chat)
    if reported:
        calibration = calibration.observe(prompt.tokens, reported)
    elif limit:
        calibration = calibration.observe_overflow(prompt.tokens, limit)
    return {"overflows": attempt, "ceiling": ceiling, **_learned(calibration, chat)}


def _learned(calibration: Calibration, chat: ModelWithTools) -> Update:
    if not calibration.anchors:
        return {}
    return {"calibration": {"model": chat.name, **calibration.to_json()}}


def _savable(reply: AIMessage) -> AIMessage:
    """Return a reply as it can be saved: without integers over 64 bits beside its calls, which `_kept` cleans."""
    fields = ("content", "additional_kwargs", "response_metadata")
    cleaned = {name: clean_content(getattr(reply, name)) for name in fields}
    return reply if all(cleaned[name] == getattr(reply, name) for name in fields) else reply.model_copy(update=cleaned)


def _kept(
    reply: AIMessage, state: State, prompt: Prompt, name: str, chat: ModelWithTools, *, reads_back: bool
) -> Update:
    reply = _with_unique_calls(_with_unique_id(reply, state))
    update: Update = {"messages": [marked(reply, at=now())], "prefix": prompt.prefix, "call": name}
    if state.get("overflows"):
        update["overflows"] = 0
    if state.get("moved"):
        update["moved"] = ""
    if reads_back and not state.get("reads_back"):
        update["reads_back"] = True
    if anchor := Anchor.of(reply, prompt.tokens):
        learned = _learned(calibration_of(state, chat).observe(anchor.counted, anchor.reported), chat)
        if learned.get("calibration") != state.get("calibration"):
            update |= learned
    return update


def _with_unique_id(reply: AIMessage, state: State) -> AIMessage:
    """Give a reply an id of its own: some servers use one again, and it would replace the earlier message."""
    taken = {message.id for message in state.get("messages", [])}
    if reply.id and reply.id not in taken:
        return reply
    text = f"{reply.id}\x00{state.get('turns', 0)}\x00{len(taken)}"
    return reply.model_copy(update={"id": "a-" + hashlib.sha256(text.encode()).hexdigest()[:24]})


def _with_unique_calls(reply: AIMessage) -> AIMessage:
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
        # What no checkpoint can hold, such as an integer of a hundred digits, would fail the turn.
        unique.append({**call, "id": name, "args": clean_content(call["args"])})
    return reply.model_copy(update={"tool_calls": unique, "invalid_tool_calls": []})


def _repaired(call: Any) -> ToolCall:
    return ToolCall(name=call.get("name") or "unknown", args={}, id=call.get("id"), type="tool_call")
