"""Send recorded conversations through the real graph and check every prompt."""

import logging
import tempfile
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import Any, Literal

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore

from everthread.errors import BudgetError, RecordError, ScriptError
from everthread.evals import checks
from everthread.evals.checks import PromptChecker, Violation
from everthread.evals.recording import Exchange, RecordedModel, Tape, exchanges, played, recorded_agent
from everthread.evals.records import Record
from everthread.graph.agent import build_graph
from everthread.models.scripted import Tools
from everthread.state import Context, Input, Output, State
from everthread.storage.open import Storage, open_storage
from everthread.storage.transcript import transcript
from everthread.window.budget import UNKNOWN_WINDOW, reply_reserve
from everthread.window.tokens import counter_for

logger = logging.getLogger(__name__)

OURS = "replay"
"""Name of the replayed model, whose tokens are o200k tokens."""

Graph = CompiledStateGraph[State, Context, Input, Output]

_THREAD = "replay"
_CONFIG: RunnableConfig = {"configurable": {"thread_id": _THREAD}}


@dataclass(frozen=True)
class Result:
    """What one record did; `line` is its JSON."""

    id: str
    turns: int
    """Messages of the user that were sent."""
    calls: int
    """Prompts that were sent to the model."""
    window: int
    max_prompt_tokens: int
    overruns: int
    orphan_tool_messages: int
    unanswered_calls: int
    missing_questions: int
    lost_messages: int
    evicted_messages: int
    masked_results: int
    compactions: int
    prompt_tokens: int
    cacheable_prefix_tokens: int
    skipped_messages: int
    """Messages at the end that nothing recorded answers."""
    seconds: float
    outcome: Literal["replayed", "refused", "failed"]
    """`refused`: the documented error, such as a window too small for the tool schemas; `failed`: any other."""
    error: str | None = None
    violations: tuple[Violation, ...] = ()

    @property
    def is_clean(self) -> bool:
        """Tell whether nothing was violated and nothing unforeseen happened."""
        return not self.violations and self.outcome != "failed"

    def line(self) -> dict[str, Any]:
        """Return the JSON object of this record; `error` and `violations` only when there are any."""
        return {name: value for name, value in asdict(self).items() if value is not None and value != ()}


Watch = Callable[[AIMessage, list[BaseMessage], Tools], None]
"""Called with each prompt, its tool schemas and the recorded reply to it, in the order reply, messages, tools."""


@dataclass(frozen=True)
class Trace:
    """What a replay left besides its figures."""

    result: Result
    events: tuple[dict[str, Any], ...]
    """The ledger's events, in order, as JSON."""
    sizes: tuple[tuple[int, int], ...]
    """Of each prompt: its tokens, and those at its head that the one before had too."""
    kept: Any = None
    """What `at_end` returned."""


def replay(record: Record, context: Context, *, count_as: str = OURS) -> Result:
    """Replay one record with a fresh database; errors become part of the result.

    Args:
        record: a recorded conversation.
        context: window, policy and all other dials.
        count_as: name of the model whose tokens are counted, such as `gpt-4.1`; the default counts o200k tokens.

    Raises:
        BudgetError: the reply reserve does not fit the window.
    """
    return trace(record, context, count_as=count_as).result


def trace(
    record: Record,
    context: Context,
    *,
    count_as: str = OURS,
    watch: Watch | None = None,
    at_end: Callable[[BaseStore], Any] | None = None,
    in_memory: bool = False,
) -> Trace:
    """Replay one record and keep what happened on the way.

    Args:
        record: a recorded conversation.
        context: window, policy and all other dials.
        count_as: name of the model whose tokens are counted.
        watch: sees every prompt before its reply is given.
        at_end: reads the store after every session of the record was ended; not called when the replay stopped early.
        in_memory: keep the database in memory, which takes a fifth less time and changes no figure.

    Raises:
        BudgetError: the reply reserve does not fit the window.
    """
    began = time.perf_counter()
    run = _Run(record, context, count_as, watch=watch, at_end=at_end, in_memory=in_memory)
    outcome: Literal["replayed", "refused", "failed"] = "replayed"
    error: str | None = None
    try:
        run.play()
    except (BudgetError, RecordError) as refusal:
        outcome, error = "refused", str(refusal)
    except Exception as failure:
        logger.debug("record %s failed", record.id, exc_info=True)
        outcome, error = "failed", f"{type(failure).__name__}: {failure}"
    return run.trace(time.perf_counter() - began, outcome, error)


def total(results: Sequence[Result]) -> dict[str, Any]:
    """Return the summary line: how many records came to what, and the sums over them."""
    sums = (
        *("turns", "calls", "overruns", "orphan_tool_messages", "unanswered_calls", "missing_questions"),
        *("lost_messages", "evicted_messages", "masked_results", "compactions"),
        *("prompt_tokens", "cacheable_prefix_tokens", "skipped_messages"),
    )
    return {
        "summary": True,
        "records": len(results),
        **{kind: sum(result.outcome == kind for result in results) for kind in ("replayed", "refused", "failed")},
        **{name: sum(getattr(result, name) for result in results) for name in sums},
        "violations": sum(len(result.violations) for result in results),
        "max_prompt_tokens": max((result.max_prompt_tokens for result in results), default=0),
        "seconds": round(sum(result.seconds for result in results), 3),
    }


