"""Trim the working set before a model call."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial

from langchain_core.messages import BaseMessage, RemoveMessage
from langgraph.runtime import Runtime
from langgraph.store.base import PutOp

from everthread.errors import BudgetError
from everthread.ledger.events import Event, Evicted, Masked
from everthread.ledger.record import now
from everthread.nodes.deps import NodeDeps
from everthread.nodes.node_run import NodeRun
from everthread.nodes.prompt_plan import with_summary
from everthread.nodes.sizes import PromptSize
from everthread.state import Context, PromptPlan, State, Summary, Update, namespaces
from everthread.state.marks import handle_of, is_recalled, marks
from everthread.storage.refetches import left_operations
from everthread.storage.summaries import put_operation
from everthread.storage.transcript import append_operations
from everthread.window.compaction import absorb
from everthread.window.draft import EvictionPlan
from everthread.window.eviction import plan_trim
from everthread.window.turns import question_of


def trim(state: State, runtime: Runtime[Context], deps: NodeDeps) -> Update:
    """Mask old tool results and evict the oldest turns once the working set is over the budget.

    The transcript gets a message before the working set loses it, and turns leave whole, so a tool
    call never loses its result.

    Args:
        state: `messages`, oldest first; `ceiling`, what an overflow left of the budget.
        runtime: `context` gives window, policy and watermarks.

    Returns:
        Removals and masked stand-ins; empty when everything fits.

    Raises:
        BudgetError: what is pinned needs more than the budget.
    """
    run = NodeRun.of(state, runtime, deps)
    plan = run.plan()
    shrinking = plan_shrinking(run, plan)
    size, eviction, dropped, summary = shrinking.size, shrinking.eviction, shrinking.recalled, shrinking.summary
    if not eviction.evicted and not eviction.masked and summary is None and not dropped:
        return run.plan_update(plan)
    if summary is not None:
        plan = with_summary(plan, summary, deps.agent)
    events = masked_events(eviction.masked, size, eviction.reason)
    if eviction.evicted:
        events.append(
            Evicted(
                policy=run.context.policy,
                reason=eviction.reason,
                message_ids=[str(message.id) for message in eviction.evicted],
                tokens_before=eviction.tokens_before,
                tokens_after=eviction.tokens_after,
                budget=size.budget.tokens,
            )
        )
    causes = {
        "evicted": eviction.evicted,
        "masked": eviction.masked,
        "summary shortened": summary is not None,
        "recalled left": dropped,
    }
    moved = next(cause for cause, is_so in causes.items() if is_so)
    return shrink(run, plan, eviction, recalled=dropped, summary=summary, events=events, moved=moved)


@dataclass(frozen=True)
class Shrinking:
    """What one trim does, decided and not done yet."""

    size: PromptSize
    """Of what was planned for."""
    eviction: EvictionPlan
    recalled: Sequence[BaseMessage]
    """Recalled messages that go."""
    remaining: Sequence[BaseMessage]
    """The messages that stay, as the prompt will show them."""
    summary: Summary | None
    """The summary by rules, when it changes."""
    needed_for_rules: int = 0
    """Tokens that the user's rules would need beside the messages, where one of them found no room; 0 where all did."""


def plan_shrinking(run: NodeRun, plan: PromptPlan) -> Shrinking:
    """Decide what leaves before a call; nothing is changed.

    Raises:
        BudgetError: what is pinned needs more than the budget.
    """
    try:
        shrinking = _planned(run, plan)
    except BudgetError as failure:
        if overflows := run.state.get("overflows", 0):
            raise BudgetError(
                f"the provider refused the prompt as too long {overflows} times, and it cannot get smaller: {failure}"
            ) from failure
        raise
    if shrinking.needed_for_rules:
        # Messages that stay by their number may leave no room for the rules of those that go; then more give way.
        try:
            roomier = _planned(run, plan, aside=shrinking.needed_for_rules)
        except BudgetError:
            return shrinking
        return roomier if roomier.needed_for_rules < shrinking.needed_for_rules else shrinking
    return shrinking


def _planned(run: NodeRun, plan: PromptPlan, *, aside: int = 0) -> Shrinking:
    """Decide what leaves before a call.

    Args:
        aside: tokens to be left free beside the messages.
    """
    size, eviction, dropped = _fitted(run.size(plan), run.context, aside)
    gone = {message.id for message in dropped}
    remaining = eviction.remaining(message for message in run.messages if message.id not in gone)
    summary, needed_for_rules = None, 0
    if eviction.evicted or eviction.tokens_after > size.room:
        # By rules: there is no time for a model ahead of a call.
        fold = partial(absorb, size.summary, eviction.evicted, remaining, counter=size.counter, rules=run.deps.rules)
        summary = fold(limits=size.limits_beside(eviction.tokens_after))
        if summary.rules_left_out > (size.summary.rules_left_out if size.summary else 0):
            kept = set(summary.constraints)
            lost = [rule for rule in fold(limits=size.limits).constraints if rule not in kept]
            needed_for_rules = size.rules_tokens([*kept, *lost]) if lost else 0
    return Shrinking(size, eviction, dropped, remaining, summary, needed_for_rules)


