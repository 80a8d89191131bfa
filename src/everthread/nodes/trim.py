"""Trim the working set before every model call."""

from collections.abc import Sequence
from functools import partial

from langchain_core.messages import BaseMessage, RemoveMessage
from langgraph.runtime import Runtime
from langgraph.store.base import PutOp

from everthread.errors import BudgetError
from everthread.ledger.events import Event, Evicted, Masked
from everthread.ledger.record import now, record
from everthread.nodes.inject_memory import resolved
from everthread.nodes.sizing import Sizes
from everthread.nodes.wiring import Wiring, context_of, store_of, thread_of
from everthread.state import Context, Memory, State, Summary, Update, namespaces
from everthread.state.marks import marks
from everthread.storage.regrets import left_operations
from everthread.storage.summaries import put_operation
from everthread.storage.transcript import append_operations
from everthread.window.compaction import absorb
from everthread.window.eviction import Plan, plan_trim
from everthread.window.masking import handle_of


def trim(state: State, runtime: Runtime[Context], wiring: Wiring) -> Update:
    """Mask old tool results and evict the oldest turns once the working set is over the budget.

    The transcript gets a message before the working set loses it, and turns leave whole, so a tool
    call never loses its result.

    Args:
        state: `messages`, oldest first; `ceiling`, what a refusal left of the budget.
        runtime: `context` gives window, policy and watermarks.
        wiring: agent, model and tools.

    Returns:
        Removals and masked stand-ins; empty when everything fits.

    Raises:
        BudgetError: what is pinned needs more than the budget.
    """
    context, store, thread_id = context_of(runtime), store_of(runtime), thread_of(runtime)
    update = resolved(state, runtime, wiring)
    state = {**state, **update}
    messages = state.get("messages", [])
    if not messages:
        return update
    sizes, plan, shrinks = _fitted(state, context, wiring)
    if state["memory"].get("recalled") and not sizes.parts.recalled:
        update["memory"] = {**state["memory"], "recalled": ""}
    if not plan.evicted and not plan.masked and not shrinks:
        return update
    operations = archive(plan.evicted, list(plan.masked), messages, thread_id, context.user_id)
    operations += forgotten(plan.evicted, list(plan.masked.values()), messages, thread_id, state.get("turns", 0))
    if plan.evicted or shrinks:
        summary = _absorbed(plan, messages, sizes)
        summary_id, write = put_operation(thread_id, summary)
        wiring.keep_summary(summary_id, summary, instead_of=state.get("summary_id"))
        update["summary_id"] = summary_id
        update["summary"] = dict(write.value or {})
        operations.append(write)
    events = _events(plan, messages, sizes, context)
    record(
        store,
        thread_id,
        events,
        write=runtime.stream_writer,
        turn=state.get("turns", 0),
        operations=operations,
    )
    update["moved"] = "evicted" if plan.evicted else "masked" if plan.masked else "summary shortened"
    return {**update, "messages": removals(plan.evicted, list(plan.masked.values()))}


def _fitted(state: State, context: Context, wiring: Wiring) -> tuple[Sizes, Plan, bool]:
    """Plan with the recalled passages, else without: what was recalled helps, what was said now must be there.

    Returns:
        What was measured, the plan, and whether the summary has to shrink.

    Raises:
        BudgetError: what is pinned needs more than the budget.
    """
    messages, sizes = state["messages"], Sizes.of(state, context, wiring)
    try:
        return sizes, *_planned(messages, sizes, context)
    except BudgetError as error:
        failure = error
    if sizes.parts.recalled:
        memory: Memory = {**state["memory"], "recalled": ""}
        sizes = Sizes.of({**state, "memory": memory}, context, wiring)
        try:
            return sizes, *_planned(messages, sizes, context)
        except BudgetError as error:
            failure = error
    if refusals := state.get("overflows", 0):
        raise BudgetError(
            f"the provider refused the prompt as too long {refusals} times, and it cannot get any smaller: {failure}"
        ) from failure
    raise failure