class _Run:
    """One record on its way through the graph."""

    def __init__(
        self,
        record: Record,
        context: Context,
        count_as: str,
        *,
        watch: Watch | None = None,
        at_end: Callable[[BaseStore], Any] | None = None,
        in_memory: bool = False,
    ) -> None:
        self._watch = watch
        self._at_end = at_end
        self._in_memory = in_memory
        self._due: deque[AIMessage] = deque()
        self._kept: Any = None
        self._place = 0
        self._places = {str(message.id): place for place, message in enumerate(record.messages)}
        self._record = record
        self._context = context
        self._tape = Tape()
        self._sent: list[BaseMessage] = []
        self._events: list[dict[str, Any]] = []
        self._window = context.window or UNKNOWN_WINDOW
        self._skipped = 0
        self._losses: list[Violation] = []
        self._checker = PromptChecker(
            window=self._window,
            reserve=reply_reserve(self._window, context.max_output_tokens),
            counter=counter_for(count_as),
            instructions=record.toolkit.system,
        )
        self._model = RecordedModel(self._look, count_as)
        self._agent = recorded_agent(record, self._tape)

    def play(self) -> None:
        """Send every exchange through the graph, then compare what is kept with what was sent.

        Raises:
            BudgetError: the window cannot hold what must be in a prompt.
            RecordError: there is nothing to replay.
        """
        runs, left = exchanges(self._record.messages)
        self._skipped = len(left)
        if not runs:
            raise RecordError(f"{self._record.where}: no message of the user has a recorded answer to replay")
        with ExitStack() as stack:
            url = "sqlite://"
            if not self._in_memory:
                folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="everthread-replay-"))
                url = f"sqlite:///{folder}/replay.db"
            self._play(runs, stack.enter_context(open_storage(url)))

    def _play(self, runs: Iterable[Exchange], storage: Storage) -> None:
        graph = build_graph(self._agent, model=self._model, storage=storage)
        try:
            for run in runs:
                if self._is_over(run):
                    self._end(graph)
                self._send(graph, run)
        finally:
            kept = transcript(storage.store, _THREAD, graph.get_state(_CONFIG).values.get("messages", []))
            self._losses = checks.compare(self._sent, kept)
        if self._at_end is not None:
            self._end(graph)
            self._kept = self._at_end(storage.store)

    def _is_over(self, run: Exchange) -> bool:
        """Tell whether a session of the record ended before this run; without `at_end` sessions do not matter."""
        place = self._places.get(str(run.input[0].id), 0)
        over = self._at_end is not None and any(self._place < end <= place for end in self._record.session_ends)
        self._place = place
        return over

    def _end(self, graph: Graph) -> None:
        """End the session, so that its notes become long-term notes."""
        ending: Any = {"end_session": True}
        self._events += graph.stream(ending, _CONFIG, context=self._context, stream_mode="custom")

    def _look(self, messages: list[BaseMessage], tools: Tools) -> None:
        """Check a prompt, and show it together with the reply that it gets."""
        self._checker.check(messages, tools)
        reply = self._due.popleft() if self._due else AIMessage("")
        if self._watch is not None:
            self._watch(reply, messages, tools)

    def _send(self, graph: Graph, run: Exchange) -> None:
        """Run the graph once.

        Raises:
            ScriptError: the graph ended before the recorded assistant had said everything.
        """
        self._checker.expect(run.input)
        self._tape.load(run.results)
        self._model.load(run.replies)
        self._due = deque(run.replies)
        self._sent += run.input
        before = self._model.calls
        given: Any = {"messages": run.input}
        try:
            for event in graph.stream(given, _CONFIG, context=self._context, stream_mode="custom"):
                self._events.append(event)
        finally:
            self._sent += played(run, self._model.calls - before)
        if self._model.left:
            raise ScriptError(f"the run ended with {self._model.left} recorded replies left after call {before}")

    def trace(self, seconds: float, outcome: Literal["replayed", "refused", "failed"], error: str | None) -> Trace:
        """Return the figures of the run, and what it left."""
        result = self.result(seconds, outcome, error)
        return Trace(result, tuple(self._events), tuple(self._checker.sizes), self._kept)

    def result(self, seconds: float, outcome: Literal["replayed", "refused", "failed"], error: str | None) -> Result:
        """Return the figures of the run."""
        checker = self._checker
        by_kind = defaultdict(list)
        for event in self._events:
            by_kind[event["event"]].append(event)
        return Result(
            id=self._record.id,
            turns=sum(isinstance(message, HumanMessage) for message in self._sent),
            calls=checker.calls,
            window=self._window,
            max_prompt_tokens=checker.max_prompt_tokens,
            overruns=checker.count(checks.OVERRUN),
            orphan_tool_messages=checker.count(checks.ORPHAN),
            unanswered_calls=checker.count(checks.UNANSWERED),
            missing_questions=checker.count(checks.MISSING_QUESTION),
            lost_messages=sum(loss.what == checks.LOST for loss in self._losses),
            evicted_messages=sum(len(event["message_ids"]) for event in by_kind["evicted"]),
            masked_results=len({event["message_id"] for event in (*by_kind["masked"], *by_kind["offloaded"])}),
            compactions=len(by_kind["compacted"]),
            prompt_tokens=checker.prompt_tokens,
            cacheable_prefix_tokens=checker.cacheable_prefix_tokens,
            skipped_messages=self._skipped,
            seconds=round(seconds, 3),
            outcome=outcome,
            error=error,
            violations=(*checker.violations, *self._losses),
        )
