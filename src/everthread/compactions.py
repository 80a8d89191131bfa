"""The next compaction of a thread: what it would do, what it costs and saves; and to do it now."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, cast

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import ExecutionInfo, Runtime
from langgraph.store.base import BaseStore
from langgraph.types import StateSnapshot

from everthread.errors import BudgetError, NotFoundError, SettingsError
from everthread.graph.guard import GuardedGraph, check_guarded
from everthread.graph.run import has_middleware, is_own
from everthread.graph.schema_changes import StateSchema
from everthread.ledger.events import PromptAssembled, Steered
from everthread.ledger.record import record
from everthread.models.calls import ModelCalls, amake_calls, make_calls
from everthread.nodes.call_ahead import AsyncOnlyError, CallAhead, acall_ahead, call_ahead
from everthread.nodes.deps import NodeDeps
from everthread.nodes.node_run import NodeRun
from everthread.nodes.sizes import PromptSize, calibration_of, is_full, needs_trim
from everthread.nodes.summarize import plan_compaction, summarize, token_savings
from everthread.nodes.thread_view import ThreadView
from everthread.nodes.trim import plan_shrinking, trim
from everthread.state import Context, PromptPlan, State, Summary, Update, namespaces, state_after
from everthread.state.context import changed_dials
from everthread.storage.pruning import edit_metadata
from everthread.storage.reading import reader_of
from everthread.storage.thread_source import newest_event
from everthread.window.assembly import reserved
from everthread.window.compaction import line_sizes, numbered_lines, render_summary
from everthread.window.draft import EvictionPlan
from everthread.window.pricing import CACHED_PRICE
from everthread.window.turns import question_of


@dataclass(frozen=True)
class Preview:
    """What the next compaction of a thread does to its working set; tokens are those of the messages, by our count."""

    thread_id: str
    policy: str
    budget: int
    """Tokens that the history may take."""
    accuracy: str
    """Of the counts: `exact`, `anchored` on what the provider reported, or `estimated`."""
    is_due: bool
    """It would happen after the next reply, or ahead of the next call, as the thread is now."""
    room: int
    """Tokens by which the history may still grow until it is due."""
    put_off: bool
    """It is due and would be put off, since it costs more than it saves and there is room to wait."""
    evicted: tuple[str, ...]
    """Ids of the messages that go to the transcript; under the policy `summarize` they are folded into the summary."""
    masked: dict[str, int]
    """Messages that keep a few words and a handle, by id: the tokens of what stands for each."""
    recalled: tuple[str, ...]
    """Ids of recalled messages that go."""
    tokens_before: int
    tokens_after: int
    summary_before: str
    summary_after: str
    """As the rules write it."""
    asks_model: bool
    """A model is asked to write the summary anew, and may say it otherwise."""
    saved: int
    """Tokens that every later call has less."""
    reread: int
    """Tokens behind the change, which are read anew once instead of from the provider's cache."""
    calls: int
    """Calls until the one after it, at the rate at which the thread grows."""
    summarizer_tokens: int
    """Tokens that the model reads to write the summary, about."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing would leave and nothing be masked."""
        return not (self.evicted or self.masked or self.recalled)

    @property
    def price(self) -> int:
        """What it costs, in tokens at the full input price: what is no longer cached, and what the summariser reads."""
        return round(self.reread * (1 - CACHED_PRICE)) + self.summarizer_tokens

    @property
    def saves(self) -> int:
        """What it saves until the next one, in tokens at the full input price; a cached token costs a tenth."""
        return round(self.saved * CACHED_PRICE * self.calls)

    def as_json(self) -> dict[str, Any]:
        """Return it as one JSON object."""
        return {**asdict(self), "price": self.price, "saves": self.saves}


