"""Call the model with a prompt that holds its budget."""

import hashlib
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, ToolCall
from langgraph.runtime import Runtime

from everthread.errors import ModelError
from everthread.ledger.events import Overflow, PinRepaired, PromptAssembled
from everthread.ledger.record import now
from everthread.ledger.telemetry import Call
from everthread.models.calls import ModelCall, ModelCalls
from everthread.models.names import did_you_mean
from everthread.models.wrapped import reply_limited
from everthread.nodes.deps import BoundModel, ModelWithTools, NodeDeps
from everthread.nodes.failures import check_complete, classify, is_overflow, overflow_sizes
from everthread.nodes.node_run import NodeRun
from everthread.nodes.prompt_recipe import kept_recipe
from everthread.nodes.sizes import PromptSize, calibration_of, has_readers, is_evicted
from everthread.nodes.spending import Account, limit_reply
from everthread.state import Context, PromptPlan, State, Update
from everthread.state.marks import marked
from everthread.state.reducer import clean_content
from everthread.storage.transcript import archived_by_id
from everthread.window.assembly import Prompt, assemble
from everthread.window.budget import MAX_OVERFLOWS, stepped_down
from everthread.window.calibration import Calibration
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
    run = NodeRun.of(state, runtime, deps)
    attempt = _Attempt.of(run)
    chat, prompt, context, plan = attempt.chat, attempt.prompt, run.context, run.plan_update(attempt.plan)
    account = Account.of(state, runtime, deps)
    reservation = account.reply(attempt.size, prompt.tokens) if account is not None else None
    if isinstance(reservation, str):
        ended: Update = {"messages": [marked(limit_reply(reservation, state), at=now())]}
        return {**plan, **ended, **({} if chat.response is None else {"structured_response": None})}
    name = attempt.recorded()
    telemetry = Call(run.thread_id, chat.name, chat.provider, prompt.tokens)
    try:
        bound = attempt.bound.chat
        if context.max_output_tokens is not None:
            bound = reply_limited(bound, context.max_output_tokens)
        messages = mark_cache(prompt.messages, slots=attempt.marks) if attempt.marks else prompt.messages
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
        if is_overflow(error):
            return {**plan, **attempt.lowered(error)}
        failure = classify(error)
        if failure is None or failure is error:
            raise
        raise _with_suggestion(failure, chat) from error
    telemetry.end(reply)
    update = attempt.kept(reply, name)
    if chat.response is not None:
        # None as well: the answer of an earlier turn is not this one's.
        update["structured_response"] = chat.answer(update["messages"][0])
    return {**plan, **update}


def _with_suggestion(failure: ModelError, chat: ModelWithTools) -> ModelError:
    """Say which model was probably meant by a name that the provider does not know."""
    guess = did_you_mean(f"{chat.provider}:{chat.name}") if failure.kind == "not_found" else ""
    return ModelError(f"{failure}{guess}", kind=failure.kind) if guess else failure


