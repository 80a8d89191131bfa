"""What the nodes of one graph share: the agent, its models and tools, and how to size a prompt."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import BaseMessage, SystemMessage
from langchain_core.runnables import Runnable, RunnableBinding, RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore

from everthread.errors import SettingsError
from everthread.prompts import render
from everthread.state import Agent, Context, Memory, Note, State, Summary
from everthread.state.marks import sequence
from everthread.window.assembly import Parts, reserved
from everthread.window.budget import UNKNOWN_WINDOW, Budget, reply_reserve
from everthread.window.calibration import Calibration
from everthread.window.compaction import render_summary
from everthread.window.masking import handles_in
from everthread.window.tokens import TokenCounter, counter_for

_SAFETY_EXACT = 0.95
_SAFETY_ESTIMATED = 0.80

_KEPT_SUMMARIES = 64
"""Summaries held in memory, across the threads of a process; each has hundreds of small objects."""

_KEPT_RUNS = 8
"""What else is held for the calls and edges of a run. More of it would only be more for the garbage collector."""


@dataclass(frozen=True)
class Wiring:
    """Everything a node needs that is not in the state."""

    agent: Agent
    model: BaseChatModel
    summarizer: BaseChatModel
    resolve: Callable[[str], BaseChatModel]
    """Makes a model from `provider:name`, for `Context.model`."""
    name_of: Callable[[BaseChatModel], str | None]
    """Name of a model, such as `gpt-5-mini`, which decides how tokens are counted."""
    read_tool_output: BaseTool
    """Bound since the first handle was in a prompt."""
    recall_history: BaseTool | None = None
    """Bound together with it, since the first message was evicted."""
    exclusive: Callable[[str], AbstractContextManager[None]] | None = None
    """Holds a key across processes, such as a user's while their notes change; None: in this process only."""
    _summaries: dict[str, tuple[Summary, str]] = field(default_factory=dict, repr=False)
    _tool_tokens: dict[tuple[str, bool, bool], int] = field(default_factory=dict, repr=False)
    _names: dict[str | None, str | None] = field(default_factory=dict, repr=False)
    _counters: dict[str | None, TokenCounter] = field(default_factory=dict, repr=False)
    _shown: dict[int, "Shown"] = field(default_factory=dict, repr=False)
    _systems: dict[tuple[str, str, str], SystemMessage] = field(default_factory=dict, repr=False)
    _budgets: dict[tuple[int, int, bool], "_Budgeted"] = field(default_factory=dict, repr=False)
    _calibrations: dict[tuple[int, str | None], tuple[dict[str, Any] | None, Calibration]] = field(
        default_factory=dict, repr=False
    )
    _besides: dict[tuple[int, int, str | None], tuple[Memory, Context, int]] = field(default_factory=dict, repr=False)
    _bound: dict[tuple[str | None, bool], "Bound"] = field(default_factory=dict, repr=False)

    def model_for(self, context: Context) -> BaseChatModel:
        """Return the run's model."""
        return self.model if context.model is None else self.resolve(context.model)

    def counter(self, context: Context) -> TokenCounter:
        """Return what counts the run's tokens."""
        if context.model not in self._counters:
            self._counters[context.model] = counter_for(self.model_name(context))
        return self._counters[context.model]

    def model_name(self, context: Context) -> str | None:
        """Return the name of the run's model, such as `gpt-5-mini`."""
        if context.model not in self._names:
            self._names[context.model] = self.name_of(self.model_for(context))
        return self._names[context.model]

    def calibration(self, state: State, context: Context) -> Calibration:
        """Return what the provider's reports have taught about our counts of this model."""
        known = state.get("calibration")
        key = (id(known), context.model)
        read = self._calibrations.get(key)
        if read is not None and read[0] is known:
            return read[1]
        if known and known.get("model") == self.model_name(context):
            made = Calibration.from_json(known)
        else:
            made = Calibration(exact=self.counter(context).exact)
        _make_room(self._calibrations, _KEPT_RUNS)
        self._calibrations[key] = known, made
        return made

    def summary(self, state: State) -> tuple[Summary, str] | None:
        """Return the thread's summary and how the prompt shows it; read once for each version."""
        name, value = state.get("summary_id"), state.get("summary")
        if not name or not value:
            return None
        known = self._summaries.get(name)
        return known if known is not None else self.keep_summary(name, Summary.model_validate(value))

    def keep_summary(self, name: str, made: Summary, *, instead_of: str | None = None) -> tuple[Summary, str]:
        """Hold a version of a summary in memory, so that the next run need not read it again."""
        self._summaries.pop(instead_of or "", None)
        _make_room(self._summaries, _KEPT_SUMMARIES)
        self._summaries[name] = known = made, render_summary(made, self.agent.summary_sections)
        return known

    def shown(self, memory: Memory) -> "Shown":
        """Return what a run's memory looks like in a prompt; made once for all calls of a run."""
        known = self._shown.get(id(memory))
        if known is not None and known.memory is memory:
            return known
        made = Shown.of(memory, self._system(memory))
        _make_room(self._shown, _KEPT_RUNS)
        self._shown[id(memory)] = made
        return made

    def _system(self, memory: Memory) -> SystemMessage:
        """Return the head of the prompt: the same one for as long as it says the same, so that it is counted once."""
        key = (memory.get("today", ""), memory.get("profile", ""), memory.get("notes", ""))
        known = self._systems.get(key)
        if known is None:
            _make_room(self._systems, _KEPT_SUMMARIES)
            # Another thread may make room as well before this one returns.
            self._systems[key] = known = system_message(self.agent, memory)
        return known

    def reads_back(self, state: State) -> bool:
        """Tell whether the readers are bound: since the first handle was shown or the first message evicted.

        They stay bound when that handle has left: providers put tools ahead of everything, so every
        change of the list costs the whole cached prompt.
        """
        messages = state.get("messages", [])
        return state.get("reads_back", False) or is_evicted(messages) or bool(handles_in(messages))

    @property
    def readers(self) -> list[BaseTool]:
        """Tools that read what the prompt no longer shows."""
        return [self.read_tool_output, *([self.recall_history] if self.recall_history else [])]

    def tool_tokens(self, counter: TokenCounter, *, reads_back: bool) -> int:
        """Return the tokens of the bound schemas; counted once, since reading 80 schemas takes milliseconds."""
        key = (counter.encoding_name, counter.exact, reads_back)
        if key not in self._tool_tokens:
            extra = self.readers if reads_back else []
            self._tool_tokens[key] = counter.tools([*self.agent.tools, *extra])
        return self._tool_tokens[key]

    def bound(self, context: Context, *, reads_back: bool) -> "Bound":
        """Return the run's model with its tools; converting their schemas is done once."""
        key = (context.model, reads_back)
        if key not in self._bound:
            extra = self.readers if reads_back else []
            tools, chat = [*self.agent.tools, *extra], self.model_for(context)
            self._bound[key] = Bound.of(chat.bind_tools(tools) if tools else chat)
        return self._bound[key]

    def window_for(self, context: Context) -> int:
        """Return the input limit in tokens: the dial, else the model's own profile."""
        if context.window is not None:
            return context.window
        profile = self.model_for(context).profile or {}
        return int(profile.get("max_input_tokens") or UNKNOWN_WINDOW)

    def budget(self, state: State, context: Context, *, reads_back: bool) -> Budget:
        """Return the budget of the next call.

        Args:
            state: memory, calibration and ceiling.
            context: window, reply reserve, safety fraction.
            reads_back: count the reader of handles as bound.

        Raises:
            BudgetError: what is in every prompt fills the window.
        """
        memory: Memory = state.get("memory") or _NOTHING
        given = (memory, context, state.get("calibration"), state.get("ceiling"))
        key = (id(memory), id(context), reads_back)
        known = self._budgets.get(key)
        if known is not None and known.is_for(*given):
            return known.budget
        budget = self._sized(state, memory, context, reads_back=reads_back)
        _make_room(self._budgets, _KEPT_RUNS)
        self._budgets[key] = _Budgeted(*given, budget)
        return budget

    def beside(self, state: State, context: Context) -> int:
        """Return the tokens of what stands beside the messages in a prompt; counted once for the edges of a run."""
        memory: Memory = state.get("memory") or _NOTHING
        key = (id(memory), id(context), state.get("summary_id"))
        known = self._besides.get(key)
        if known is not None and known[0] is memory and known[1] is context:
            return known[2]
        tokens = reserved(parts_of(state, context, self), self.counter(context))
        _make_room(self._besides, _KEPT_RUNS)
        # The entry keeps what it is known by, so that no other object can take that identity.
        self._besides[key] = memory, context, tokens
        return tokens

    def _sized(self, state: State, memory: Memory, context: Context, *, reads_back: bool) -> Budget:
        counter = self.counter(context)
        window = self.window_for(context)
        profile, notes = counter.text(memory.get("profile", "")), counter.text(memory.get("notes", ""))
        whole = counter.messages([self.shown(memory).system])
        calibration = self.calibration(state, context)
        default = _SAFETY_ESTIMATED if calibration.accuracy == "estimated" else _SAFETY_EXACT
        budget = Budget(
            window=window,
            counted_window=min(calibration.inverse(window), 2 * window) if calibration.anchors else None,
            reply_reserve=reply_reserve(window, context.max_output_tokens),
            fixed={
                "system": whole - profile - notes,
                "profile": profile,
                "notes": notes,
                "tools": self.tool_tokens(counter, reads_back=reads_back),
            },
            safety_fraction=default if context.safety_fraction is None else context.safety_fraction,
            ceiling=state.get("ceiling"),
        )
        if calibration.anchors and budget.room <= 0:
            # Reports that leave no room at all are wrong, or the window is: our own count decides.
            budget = replace(budget, counted_window=None)
        return budget.check()