def preview(graph: GuardedGraph, thread_id: str, *, context: Context | None = None) -> Preview:
    """Tell what the next compaction of a thread would do; nothing is changed and no model is asked.

    It is planned by what does it, so it agrees with what then happens to the same working set under the same dials. Of
    an agent with `EverthreadMiddleware` the model node is run up to where the model would be called, so that its other
    middlewares see a request as ahead of any call.

    Args:
        graph: from `build_graph(…, storage=storage)`, or an agent with the middleware, from `storage.guard(agent)`.
        context: dials of its runs; None: the window of its last call, and for all others the defaults. With the
            middleware it is those that differ from its own.

    Raises:
        NotFoundError: there is no such thread.
        SettingsError: the graph has neither or no guard, the thread is another user's or has no message of the user; or
            another middleware of the agent fails outside a run.
    """
    return _Thread.read(check_guarded(graph), thread_id, context).preview()


async def apreview(graph: GuardedGraph, thread_id: str, *, context: Context | None = None) -> Preview:
    """Do what `preview` does without blocking the event loop."""
    thread = await _Thread.aread(check_guarded(graph), thread_id, context)
    return await graph.storage.worker.call(thread.preview)


def compact_now(graph: GuardedGraph, thread_id: str, *, context: Context | None = None, actor: str = "") -> Preview:
    """Compact a thread that has its answer, as the next compaction would, and do not put it off.

    Args:
        graph: as for `preview`.
        thread_id: the thread, whose lock is held meanwhile.
        context: as for `preview`.
        actor: who asks for it, for the ledger; empty names the thread's user.

    Returns:
        What `preview` said just before it.

    Raises:
        NotFoundError: there is no such thread.
        SettingsError: as for `preview`; or the last turn has no answer yet.
        ThreadBusyError: a run kept the thread for longer than the lock's timeout.
    """
    with check_guarded(graph).storage.locks.hold(str(thread_id)):
        _bring_up(graph, thread_id)
        thread = _Thread.read(graph, thread_id, context)
        planned, calls = thread.preview(), thread.compaction()
        thread.save(make_calls(calls, {}), actor)
    return planned


async def acompact_now(
    graph: GuardedGraph, thread_id: str, *, context: Context | None = None, actor: str = ""
) -> Preview:
    """Do what `compact_now` does without blocking the event loop."""
    worker = check_guarded(graph).storage.worker
    async with graph.storage.locks.hold(str(thread_id)):
        await worker.call(_bring_up, graph, thread_id)
        thread = await _Thread.aread(graph, thread_id, context)
        planned, calls = await worker.call(thread.preview), thread.compaction()
        await worker.call(thread.save, await amake_calls(calls, {}), actor)
    return planned


def _bring_up(graph: GuardedGraph, thread_id: str) -> None:
    """Give the state the keys of a graph of ours, as a run does; what comes next saves no others."""
    if not is_own(graph.graph):
        return
    config = cast(Any, _config(thread_id))
    StateSchema(graph.graph).apply(graph.storage, config, graph.get_state(config).metadata)


@dataclass(frozen=True)
class _Saved:
    """A thread as it is saved, and the dials of its next run."""

    graph: GuardedGraph
    thread_id: str
    context: Context
    snapshot: StateSnapshot
    deps: NodeDeps | None
    """None for an agent with the middleware."""

    @classmethod
    def read(cls, graph: GuardedGraph, thread_id: str, context: Context | None) -> "_Saved":
        deps = getattr(graph.builder, "deps", None)
        if not isinstance(deps, NodeDeps) and not has_middleware(graph.graph):
            raise SettingsError(
                "only a graph of `build_graph` or `pipeline` and an agent with `EverthreadMiddleware` tell their next "
                f"compaction, and {graph.name!r} is neither"
            )
        thread_id = str(thread_id)  # a run takes one of any type, such as a UUID, by its text
        session = graph.storage.store.get(namespaces.SESSIONS, thread_id)
        if session is None:
            raise NotFoundError(f"there is no thread {thread_id!r} in this database")
        if context is None:
            last = newest_event(reader_of(graph.storage), thread_id, "prompt_assembled")
            window = last.window if isinstance(last, PromptAssembled) else None
            context = Context(user_id=session.value.get("user_id") or Context.user_id, window=window)
        snapshot = graph.graph.get_state(_config(thread_id))
        if question_of(snapshot.values.get("messages", [])) is None:
            raise SettingsError(f"thread {thread_id!r} has no message of the user, so there is nothing to compact")
        return cls(graph, thread_id, context, snapshot, deps if isinstance(deps, NodeDeps) else None)

    @property
    def for_agent(self) -> tuple[Any, BaseStore, dict[str, Any], RunnableConfig]:
        """What `call_ahead` takes to run the model node of an agent with the middleware."""
        dials = changed_dials(self.context)
        dials.pop("user_id", None)
        configurable = {"thread_id": self.thread_id, "user_id": self.context.user_id, "everthread": dials}
        config: RunnableConfig = {"configurable": configurable, "metadata": edit_metadata(is_own=False)}
        return self.graph.graph, self.graph.storage.store, dict(self.snapshot.values), config


