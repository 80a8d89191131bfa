"""Compact the working set after the reply, so that the user never waits for it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from langchain_core.messages import BaseMessage, HumanMessage
from langgraph.runtime import Runtime

from everthread.errors import SpendError
from everthread.ledger.events import Compacted, Deferred, Event, FallbackUsed
from everthread.models.calls import ModelCall, ModelCalls
from everthread.models.wrapped import input_limit
from everthread.nodes.deps import NodeDeps
from everthread.nodes.failures import is_overflow
from everthread.nodes.node_run import NodeRun
from everthread.nodes.prompt_plan import with_summary
from everthread.nodes.sizes import PromptSize
from everthread.nodes.spending import metered
from everthread.nodes.trim import masked_events, shrink
from everthread.prompts import render
from everthread.state import Context, PromptPlan, State, Summary, Update
from everthread.state.marks import is_recalled
from everthread.storage.transcript import archived_by_id
from everthread.window.budget import UNKNOWN_WINDOW
from everthread.window.compaction import (
    absorb,
    line_sizes,
    numbered_lines,
    render_story,
    rewritten,
    usable,
    wants_summarizer,
)
from everthread.window.draft import EvictionPlan
from everthread.window.eviction import BY_TURNS, plan_fold
from everthread.window.pricing import calls_until_full, is_worth_now

SUMMARY_WORDS = 200
"""Length asked of a summariser (BEHAVIOUR §4)."""

MOST_CHUNKS = 6
"""Parts that the summariser reads in one compaction, the newest; what is beyond them is folded by rules."""

MOST_FAILURES = 3
"""Failures in a row after which the summariser is tried only at every fifth compaction."""

MINIMUM_PROGRESS = 0.10
"""Share of the budget that a compaction has to free; below it `trim` alone holds the budget."""

_FULL = 0.7
"""Share of a request that counts as full; the lines that would need another one wait."""

_NUMBER = 8
"""Tokens that the number in front of a line takes at the most, with the break after it."""

_CHUNK_SHARE = 0.7
"""Share of the summariser's window that new messages may take; the rest is for rules, old summary and reply."""


@dataclass(frozen=True)
class Compaction:
    """One compaction: what is folded, and the summary by rules that stands in any case."""

    fold: EvictionPlan
    size: PromptSize
    by_rules: Summary | None = None
    unread: Sequence[BaseMessage] = ()
    """What the summariser would read: messages folded since it was last asked; empty when it is not asked."""
    deferred: Deferred | None = None
    recalled: Sequence[BaseMessage] = ()
    """Recalled messages, which leave with the first compaction after their question."""


@metered
def summarize(
    state: State, runtime: Runtime[Context], deps: NodeDeps, *, is_asked_for: bool = False
) -> ModelCalls[Update]:
    """Go down to the low watermark, the cheapest step first: mask old tool results, then fold old turns.

    The rules write a summary first; a summariser may improve on it, and when it fails in any way the
    summary by rules stands, an event says so, and the turn succeeds.

    Args:
        runtime: `context` gives window, policy and watermarks.
        is_asked_for: a person wants it now, so it is not put off.
    """
    run = NodeRun.of(state, runtime, deps)
    plan = run.plan()
    compaction = plan_compaction(run, plan, is_asked_for=is_asked_for)
    summary, failure = compaction.by_rules, ""
    if summary is not None and compaction.unread:
        summary, failure = yield from _ask_summarizer(compaction, summary, deps)
    return _applied(run, plan, compaction, summary, failure)


def plan_compaction(run: NodeRun, plan: PromptPlan, *, is_asked_for: bool = False) -> Compaction:
    """Decide what one compaction folds and masks, and write the summary by rules; nothing is changed."""
    context, deps, size = run.context, run.deps, run.size(plan)
    recalled = [message for message in size.parts.working_set if is_recalled(message)]
    size = size.without(recalled) if recalled else size
    messages = size.parts.working_set
    target = int(size.room * context.low_watermark)
    kept = int(size.budget.tokens * context.low_watermark)
    fold = plan_fold(messages, target=target, kept=kept, context=context, counter=size.counter)
    remaining, by_turns = fold.remaining(messages), fold.reason == BY_TURNS
    if not fold.evicted and not fold.masked:
        return Compaction(fold, size)
    deferred = None if by_turns or is_asked_for else _deferral(fold, remaining, size, run.turn)
    if deferred is not None:
        return Compaction(EvictionPlan(), size, deferred=deferred)
    if not fold.evicted:
        return Compaction(fold, size, recalled=recalled)
    by_rules = absorb(size.summary, fold.evicted, remaining, limits=size.limits, counter=size.counter, rules=deps.rules)
    unread: list[BaseMessage] = []
    is_worth_it = by_turns or wants_summarizer(by_rules, _chunk_tokens(deps, size))
    if is_worth_it and _may_ask(by_rules, deps):
        gone = {str(message.id) for message in fold.evicted}
        earlier = [name for name in by_rules.pending if name not in gone]
        unread = [*archived_by_id(run.store, run.thread_id, earlier), *fold.evicted]
    return Compaction(fold, size, by_rules, unread, recalled=recalled)