def _make_room(known: dict[Any, Any], most: int) -> None:
    """Forget everything at once when there is too much: a run makes what it needs again."""
    if len(known) >= most:
        known.clear()


_NOTHING: Memory = {}
"""Memory of a thread about which nothing was resolved; one object, since budgets are known by it."""


@dataclass(frozen=True)
class _Budgeted:
    """A budget and what it was made from: the calls and the edges of a run ask for the same one."""

    memory: Memory
    context: Context
    calibration: dict[str, Any] | None
    ceiling: int | None
    budget: Budget

    def is_for(self, memory: Memory, context: Context, calibration: dict[str, Any] | None, ceiling: int | None) -> bool:
        """Tell whether it is still the budget; the identities hold, since it keeps what it was made from."""
        is_same = self.memory is memory and self.context is context and self.ceiling == ceiling
        return is_same and self.calibration == calibration


@dataclass(frozen=True)
class Bound:
    """A model, and what is passed with each call: its tools, in its provider's form."""

    model: Runnable[LanguageModelInput, BaseMessage]
    kwargs: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, chat: Runnable[Any, Any]) -> "Bound":
        """Take apart what `bind_tools` gave, where it binds arguments only: its own call takes as long as a trim."""
        kwargs: dict[str, Any] = {}
        while isinstance(chat, RunnableBinding) and _binds_arguments_only(chat):
            kwargs, chat = {**chat.kwargs, **kwargs}, chat.bound
        return cls(chat, kwargs)

    def invoke(self, prompt: Sequence[BaseMessage], config: RunnableConfig) -> BaseMessage:
        """Call the model."""
        return self.model.invoke(list(prompt), config, **self.kwargs)

    async def ainvoke(self, prompt: Sequence[BaseMessage], config: RunnableConfig) -> BaseMessage:
        """Call the model without blocking the event loop."""
        return await self.model.ainvoke(list(prompt), config, **self.kwargs)