def _fitted(size: PromptSize, context: Context, aside: int) -> tuple[PromptSize, EvictionPlan, list[BaseMessage]]:
    """Plan what leaves. While it does not fit, more gives way, in this order.

    First what was recalled for earlier questions, then the summary, which shrinks to the user's own rules, then what
    was recalled for this question.

    Returns:
        The size of what was planned for, the plan, and the recalled messages that go. The plan may leave more than
        `size.room`: the summary has to shrink.

    Raises:
        BudgetError: what is pinned needs more than the budget.
    """
    recalled = [message for message in size.parts.working_set if is_recalled(message)]
    question = question_of(size.parts.working_set)
    current = [message for message in recalled if question is not None and marks(message)["before"] == question.id]
    earlier = [message for message in recalled if message not in current]
    # A prompt that fits keeps all of it: only a policy that counts messages has something to do then.
    fewest = [] if size.used <= size.room else earlier
    for dropped, tokens_aside in ((fewest, sum(size.counter.sizes(current))), (recalled, 0)):
        # What was recalled for this question stands ahead of it and would leave with the turn before. So the plan is
        # made without it, and its tokens are set aside.
        planned = size.without([*dropped, *current])
        for room in (planned.room, planned.room_without_story):
            try:
                eviction = plan_trim(
                    planned.parts.working_set, room=room - tokens_aside - aside, context=context, counter=size.counter
                )
            except BudgetError as error:
                failure = error
                continue
            eviction.tokens_before += tokens_aside
            eviction.tokens_after += tokens_aside
            return planned, eviction, dropped
    raise failure


def leaving(run: NodeRun, evicted: Sequence[BaseMessage], masked_ids: Collection[str]) -> list[PutOp]:
    """Prepare the writes for what leaves the working set: full messages, where handles lead, what to notice later.

    Args:
        masked_ids: ids of the messages that a stand-in replaces.
    """
    thread_id, user_id, messages, turn = run.thread_id, run.context.user_id, run.messages, run.turn
    masked = [message for message in messages if str(message.id) in masked_ids]
    return [
        *append_operations(thread_id, user_id, evicted, why="evicted", at=now(), among=messages),
        *append_operations(thread_id, user_id, masked, why="offloaded", at=now(), among=messages),
        *(handle_operation(thread_id, str(message.id)) for message in masked),
        *left_operations(thread_id, masked, messages, "masked", turn),
        *left_operations(thread_id, evicted, messages, "evicted", turn),
    ]


def handle_operation(thread_id: str, message_id: str) -> PutOp:
    """Prepare the write that lets a handle lead to its message."""
    namespace = namespaces.thread(thread_id, "handles")
    return PutOp(namespace, handle_of(message_id), {"message_id": message_id}, index=None)


def shrink(
    run: NodeRun,
    plan: PromptPlan,
    leaves: EvictionPlan,
    *,
    recalled: Sequence[BaseMessage],
    summary: Summary | None,
    events: Sequence[Event],
    moved: str,
) -> Update:
    """Archive what leaves the working set and put stand-ins and summary in its place.

    Args:
        plan: as it is from now on.
        recalled: recalled messages that go; the transcript has them already.
        summary: when it has changed.
        moved: why the head of the prompt is not as it was; empty when it is.
    """
    operations = leaving(run, leaves.evicted, leaves.masked)
    update: Update = {}
    gone = [RemoveMessage(id=str(message.id)) for message in (*leaves.evicted, *recalled)]
    if gone or leaves.masked:
        update["messages"] = [*gone, *leaves.masked.values()]
    if summary is not None:
        update["summary_id"], write = put_operation(run.thread_id, summary)
        operations.append(write)
    if moved:
        update["moved"] = moved
    run.record(events, operations)
    return {**run.plan_update(plan), **update}


def masked_events(stand_ins: dict[str, BaseMessage], size: PromptSize, reason: str) -> list[Event]:
    """Return an event for each masked message.

    Args:
        stand_ins: by message id.
    """
    return [
        Masked(
            reason=reason,
            message_id=str(message.id),
            handle=str(marks(stand_ins[str(message.id)])["handle"]),
            tokens_before=size.counter.message(message),
            tokens_after=size.counter.message(stand_ins[str(message.id)]),
            budget=size.budget.tokens,
        )
        for message in size.parts.working_set
        if str(message.id) in stand_ins
    ]