@dataclass(frozen=True)
class _Thread:
    """A thread between two turns, with what its nodes would have."""

    graph: GuardedGraph
    run: NodeRun
    runtime: Runtime[Context]
    plan: PromptPlan
    is_unfinished: bool
    ahead: CallAhead | None
    """Of an agent with the middleware."""

    @classmethod
    def read(cls, graph: GuardedGraph, thread_id: str, context: Context | None) -> "_Thread":
        saved = _Saved.read(graph, thread_id, context)
        return cls.of(saved, call_ahead(*saved.for_agent) if saved.deps is None else None)

    @classmethod
    async def aread(cls, graph: GuardedGraph, thread_id: str, context: Context | None) -> "_Thread":
        call = graph.storage.worker.call
        try:
            return await call(cls.read, graph, thread_id, context)
        except AsyncOnlyError:
            saved = await call(_Saved.read, graph, thread_id, context)
            return await call(cls.of, saved, await acall_ahead(*saved.for_agent))

    @classmethod
    def of(cls, saved: "_Saved", ahead: CallAhead | None) -> "_Thread":
        if ahead is None:
            state, deps = cast(State, dict(saved.snapshot.values)), cast(NodeDeps, saved.deps)
            info = ExecutionInfo("", "", "", thread_id=saved.thread_id)
            runtime = Runtime(context=saved.context, store=saved.graph.storage.store, execution_info=info)
        else:
            state, runtime, deps = ahead.view.state, ahead.runtime, ahead.deps
        run = NodeRun.of(state, runtime, deps)
        plan = run.plan()
        run = replace(run, state=cast(State, {**state, "plan": plan}))
        return cls(saved.graph, run, runtime, plan, bool(saved.snapshot.tasks), ahead)

    def preview(self) -> Preview:
        """Plan the next compaction."""
        size = self.run.size(self.plan)
        return self._folding(size) if self.run.context.policy == "summarize" else self._shrinking(size)

    def compaction(self) -> ModelCalls[Update]:
        """Compact, whatever it costs.

        Raises:
            SettingsError: the last turn has no answer yet.
        """
        run = self.run
        if self.is_unfinished:
            raise SettingsError(
                f"the last turn of thread {run.thread_id!r} has no answer yet; finish it, and compact then"
            )
        if self.ahead is not None and self.ahead.is_counted_by_place:
            raise SettingsError(
                f"another summarizer counts the messages of thread {run.thread_id!r} by their places, so none of "
                "them may leave its state"
            )
        if run.context.policy == "summarize":
            return (yield from summarize(run.state, self.runtime, run.deps, is_asked_for=True))
        return trim(self._pressed(run.size(self.plan)).state, self.runtime, run.deps)

    def save(self, update: Update, actor: str) -> None:
        """Save what a compaction changed as a checkpoint of the thread, and who asked for it."""
        run, store = self.run, self.graph.storage.store
        event = Steered(action="compact", actor=actor or run.context.user_id)
        record(store, run.thread_id, [event], turn=run.turn)
        if self.ahead is not None:
            self._save_for_agent(self.ahead.view, state_after(run.state, update))
            return
        values = {name: value for name, value in update.items() if name not in ("plan", "summary")}
        if values:
            config = {
                **_config(run.thread_id),
                "metadata": {**edit_metadata(is_own=True), **StateSchema(self.graph.graph).metadata},
            }
            self.graph.graph.update_state(cast(Any, config), values, as_node="summarize")

    def _save_for_agent(self, view: ThreadView, after: State) -> None:
        """Tell the agent's own messages what left, and the next call what our state would hold."""
        # What left stays in the state if the next line is never reached.
        self.graph.storage.store.batch(view.record(after, self.run.thread_id, stays=True))
        if writes := view.writes(after):
            config = {**_config(self.run.thread_id), "metadata": edit_metadata(is_own=False)}
            self.graph.graph.update_state(cast(Any, config), {"messages": writes})

    def _folding(self, size: PromptSize) -> Preview:
        now = plan_compaction(self.run, self.plan)
        full = plan_compaction(self.run, self.plan, is_asked_for=True)
        over, is_due = size.used + size.budget.tokens - size.room, is_full(size, self.run.context)
        return self._preview(
            size,
            full.fold,
            full.by_rules,
            recalled=full.recalled,
            remaining=full.fold.remaining(full.size.parts.working_set),
            is_due=is_due,
            put_off=is_due and now.deferred is not None,
            room=max(int(size.budget.tokens * self.run.context.high_watermark) - over, 0),
            summarizer_tokens=sum(line_sizes(numbered_lines(full.unread), size.counter)),
        )

    def _shrinking(self, size: PromptSize) -> Preview:
        shrinking = plan_shrinking(self._pressed(size), self.plan)
        return self._preview(
            size,
            shrinking.eviction,
            shrinking.summary,
            recalled=shrinking.recalled,
            remaining=shrinking.remaining,
            is_due=needs_trim(size, self.run.context) and size.used > size.room,
            put_off=False,
            room=max(size.room - size.used, 0),
            summarizer_tokens=0,
        )

    def _pressed(self, size: PromptSize) -> NodeRun:
        """Return the run with a budget that is just too small, unless it is so already or nothing may leave."""
        if size.used > size.room:
            return self.run
        ceiling = size.used + reserved(size.parts, size.counter) - 1
        pressed = replace(self.run, state=cast(State, {**self.run.state, "ceiling": ceiling}))
        try:
            plan_shrinking(pressed, self.plan)
        except BudgetError:
            return self.run
        return pressed

    def _preview(
        self,
        size: PromptSize,
        leaving: EvictionPlan,
        summary: Summary | None,
        *,
        recalled: Sequence[BaseMessage],
        remaining: Sequence[BaseMessage],
        **facts: Any,
    ) -> Preview:
        run, before, after = self.run, leaving.tokens_before, leaving.tokens_after
        shown = self.plan.summary_text
        saved, reread, calls = token_savings(before, after, remaining, size)
        is_empty = not (leaving.evicted or leaving.masked or recalled)
        return Preview(
            thread_id=run.thread_id,
            policy=run.context.policy,
            budget=size.budget.tokens,
            accuracy=calibration_of(run.state, run.deps.model_for(run.context)).accuracy,
            evicted=tuple(str(message.id) for message in leaving.evicted),
            masked={name: size.counter.message(message) for name, message in leaving.masked.items()},
            recalled=tuple(str(message.id) for message in recalled),
            tokens_before=before,
            tokens_after=after,
            summary_before=shown,
            summary_after=render_summary(summary, run.deps.agent.summary_sections) if summary else shown,
            asks_model=bool(facts["summarizer_tokens"]),
            saved=0 if is_empty else saved,
            reread=0 if is_empty else reread,
            calls=calls,
            **facts,
        )


def _config(thread_id: str) -> Any:
    return {"configurable": {"thread_id": thread_id}}