def _deferral(fold: EvictionPlan, remaining: Sequence[BaseMessage], size: PromptSize, turn: int) -> Deferred | None:
    """Return why to wait: the prompt's head is cached, little would leave, and there is still room.

    Between the high watermark and the budget there is room to wait; `trim` holds the budget in any case.
    """
    used = size.used
    saved, reread, calls = token_savings(fold.tokens_before, fold.tokens_after, remaining, size)
    # Compacting again after every turn for little would cost a call and the cache each time.
    is_much = saved >= size.budget.tokens * MINIMUM_PROGRESS
    headroom, growth = size.room - used, size.last_turn
    is_due = is_worth_now(headroom=headroom, growth=growth, saved=saved, reread=reread, calls=calls)
    if is_much and (is_due or turn < 2):
        return None
    return Deferred(tokens=used, saved=saved, reread=reread, calls=calls)


def token_savings(before: int, after: int, remaining: Sequence[BaseMessage], size: PromptSize) -> tuple[int, int, int]:
    """Return what making the prompt shorter saves and costs, as `pricing.pays` takes it.

    Args:
        after: tokens of those that stay.
        remaining: the messages that stay, as the prompt will show them.

    Returns:
        Tokens that leave the prompt; tokens that are read anew since they follow the change; calls until the next one.
    """
    # The next change comes when the room is full again.
    calls = calls_until_full(room=size.room, used=after, growth=size.last_turn)
    return before - after, sum(size.counter.sizes(remaining)), calls


def _may_ask(summary: Summary, deps: NodeDeps) -> bool:
    """Tell whether the summariser is a language model and did not fail time and again."""
    return deps.writes_summaries and (summary.failures < MOST_FAILURES or summary.version % 5 == 0)


def _ask_summarizer(compaction: Compaction, by_rules: Summary, deps: NodeDeps) -> ModelCalls[tuple[Summary, str]]:
    """Ask the summariser for a better text, a chunk of the messages after the other.

    Returns:
        The summary, and why it is by rules; empty when it is not.
    """
    size, sections = compaction.size, deps.agent.summary_sections
    counter, chunk_tokens = size.counter, _chunk_tokens(deps, size)
    waiting = numbered_lines(compaction.unread)
    sizes = [tokens + _NUMBER for tokens in line_sizes(waiting, counter)]
    read = _whole_requests(sizes, chunk_tokens)
    lines, later = waiting[:read], waiting[read:]
    numbered = dict(enumerate((source for source, _ in lines), start=1))
    shown = [f"[{number}] {line}" for number, (_, line) in enumerate(lines, start=1)]
    text = old = render_story(size.summary, sections) if size.summary else ""
    failed = by_rules.model_copy(update={"failures": by_rules.failures + 1})
    # The rules have written a line for every message, also for those of parts beyond the limit.
    for chunk in _chunks(shown, sizes[:read], chunk_tokens, counter.text)[-MOST_CHUNKS:]:
        try:
            text, failure = yield from _with_chunk(chunk, text, size, deps)
        except SpendError as error:
            # Nothing has failed: what was not read waits for the next compaction that may be paid for.
            return by_rules, f"SpendError: {error}"
        if failure:
            return failed, failure
    support = "\n".join([old, *shown])
    new = rewritten(
        by_rules, text, numbered, sections=sections, limits=size.limits, counter=counter, support=support, later=later
    )
    return (new, "") if new is not None else (failed, "unsupported summary")


