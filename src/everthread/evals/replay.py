"""Send recorded conversations through the real graph and check every prompt."""

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.store.base import BaseStore

from everthread.errors import BudgetError, RecordError, ScriptError
from everthread.evals import checks
from everthread.evals.checks import PromptChecker, Violation
from everthread.evals.recording import (
    Exchange,
    RecordedModel,
    RecordedResults,
    Watch,
    exchanges,
    played,
    recorded_agent,
)
from everthread.evals.records import Record
from everthread.graph.agent import build_graph
from everthread.graph.guard import GuardedGraph
from everthread.state import Context
from everthread.storage.open import open_storage
from everthread.storage.transcript import transcript
from everthread.window.budget import UNKNOWN_WINDOW, reply_reserve
from everthread.window.tokens import counter_for

logger = logging.getLogger(__name__)

OURS = "replay"
"""Name of the replayed model, whose tokens are o200k tokens."""


Outcome = Literal["replayed", "refused", "failed"]
"""`refused`: the documented error, such as a window too small for the tool schemas; `failed`: any other."""

_THREAD = "replay"
_CONFIG: RunnableConfig = {"configurable": {"thread_id": _THREAD}}


@dataclass(frozen=True, kw_only=True)
class Result:
    """Figures of one record; `line` is their JSON."""

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
    lost_messages: int = 0
    evicted_messages: int = 0
    masked_results: int = 0
    compactions: int = 0
    prompt_tokens: int
    cacheable_prefix_tokens: int
    skipped_messages: int = 0
    """Messages at the end that nothing recorded answers."""
    seconds: float = 0.0
    outcome: Outcome
    error: str | None = None
    violations: tuple[Violation, ...] = ()

    @classmethod
    def of(cls, record: Record, checker: PromptChecker, losses: Sequence[Violation] = (), **figures: Any) -> "Result":
        """Make the result of a record from what its prompts showed, what was lost, and further figures."""
        return cls(
            id=record.id,
            calls=checker.calls,
            window=checker.window,
            max_prompt_tokens=checker.max_prompt_tokens,
            overruns=checker.count(checks.OVERRUN),
            orphan_tool_messages=checker.count(checks.ORPHAN),
            unanswered_calls=checker.count(checks.UNANSWERED),
            missing_questions=checker.count(checks.MISSING_QUESTION),
            lost_messages=sum(loss.what == checks.LOST for loss in losses),
            prompt_tokens=checker.prompt_tokens,
            cacheable_prefix_tokens=checker.cacheable_prefix_tokens,
            violations=(*checker.violations, *losses),
            **figures,
        )

    @property
    def is_clean(self) -> bool:
        """Tell whether nothing was violated and nothing unforeseen happened."""
        return not self.violations and self.outcome != "failed"

    def line(self) -> dict[str, Any]:
        """Return the JSON object of this record; `error` and `violations` only when there are any."""
        return {name: value for name, value in asdict(self).items() if value is not None and value != ()}


@dataclass(frozen=True)
class Trace:
    """Everything that a replay gives."""

    result: Result
    sizes: tuple[tuple[int, int], ...]
    """Of each prompt: its tokens, and those at its head that the one before had too."""
    events: tuple[dict[str, Any], ...] = ()
    """The ledger's events, in order, as JSON; none of a baseline."""
    at_end: Any = None
    """The value that `at_end` returned."""