@dataclass(frozen=True)
class _Attempt:
    """A prompt that is about to be sent, and what it is made from."""

    run: NodeRun
    plan: PromptPlan
    chat: ModelWithTools
    bound: BoundModel
    size: PromptSize
    prompt: Prompt
    reads_back: bool
    """The tools are bound that read what the prompt no longer shows."""
    marks: int
    """Marks for the provider's cache."""

    @classmethod
    def of(cls, run: NodeRun) -> "_Attempt":
        """Put the prompt together."""
        context, plan, reads_back = run.context, run.plan(), has_readers(run.state)
        chat = run.deps.model_for(context)
        is_marked = chat.takes_cache_control if context.prompt_cache is None else context.prompt_cache
        marks = chat.cache_slots if is_marked else 0
        bound, size = chat.bound(reads_back=reads_back), run.size(plan, reads_back=reads_back)
        # A provider caches for one model, behind the schemas of its tools.
        tools = "\x00".join((chat.name, str(marks), *bound.tool_names))
        prompt = assemble(size.parts, size.budget, size.counter, previous=run.state.get("prefix", b""), tools=tools)
        return cls(run, plan, chat, bound, size, prompt, reads_back, marks)

    def recorded(self) -> str:
        """Record what the prompt is made of, and name the call."""
        state, plan, prompt, size, chat = self.run.state, self.plan, self.prompt, self.size, self.chat
        cause = "tools" if self.reads_back and not state.get("reads_back") else state.get("moved") or "unknown"
        tools = self.bound.tool_names
        recipe, texts = kept_recipe(self.run, plan, prompt, tools=tools, model=chat.name, cache_marks=self.marks)
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
        returned = [PinRepaired(pins=prompt.returned_pins)] if prompt.returned_pins and prompt.head_moved else []
        self.run.record([event, *returned], texts)
        return recipe["call"]

    def lowered(self, error: Exception) -> Update:
        """Lower the budget after an overflow, and let the counts learn from one that names sizes.

        Raises:
            ModelError: the prompt overflowed too often.
        """
        attempt, prompt, budget = self.run.state.get("overflows", 0) + 1, self.prompt, self.size.budget
        if attempt > MAX_OVERFLOWS:
            raise ModelError(
                f"the provider refused the prompt as too long {attempt} times, the last one with {prompt.tokens:,} "
                f"tokens by our count; set `window` to the model's real input limit (now {budget.window:,})",
                kind="overflow",
            ) from error
        reported, limit = sizes = overflow_sizes(error)
        used = sum(prompt.breakdown[name] for name in ("summary", "session_notes", "recalled", "history"))
        ceiling = stepped_down(budget.tokens, used, reported=sizes)
        self.run.record([Overflow(attempt=attempt, tokens=prompt.tokens, budget=budget.tokens, next_budget=ceiling)])
        calibration = calibration_of(self.run.state, self.chat)
        if reported:
            calibration = calibration.observe(prompt.tokens, reported)
        elif limit:
            calibration = calibration.observe_overflow(prompt.tokens, limit)
        return {"overflows": attempt, "ceiling": ceiling, **_learned(calibration, self.chat)}

    def kept(self, reply: AIMessage, name: str) -> Update:
        """Return the update with a reply, and what it taught.

        Args:
            name: of the call.
        """
        state, prompt = self.run.state, self.prompt
        reply = _with_unique_calls(_with_unique_id(reply, self.run))
        update: Update = {"messages": [marked(reply, at=now())], "prefix": prompt.prefix, "call": name}
        if state.get("overflows"):
            update["overflows"] = 0
        if state.get("moved"):
            update["moved"] = ""
        if self.reads_back and not state.get("reads_back"):
            update["reads_back"] = True
        if usage := reply.usage_metadata:
            calibration = calibration_of(state, self.chat).observe(prompt.tokens, usage["input_tokens"])
            learned = _learned(calibration, self.chat)
            if learned.get("calibration") != state.get("calibration"):
                update |= learned
        return update


def _learned(calibration: Calibration, chat: ModelWithTools) -> Update:
    if not calibration.anchors:
        return {}
    return {"calibration": {"model": chat.name, **calibration.to_json()}}


def _savable(reply: AIMessage) -> AIMessage:
    """Return a reply as it can be saved: without integers over 64 bits; its calls are cleaned with their ids."""
    fields = ("content", "additional_kwargs", "response_metadata")
    cleaned = {name: clean_content(getattr(reply, name)) for name in fields}
    return reply if all(cleaned[name] == getattr(reply, name) for name in fields) else reply.model_copy(update=cleaned)


def _with_unique_id(reply: AIMessage, run: NodeRun) -> AIMessage:
    """Give a reply an id of its own: some servers use one again, and it would replace the earlier message."""
    taken = {message.id for message in run.messages}
    if reply.id and is_evicted(run.messages):
        taken |= {message.id for message in archived_by_id(run.store, run.thread_id, [reply.id])}
    if reply.id and reply.id not in taken:
        return reply
    text = f"{reply.id}\x00{run.turn}\x00{len(taken)}"
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
