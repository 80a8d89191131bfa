"""Compact the working set after the reply, so that the user never waits for it."""

import asyncio
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime

from everthread.ledger.events import Compacted, Deferred, Event, FallbackUsed
from everthread.ledger.record import record
from everthread.nodes.failures import is_overflow
from everthread.nodes.inject_memory import resolved
from everthread.nodes.sizing import Sizes, last_turn
from everthread.nodes.trim import archive, forgotten, masked_events, removals
from everthread.nodes.wiring import Wiring, context_of, store_of, thread_of
from everthread.prompts import render
from everthread.state import Context, State, Summary, Update
from everthread.storage.summaries import put_operation
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
from everthread.window.folding import Fold, plan_fold
from everthread.window.pricing import pays

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
class _Work:
    """One compaction: what is folded, and the summary by rules that stands in any case."""

    fold: Fold
    messages: Sequence[BaseMessage]
    sizes: Sizes
    by_rules: Summary | None
    unread: Sequence[BaseMessage] = ()
    """What the summariser would read: messages folded since it was last asked; empty when it is not asked."""
    deferred: Deferred | None = None


def summarize(state: State, config: RunnableConfig, runtime: Runtime[Context], wiring: Wiring) -> Update:
    """Go down to the low watermark, the cheapest step first: mask old tool results, then fold old turns.

    The rules write a summary first; a summariser may improve on it, and when it fails in any way the
    summary by rules stands, an event says so, and the turn succeeds.
    """
    work = _plan(state, runtime, wiring)
    steps = _rewriting(work, wiring)
    request = next(steps)
    while not isinstance(request, tuple):
        try:
            reply: str | Exception = str(wiring.summarizer.invoke(request, _quiet(config)).text)
        except Exception as error:  # noqa: BLE001 - best effort: the rules have written one already
            reply = error
        request = steps.send(reply)
    return _apply(work, *request, state=state, runtime=runtime, wiring=wiring)


async def asummarize(state: State, config: RunnableConfig, runtime: Runtime[Context], wiring: Wiring) -> Update:
    """Do what `summarize` does without blocking the event loop."""
    work = await asyncio.to_thread(_plan, state, runtime, wiring)
    steps = _rewriting(work, wiring)
    request = next(steps)
    while not isinstance(request, tuple):
        try:
            reply: str | Exception = str((await wiring.summarizer.ainvoke(request, _quiet(config))).text)
        except Exception as error:  # noqa: BLE001 - as in `summarize`
            reply = error
        request = steps.send(reply)
    summary, failure = request
    return await asyncio.to_thread(_apply, work, summary, failure, state=state, runtime=runtime, wiring=wiring)


def _quiet(config: RunnableConfig) -> RunnableConfig:
    # Tokens of a summary are not part of the reply: keep them off `stream_mode="messages"`.
    return {**config, "callbacks": None, "tags": [*config.get("tags", []), "nostream"]}


def _plan(state: State, runtime: Runtime[Context], wiring: Wiring) -> _Work:
    context = context_of(runtime)
    state = {**state, **resolved(state, runtime, wiring)}
    sizes = Sizes.of(state, context, wiring)
    messages: Sequence[BaseMessage] = state.get("messages", [])
    target = int(sizes.room * context.low_watermark)
    kept = int(sizes.budget.tokens * context.low_watermark)
    fold = plan_fold(messages, target=target, kept=kept, context=context, counter=sizes.counter)
    gone = {str(message.id) for message in fold.folded}
    remaining = [fold.masked.get(str(m.id), m) for m in messages if str(m.id) not in gone]
    if not gone and not fold.masked:
        return _Work(fold, messages, sizes, None)
    deferred = None if fold.by_turns else _priced(fold, remaining, sizes, state, context)
    if deferred is not None:
        return _Work(Fold(), messages, sizes, None, deferred=deferred)
    if not gone:
        return _Work(fold, messages, sizes, None)
    by_rules = absorb(sizes.summary, fold.folded, remaining, limits=sizes.limits, counter=sizes.counter)
    unread: list[BaseMessage] = []
    is_worth_it = fold.by_turns or wants_summarizer(by_rules, _chunk_tokens(wiring))
    if is_worth_it and _may_ask(by_rules, wiring):
        earlier = [known for known in by_rules.pending if known not in gone]
        unread = [*archived_by_id(store_of(runtime), thread_of(runtime), earlier), *fold.folded]
    return _Work(fold, messages, sizes, by_rules, unread)