def _binds_arguments_only(chat: RunnableBinding[Any, Any]) -> bool:
    kind = type(chat)
    is_plain = kind.invoke is RunnableBinding.invoke and kind.ainvoke is RunnableBinding.ainvoke
    return is_plain and not chat.config and not chat.config_factories


@dataclass(frozen=True)
class Shown:
    """A run's memory as a prompt shows it."""

    memory: Memory
    system: SystemMessage
    notes: tuple[Note, ...]
    """Session notes."""

    @classmethod
    def of(cls, memory: Memory, system: SystemMessage) -> "Shown":
        """Read the session notes."""
        notes = tuple(Note.model_validate(note) for note in memory.get("session_notes", []))
        return cls(memory, system, notes)


def is_evicted(messages: Sequence[BaseMessage]) -> bool:
    """Tell whether messages of the thread have left the working set."""
    return bool(messages) and sequence(messages[-1]) >= len(messages)


def system_message(agent: Agent, memory: Memory) -> SystemMessage:
    """Return the head of the prompt: instructions, memory policy, date, profile, long-term notes."""
    parts = [agent.instructions.strip(), render("memory_policy")]
    if today := memory.get("today"):
        parts.append(f"Today is {today}.")
    parts += [block for block in (memory.get("profile", ""), memory.get("notes", "")) if block]
    return SystemMessage("\n\n".join(parts))


def store_of(runtime: Runtime[Context]) -> BaseStore:
    """Return the run's store.

    Raises:
        SettingsError: the graph was built without one, so nothing could be kept.
    """
    if runtime.store is None:
        raise SettingsError(
            "this graph has no store, so nothing could be kept; build it with `build_graph(…, storage=storage)` "
            "or run it on a LangGraph server"
        )
    return runtime.store


def thread_of(runtime: Runtime[Context]) -> str:
    """Return the id of the run's thread.

    Raises:
        SettingsError: the run has none.
    """
    info = runtime.execution_info
    if info is None or not info.thread_id:
        raise SettingsError('no thread: pass {"configurable": {"thread_id": "…"}} as config')
    return str(info.thread_id)


def context_of(runtime: Runtime[Context]) -> Context:
    """Return the run's dials; the defaults when the caller gave none."""
    found = runtime.context
    if isinstance(found, Context):
        return found
    return Context.from_mapping(dict(found)) if found else Context()


def parts_of(state: State, context: Context, wiring: Wiring) -> Parts:
    """Collect what the next prompt is made of."""
    memory = state.get("memory") or {}
    summary = wiring.summary(state)
    shown = wiring.shown(memory)
    notes = shown.notes
    return Parts(
        system=shown.system,
        working_set=state.get("messages", []),
        summary=summary[1] if summary else "",
        session_notes=notes,
        recalled=memory.get("recalled", ""),
        pins=list(dict.fromkeys((*context.pins, *(note.text for note in notes if note.kind == "constraint")))),
    )
