"""Compact the working set after the reply, so that the user never waits for it."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime

from everthread.ledger.events import Compacted, Event, FallbackUsed
from everthread.ledger.record import record
from everthread.nodes.inject_memory import resolve_memory
from everthread.nodes.sizing import reserved
from everthread.nodes.trim import archive, masked_events, removals
from everthread.nodes.wiring import Wiring, context_of, parts_of, store_of, thread_of
from everthread.prompts import render
from everthread.state import Context, State, Summary, Update
from everthread.window.compaction import Fold, extract, plan_fold, render_summary, transcript_lines, usable
from everthread.window.tokens import TokenCounter

SUMMARY_WORDS = 200
"""Length asked of a summariser (BEHAVIOUR §4)."""

SUMMARY_SHARE = 0.20
"""Share of the budget that a summary may take at the most."""


@dataclass(frozen=True)
class _Work:
    """One compaction: what is folded, into what, and how it is measured."""

    fold: Fold
    previous: Summary | None
    messages: Sequence[BaseMessage]
    limit: int
    counter: TokenCounter
    context: Context


def summarize(state: State, config: RunnableConfig, runtime: Runtime[Context], wiring: Wiring) -> Update:
    """Go down to the low watermark, the cheapest step first: mask old tool results, then fold old turns.

    The summary replaces what it covers only when it is usable; otherwise the rules write one, and the
    turn succeeds in any case.
    """
    work = _plan(state, runtime, wiring)
    text, failure = "", ""
    if work.fold.folded and _can_summarise(wiring):
        try:
            text = str(wiring.summarizer.invoke(_request(work, wiring), _quiet(config)).text)
        except Exception as error:  # noqa: BLE001 - best effort: the rules take over
            failure = type(error).__name__
    return _apply(work, state, runtime, wiring, text, failure)


async def asummarize(state: State, config: RunnableConfig, runtime: Runtime[Context], wiring: Wiring) -> Update:
    """Do what `summarize` does without blocking the event loop."""
    work = await asyncio.to_thread(_plan, state, runtime, wiring)
    text, failure = "", ""
    if work.fold.folded and _can_summarise(wiring):
        try:
            text = str((await wiring.summarizer.ainvoke(_request(work, wiring), _quiet(config))).text)
        except Exception as error:  # noqa: BLE001 - as in `summarize`
            failure = type(error).__name__
    return await asyncio.to_thread(_apply, work, state, runtime, wiring, text, failure)


def _can_summarise(wiring: Wiring) -> bool:
    """Tell whether the summariser is a language model; our own stand-ins say that they are not."""
    return bool(getattr(wiring.summarizer, "can_summarize", True))


def _quiet(config: RunnableConfig) -> RunnableConfig:
    # Tokens of a summary are not part of the reply: keep them off `stream_mode="messages"`.
    return {**config, "callbacks": None, "tags": [*config.get("tags", []), "nostream"]}


def _plan(state: State, runtime: Runtime[Context], wiring: Wiring) -> _Work:
    context = context_of(runtime)
    counter = wiring.counter(context)
    if "memory" not in state:
        memory = resolve_memory(store_of(runtime), thread_of(runtime), context, counter)
        state = {**state, "memory": memory}
    budget = wiring.budget(state, context, [*wiring.agent.tools, wiring.read_tool_output])
    room = budget.tokens - reserved(parts_of(state, wiring), counter)
    messages = state.get("messages", [])
    fold = plan_fold(messages, target=int(room * context.low_watermark), context=context, counter=counter)
    known = state.get("summary")
    return _Work(
        fold=fold,
        previous=Summary.model_validate(known) if known else None,
        messages=messages,
        limit=int(budget.tokens * SUMMARY_SHARE),
        counter=counter,
        context=context,
    )


def _request(work: _Work, wiring: Wiring) -> list[BaseMessage]:
    sections = wiring.agent.summary_sections
    return [
        HumanMessage(
            render(
                "summarize",
                words=str(SUMMARY_WORDS),
                sections="\n".join(f"## {section}" for section in sections),
                summary=render_summary(work.previous, sections) if work.previous else "(none yet)",
                messages=transcript_lines(work.fold.folded),
            )
        )
    ]


def _apply(work: _Work, state: State, runtime: Runtime[Context], wiring: Wiring, text: str, failure: str) -> Update:
    """Archive what was folded and masked, and put the summary in its place."""
    fold, counter = work.fold, work.counter
    if not fold.folded and not fold.masked:
        return {}
    events: list[Event] = masked_events(list(fold.masked.values()), work.messages, counter, "high watermark")
    update: Update = {"messages": removals(fold.folded, list(fold.masked.values()))}
    if fold.folded:
        summary = _summary(work, text)
        if failure or (text and summary.writer != "model"):
            events.append(FallbackUsed(step="summarize", reason=failure or "unusable summary", used="extractive"))
        update["summary"] = summary.model_dump(mode="json")
        events.append(
            Compacted(
                reason="context limit" if fold.by_turns else "high watermark",
                message_ids=[str(message.id) for message in fold.folded],
                tokens_before=fold.tokens_before,
                tokens_after=fold.tokens_after,
                summary_tokens=counter.text(render_summary(summary, wiring.agent.summary_sections)),
                version=summary.version,
                writer=summary.writer,
            )
        )
    thread_id = thread_of(runtime)
    operations = archive(fold.folded, list(fold.masked), work.messages, thread_id, work.context.user_id)
    record(
        store_of(runtime),
        thread_id,
        events,
        write=runtime.stream_writer,
        turn=state.get("turns", 0),
        operations=operations,
    )
    return update


def _summary(work: _Work, text: str) -> Summary:
    """Return the model's summary when it is usable, else one by rules."""
    extracted = extract(work.previous, work.fold.folded, limit=work.limit, count=work.counter.text)
    if not usable(text, work.limit, work.counter.text):
        return extracted
    return extracted.model_copy(update={"entries": (), "text": text.strip(), "writer": "model"})