def _with_chunk(chunk: Sequence[str], summary: str, size: PromptSize, deps: NodeDeps) -> ModelCalls[tuple[str, str]]:
    """Ask for a summary with a chunk of messages in it: as asked, then shorter.

    A refusal or an outage is not asked again: the client has retried it already.

    Returns:
        The text, and why there is none; empty when there is one.

    Raises:
        SpendError: the call may not be paid for.
    """
    failure = ""
    for words in (SUMMARY_WORDS, SUMMARY_WORDS // 2):
        try:
            reply = yield ModelCall(deps.summarizer, [HumanMessage(_request(chunk, summary, words, deps))])
        except SpendError:
            raise
        except Exception as error:  # noqa: BLE001 - best effort: the rules have written one already
            failure = type(error).__name__
            if not is_overflow(error):
                break
        else:
            # What the rules may keep is also what a summariser may: no text grows without bound.
            if usable(str(reply.text), size.limits.story, size.counter.text):
                return str(reply.text), ""
            failure = "unusable summary"
    return summary, failure


def _request(chunk: Sequence[str], summary: str, words: int, deps: NodeDeps) -> str:
    return render(
        "summarize",
        words=str(words),
        sections="\n".join(f"## {section}" for section in deps.agent.summary_sections),
        summary=summary or "(none yet)",
        messages="\n".join(chunk),
    )


def _whole_requests(sizes: Sequence[int], tokens: int) -> int:
    """Return how many lines fill whole requests; the few after them wait for the next one.

    A second request for a remainder would cost as much as one for a full load.
    """
    room = max(sum(sizes) // tokens, 1) * tokens
    read = 0
    for place, size in enumerate(sizes):
        if read + size > room:
            # A line longer than a request is sent in pieces, and nothing waits for it.
            return place if read > room * _FULL else len(sizes)
        read += size
    return len(sizes)


def _chunk_tokens(deps: NodeDeps, size: PromptSize) -> int:
    """Return how many tokens of new messages fit the summariser's own window.

    When the run's own model writes summaries and does not tell its limit, the dial `window` does.
    """
    unknown = size.budget.window if deps.summarizer is deps.model.chat else UNKNOWN_WINDOW
    return int((input_limit(deps.summarizer) or unknown) * _CHUNK_SHARE)


def _chunks(lines: Sequence[str], sizes: Sequence[int], tokens: int, count: Callable[[str], int]) -> list[list[str]]:
    """Split lines so that each part fits; nothing in the middle is dropped, a longer line is cut into pieces.

    Args:
        sizes: tokens of each line at the most.
        tokens: what one part may take.
    """
    chunks: list[list[str]] = [[]]
    left = tokens
    for line, most in zip(lines, sizes, strict=True):
        pieces = [(line, most)] if most <= tokens else [(one, count(one) + 1) for one in _pieces(line, tokens, count)]
        for piece, size in pieces:
            if size > left and chunks[-1]:
                chunks.append([])
                left = tokens
            chunks[-1].append(piece)
            left -= size
    return chunks


def _pieces(line: str, tokens: int, count: Callable[[str], int]) -> list[str]:
    if len(line) <= tokens or count(line) < tokens:
        return [line]
    middle = len(line) // 2
    return [*_pieces(line[:middle], tokens, count), *_pieces(line[middle:], tokens, count)]


def _applied(run: NodeRun, plan: PromptPlan, compaction: Compaction, summary: Summary | None, failure: str) -> Update:
    """Archive what was folded and masked, and put the summary in its place."""
    fold, size = compaction.fold, compaction.size
    events: list[Event] = [compaction.deferred] if compaction.deferred else []
    events += masked_events(fold.masked, size, "high watermark")
    if summary is not None:
        plan = with_summary(plan, summary, run.deps.agent)
        if failure:
            events.append(FallbackUsed(step="summarize", reason=failure, used="extractive"))
        events.append(
            Compacted(
                reason=fold.reason,
                message_ids=[str(message.id) for message in fold.evicted],
                tokens_before=fold.tokens_before,
                tokens_after=fold.tokens_after,
                summary_tokens=size.counter.text(plan.summary_text),
                version=summary.version,
                writer=summary.writer,
                budget=size.budget.tokens,
                rules_left_out=summary.rules_left_out,
            )
        )
    moved = "compacted" if fold.evicted else "masked" if fold.masked else ""
    return shrink(run, plan, fold, recalled=compaction.recalled, summary=summary, events=events, moved=moved)