def _priced(
    fold: Fold, remaining: Sequence[BaseMessage], sizes: Sizes, state: State, context: Context
) -> Deferred | None:
    """Return why to wait: the prompt's head is cached, little would leave, and there is still room.

    Between the high watermark and the budget there is room to wait; `trim` holds the budget in any case.
    """
    used, turns = sizes.used, max(state.get("turns", 1), 1)
    saved = fold.tokens_before - fold.tokens_after
    growth = last_turn(sizes)
    # Two calls a turn is what tool-using threads have; the next change comes when the room is full again.
    calls = max(2 * (sizes.room - fold.tokens_after) // growth, 1)
    reread = sum(sizes.counter.sizes(remaining))
    if saved < sizes.budget.tokens * MINIMUM_PROGRESS:
        # Compacting again after every turn would cost a call and the cache each time.
        return Deferred(tokens=used, saved=saved, reread=reread, calls=calls)
    if sizes.room - used < growth or turns < 2 or pays(saved=saved, reread=reread, calls=calls):
        return None
    return Deferred(tokens=used, saved=saved, reread=reread, calls=calls)


def _may_ask(made: Summary, wiring: Wiring) -> bool:
    """Tell whether the summariser is a language model and did not fail time and again."""
    if not getattr(wiring.summarizer, "can_summarize", True):
        return False
    return made.failures < MOST_FAILURES or made.version % 5 == 0


Steps = Generator[list[BaseMessage] | tuple[Summary | None, str], str | Exception, None]


def _rewriting(work: _Work, wiring: Wiring) -> Steps:
    """Yield the requests to the summariser one by one, then the summary and why it is by rules, if it is.

    Sync and async share these decisions. The ladder: as asked, then shorter, then the rules. A refusal
    or an outage is not asked again: the client has retried it already.
    """
    made = work.by_rules
    if made is None or not work.unread:
        yield made, ""
        return
    count, limits = work.sizes.counter.text, work.sizes.limits
    waiting = numbered_lines(work.unread)
    sizes = [size + _NUMBER for size in line_sizes(waiting, work.sizes.counter)]
    read = _whole_requests(sizes, _chunk_tokens(wiring))
    lines, later = waiting[:read], waiting[read:]
    numbered = dict(enumerate((source for source, _ in lines), start=1))
    shown = [f"[{number}] {line}" for number, (_, line) in enumerate(lines, start=1)]
    old = render_story(work.sizes.summary, wiring.agent.summary_sections) if work.sizes.summary else ""
    support = "\n".join([old, *shown])
    # The rules have written a line for every message, also for those of parts beyond the limit.
    chunks = _chunks(shown, sizes[:read], _chunk_tokens(wiring), count)[-MOST_CHUNKS:]
    text, failure = old, ""
    for chunk in chunks:
        for words in (SUMMARY_WORDS, SUMMARY_WORDS // 2):
            # What the rules may keep is also what a summariser may: no text grows without bound.
            reply = yield [HumanMessage(_asked(chunk, text, words, wiring))]
            if isinstance(reply, str) and usable(reply, limits.story, count):
                text, failure = reply, ""
                break
            failure = type(reply).__name__ if isinstance(reply, Exception) else "unusable summary"
            if isinstance(reply, Exception) and not is_overflow(reply):
                break
        if failure:
            break
    if failure:
        yield made.model_copy(update={"failures": made.failures + 1}), failure
        return
    new = rewritten(made, text, numbered, limits=limits, counter=work.sizes.counter, support=support, later=later)
    if new is None:
        yield made.model_copy(update={"failures": made.failures + 1}), "unsupported summary"
    else:
        yield new, ""


def _asked(chunk: Sequence[str], summary: str, words: int, wiring: Wiring) -> str:
    return render(
        "summarize",
        words=str(words),
        sections="\n".join(f"## {section}" for section in wiring.agent.summary_sections),
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


def _chunk_tokens(wiring: Wiring) -> int:
    """Return how many tokens of new messages fit the summariser's own window."""
    profile = wiring.summarizer.profile or {}
    return int(int(profile.get("max_input_tokens") or UNKNOWN_WINDOW) * _CHUNK_SHARE)


def _chunks(lines: Sequence[str], sizes: Sequence[int], tokens: int, count: Callable[[str], int]) -> list[list[str]]:
    """Split lines so that each part fits; nothing in the middle is dropped, a longer line is cut into pieces.

    Args:
        lines: with their numbers.
        sizes: tokens of each line at the most.
        tokens: what one part may take.
        count: tokens of a text.
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


def _apply(
    work: _Work,
    summary: Summary | None,
    failure: str,
    *,
    state: State,
    runtime: Runtime[Context],
    wiring: Wiring,
) -> Update:
    """Archive what was folded and masked, and put the summary in its place."""
    fold, sizes = work.fold, work.sizes
    events: list[Event] = [work.deferred] if work.deferred else []
    update: Update = {}
    thread_id = thread_of(runtime)
    operations = archive(fold.folded, list(fold.masked), work.messages, thread_id, context_of(runtime).user_id)
    operations += forgotten(fold.folded, list(fold.masked.values()), work.messages, thread_id, state.get("turns", 0))
    if fold.masked:
        events += masked_events(list(fold.masked.values()), work.messages, sizes, "high watermark")
    if fold.folded or fold.masked:
        update["messages"] = removals(fold.folded, list(fold.masked.values()))
        update["moved"] = "compacted" if fold.folded else "masked"
    if summary is not None:
        summary_id, write = put_operation(thread_id, summary)
        operations.append(write)
        _, shown = wiring.keep_summary(summary_id, summary, instead_of=state.get("summary_id"))
        if failure:
            events.append(FallbackUsed(step="summarize", reason=failure, used="extractive"))
        update["summary_id"], update["summary"] = summary_id, dict(write.value or {})
        events.append(_compacted(fold, summary, shown, sizes))
    record(
        store_of(runtime),
        thread_id,
        events,
        write=runtime.stream_writer,
        turn=state.get("turns", 0),
        operations=operations,
    )
    return update


def _compacted(fold: Fold, summary: Summary, shown: str, sizes: Sizes) -> Compacted:
    return Compacted(
        reason="context limit" if fold.by_turns else "high watermark",
        message_ids=[str(message.id) for message in fold.folded],
        tokens_before=fold.tokens_before,
        tokens_after=fold.tokens_after,
        summary_tokens=sizes.counter.text(shown),
        version=summary.version,
        writer=summary.writer,
        budget=sizes.budget.tokens,
    )