def _planned(messages: Sequence[BaseMessage], sizes: Sizes, context: Context) -> tuple[Plan, bool]:
    """Plan beside the summary as it is; when what must stay does not fit then, the summary gives way.

    Returns:
        The plan, and whether the summary has to shrink.
    """
    plan_with = partial(plan_trim, messages, context=context, counter=sizes.counter)
    try:
        return plan_with(room=sizes.room), False
    except BudgetError:
        plan = plan_with(room=sizes.room_least)
        return plan, plan.tokens_after > sizes.room


def _absorbed(plan: Plan, messages: Sequence[BaseMessage], sizes: Sizes) -> Summary:
    """Fold what leaves into the summary by rules: there is no time for a model ahead of a call."""
    gone = {str(message.id) for message in plan.evicted}
    remaining = [plan.masked.get(str(m.id), m) for m in messages if str(m.id) not in gone]
    limits = sizes.limits_for(plan.tokens_after)
    return absorb(sizes.summary, plan.evicted, remaining, limits=limits, counter=sizes.counter)


def archive(
    evicted: Sequence[BaseMessage],
    masked_ids: Sequence[str],
    messages: Sequence[BaseMessage],
    thread_id: str,
    user_id: str,
) -> list[PutOp]:
    """Prepare the writes that keep what leaves the working set: full messages, and where handles lead.

    Args:
        evicted: messages that leave.
        masked_ids: ids of the messages that a stand-in replaces.
        messages: the working set.
        thread_id: the thread.
        user_id: whose conversation it is.
    """
    masked = [message for message in messages if str(message.id) in set(masked_ids)]
    return [
        *append_operations(thread_id, user_id, evicted, why="evicted", at=now(), among=messages),
        *append_operations(thread_id, user_id, masked, why="offloaded", at=now(), among=messages),
        *(handle_operation(thread_id, str(message.id)) for message in masked),
    ]


def forgotten(
    evicted: Sequence[BaseMessage],
    masked: Sequence[BaseMessage],
    messages: Sequence[BaseMessage],
    thread_id: str,
    turn: int,
) -> list[PutOp]:
    """Prepare the writes by which it is noticed when something that leaves is needed again."""
    return [
        *left_operations(thread_id, masked, messages, "masked", turn),
        *left_operations(thread_id, evicted, messages, "evicted", turn),
    ]


def handle_operation(thread_id: str, message_id: str) -> PutOp:
    """Prepare the write that lets a handle lead to its message."""
    namespace = namespaces.thread(thread_id, "handles")
    return PutOp(namespace, handle_of(message_id), {"message_id": message_id}, index=None)


def removals(evicted: Sequence[BaseMessage], stand_ins: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return the writes to the messages channel."""
    return [*(RemoveMessage(id=str(message.id)) for message in evicted), *stand_ins]


def masked_events(
    stand_ins: Sequence[BaseMessage], messages: Sequence[BaseMessage], sizes: Sizes, reason: str
) -> list[Event]:
    """Return an event for each masked message."""
    counter = sizes.counter
    wanted = {message.id for message in stand_ins}
    before = {str(message.id): counter.message(message) for message in messages if message.id in wanted}
    return [
        Masked(
            reason=reason,
            message_id=str(message.id),
            handle=str(marks(message)["handle"]),
            tokens_before=before[str(message.id)],
            tokens_after=counter.message(message),
            budget=sizes.budget.tokens,
        )
        for message in stand_ins
    ]


def _events(plan: Plan, messages: Sequence[BaseMessage], sizes: Sizes, context: Context) -> list[Event]:
    found = masked_events(list(plan.masked.values()), messages, sizes, plan.reason)
    if plan.evicted:
        found.append(
            Evicted(
                policy=context.policy,
                reason=plan.reason,
                message_ids=[str(message.id) for message in plan.evicted],
                tokens_before=plan.tokens_before,
                tokens_after=plan.tokens_after,
                budget=sizes.budget.tokens,
            )
        )
    return found