def replay(record: Record, context: Context, *, count_as: str = OURS) -> Result:
    """Replay one record with a fresh database; errors become part of the result.

    Args:
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
) -> Trace:
    """Replay one record in memory; return its events and the sizes of its prompts, too.

    Args:
        watch: sees every prompt with the recorded reply to it.
        at_end: reads the store at the end; with it, sessions end where the record says. It is not called when the
            replay stopped early.

    Raises:
        BudgetError: the reply reserve does not fit the window.
    """
    began = time.perf_counter()
    run = _Run(record, context, count_as, watch)
    outcome: Outcome = "replayed"
    error: str | None = None
    value: Any = None
    try:
        value = run.play(at_end)
    except (BudgetError, RecordError) as refusal:
        outcome, error = "refused", str(refusal)
    except Exception as failure:
        logger.debug("record %s failed", record.id, exc_info=True)
        outcome, error = "failed", f"{type(failure).__name__}: {failure}"
    result = run.result(time.perf_counter() - began, outcome, error)
    return Trace(result, tuple(run.checker.sizes), tuple(run.events), value)


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

    def __init__(self, record: Record, context: Context, count_as: str, watch: Watch | None) -> None:
        window = context.window or UNKNOWN_WINDOW
        self.events: list[dict[str, Any]] = []
        self.checker = PromptChecker(
            window=window,
            reserve=reply_reserve(window, context.max_output_tokens),
            counter=counter_for(count_as),
            instructions=record.toolkit.system,
        )
        self._record = record
        self._context = context
        self._runs, unanswered = exchanges(record.messages)
        self._skipped = len(unanswered)
        self._sent: list[BaseMessage] = []
        self._losses: list[Violation] = []
        self._results = RecordedResults()
        self._model = RecordedModel(count_as, self.checker.check, watch)

    def play(self, at_end: Callable[[BaseStore], Any] | None) -> Any:
        """Send every exchange through the graph, then compare what is kept with what was sent.

        Raises:
            BudgetError: the window cannot hold what must be in a prompt.
            RecordError: there is nothing to replay.
        """
        if not self._runs:
            raise RecordError(f"{self._record.where}: no message of the user has a recorded answer to replay")
        agent = recorded_agent(self._record, self._results)
        with open_storage("sqlite://") as storage:
            graph = build_graph(agent, model=self._model, storage=storage)
            try:
                for run, ends_session in zip(self._runs, self._session_starts(), strict=True):
                    if at_end is not None and ends_session:
                        self._stream(graph, {"end_session": True})
                    self._send(graph, run)
            finally:
                kept = transcript(storage.store, _THREAD, graph.get_state(_CONFIG).values.get("messages", []))
                self._losses = checks.compare(self._sent, kept)
            if at_end is None:
                return None
            self._stream(graph, {"end_session": True})
            return at_end(storage.store)

    def _session_starts(self) -> Iterator[bool]:
        """Tell of each run whether a session of the record ended since the run before."""
        places = {str(message.id): place for place, message in enumerate(self._record.messages)}
        before = 0
        for run in self._runs:
            place = places.get(str(run.input[0].id), 0)
            yield any(before < end <= place for end in self._record.session_ends)
            before = place

    def _send(self, graph: GuardedGraph, run: Exchange) -> None:
        """Run the graph once.

        Raises:
            ScriptError: the graph ended before the recorded assistant had said everything.
        """
        self.checker.expect(run.input)
        self._results.load(run.results)
        self._model.load(run.replies)
        self._sent += run.input
        before = self._model.calls
        try:
            self._stream(graph, {"messages": run.input})
        finally:
            self._sent += played(run, self._model.calls - before)
        if self._model.left:
            raise ScriptError(f"the run ended with {self._model.left} recorded replies left after call {before}")

    def _stream(self, graph: GuardedGraph, update: Any) -> None:
        for event in graph.stream(update, _CONFIG, context=self._context, stream_mode="custom"):
            self.events.append(event)

    def result(self, seconds: float, outcome: Outcome, error: str | None) -> Result:
        """Return the figures of the run."""
        by_kind = defaultdict(list)
        for event in self.events:
            by_kind[event["event"]].append(event)
        return Result.of(
            self._record,
            self.checker,
            self._losses,
            turns=sum(isinstance(message, HumanMessage) for message in self._sent),
            evicted_messages=sum(len(event["message_ids"]) for event in by_kind["evicted"]),
            masked_results=len({event["message_id"] for event in (*by_kind["masked"], *by_kind["offloaded"])}),
            compactions=len(by_kind["compacted"]),
            skipped_messages=self._skipped,
            seconds=round(seconds, 3),
            outcome=outcome,
            error=error,
        )
