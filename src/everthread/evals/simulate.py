"""What if: recorded conversations under every policy and window, without a model and without a key.

Each conversation runs through the real graph once for each setting, with its recorded replies and tool results, and
every prompt is measured. What a policy would have changed in a model's *replies* cannot be seen this way; what it
would have shown the model, and at what price, can.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from everthread.errors import EverthreadError
from everthread.evals.baselines import BASELINES, FULL, TRUNCATE, play_baseline
from everthread.evals.checks import OVERRUN, PromptChecker
from everthread.evals.needs import Rules, behind_handles, needed_values, shown_text, whole_texts
from everthread.evals.parallel import spread
from everthread.evals.prices import Cost, Prices
from everthread.evals.recording import exchanges
from everthread.evals.records import Record
from everthread.evals.replay import OURS, trace
from everthread.evals.suites import share
from everthread.models.scripted import Tools
from everthread.state import Context
from everthread.window.budget import UNKNOWN_WINDOW
from everthread.window.tokens import counter_for

__all__ = ["Case", "Row", "Setting", "Simulation", "simulate", "simulate_one"]


@dataclass(frozen=True)
class Setting:
    """One thing to try."""

    policy: str
    """A policy of ours, or the name of a baseline."""
    window: int
    context: Context | None = None
    """None: a baseline, which needs no graph."""

    @classmethod
    def of(cls, context: Context, name: str = "") -> "Setting":
        """Make a setting of ours."""
        return cls(name or context.policy, context.window or UNKNOWN_WINDOW, context)

    @property
    def name(self) -> str:
        """What people read."""
        return f"{self.policy}, {self.window:,}"

    @property
    def is_baseline(self) -> bool:
        """Tell whether it is computed from the recording alone."""
        return self.context is None


@dataclass(frozen=True)
class Case:
    """One conversation under one setting."""

    record: str
    policy: str
    window: int
    outcome: str
    """`replayed`, `refused` (what is in every prompt does not fit) or `failed`."""
    error: str | None
    turns: int
    calls: int
    prompt_tokens: int
    cacheable_tokens: int
    output_tokens: int
    largest_prompt: int
    prompts_over_budget: int
    violations: int
    evicted_messages: int
    evicted_turns: int
    masked_results: int
    compactions: int
    lost_messages: int
    needed: int
    """Values that later calls used and earlier messages had."""
    in_prompt: int
    """Those that the prompt of their call has."""
    by_handle: int
    """Those that a handle in the prompt leads to: one call of `read_tool_output`."""
    by_search: int
    """Those that only the transcript has: one call of `recall_history`; for a baseline they are gone."""
    rules: int
    """Pairs of a standing instruction of the user and a prompt that must have it."""
    rules_kept: int
    pins: int
    """The same for pinned sentences."""
    pins_kept: int
    seconds: float
    sizes: tuple[tuple[int, int], ...]
    """Of each prompt: its tokens, and those at its head that the one before had too."""

    @property
    def is_baseline(self) -> bool:
        """Tell whether it was computed from the recording alone."""
        return self.policy in BASELINES

    def line(self) -> dict[str, Any]:
        """Return the case as JSON, without the sizes of every prompt."""
        return {name: value for name, value in asdict(self).items() if name != "sizes" and value is not None}


@dataclass(frozen=True)
class Row:
    """One setting, over all conversations that every setting could run."""

    setting: Setting
    cases: tuple[Case, ...]
    refused: int
    """Conversations whose fixed parts do not fit this window."""
    failed: int
    cost: Cost

    def sum(self, name: str) -> int:
        """Return a figure over all cases."""
        return sum(int(getattr(case, name)) for case in self.cases)

    @property
    def largest_prompt(self) -> int:
        """Return the largest prompt of all."""
        return max((case.largest_prompt for case in self.cases), default=0)

    @property
    def cacheable_share(self) -> float:
        """Return the share of prompt tokens that a provider's cache can serve."""
        return share(self.sum("cacheable_tokens"), self.sum("prompt_tokens"))

    @property
    def kept_share(self) -> float:
        """Return the share of needed values that the prompt of their call has."""
        return share(self.sum("in_prompt"), self.sum("needed"))

    @property
    def recalls_needed(self) -> int:
        """Return how often a needed value would have to be read back."""
        return self.sum("by_handle") + self.sum("by_search")

    def document(self) -> dict[str, Any]:
        """Return the row as JSON."""
        names = (
            *("turns", "calls", "prompt_tokens", "cacheable_tokens", "output_tokens", "prompts_over_budget"),
            *("violations", "evicted_messages", "evicted_turns", "masked_results", "compactions", "lost_messages"),
            *("needed", "in_prompt", "by_handle", "by_search", "rules", "rules_kept", "pins", "pins_kept"),
        )
        return {
            "policy": self.setting.policy,
            "window": self.setting.window,
            "baseline": self.setting.is_baseline,
            "records": len(self.cases),
            "refused": self.refused,
            "failed": self.failed,
            **{name: self.sum(name) for name in names},
            "largest_prompt": self.largest_prompt,
            "cacheable_share": round(self.cacheable_share, 4),
            "kept_share": round(self.kept_share, 4),
            "recalls_needed": self.recalls_needed,
            "cost": {**self.cost.model_dump(), "total": self.cost.total},
        }


@dataclass(frozen=True)
class Simulation:
    """Everything that was tried."""

    rows: tuple[Row, ...]
    prices: Prices
    records: int
    compared: int
    """Conversations that every setting could run; the sums are over these."""
    cases: tuple[Case, ...]

    def document(self) -> dict[str, Any]:
        """Return the simulation as JSON."""
        return {
            "records": self.records,
            "compared": self.compared,
            "prices": self.prices.model_dump(),
            "settings": [row.document() for row in self.rows],
            "cases": [case.line() for case in self.cases],
        }

    @property
    def is_clean(self) -> bool:
        """Tell whether no setting of ours failed, lost a message or went over a budget."""
        ours = [case for case in self.cases if not case.is_baseline]
        return not any(case.violations or case.outcome == "failed" for case in ours)


def simulate(
    records: Sequence[Record],
    settings: Sequence[Setting],
    prices: Prices,
    *,
    count_as: str = OURS,
    jobs: int = 1,
    tick: Any = None,
) -> Simulation:
    """Try every setting on every conversation; full history and plain truncation come along as baselines.

    Args:
        records: recorded conversations.
        settings: what to try.
        prices: what tokens cost.
        count_as: name of the model whose tokens are counted.
        jobs: processes to use.
        tick: called after each conversation with: done, all, its id.
    """
    windows = list(dict.fromkeys(setting.window for setting in settings))
    baselines = [Setting(FULL, max(windows)), *(Setting(TRUNCATE, window) for window in windows)]
    tried = [*settings, *baselines]
    work = partial(simulate_one, settings=tried, count_as=count_as)
    found: dict[int, list[Case]] = {}
    for place, cases in spread(work, records, jobs):
        found[place] = cases
        if tick is not None:
            tick(len(found), len(records), records[place].id)
    ordered = [found[place] for place in range(len(records))]
    return _summed(ordered, tried, prices)


def _summed(found: Sequence[Sequence[Case]], tried: Sequence[Setting], prices: Prices) -> Simulation:
    """Add up; a sum over fewer conversations would look cheaper, so only those that all settings ran count."""
    common = [cases for cases in found if all(case.outcome == "replayed" for case in cases)]
    rows = []
    for place, setting in enumerate(tried):
        mine = tuple(cases[place] for cases in common)
        outcomes = [cases[place].outcome for cases in found]
        cost = sum((prices.cost(case.sizes, case.output_tokens) for case in mine), Cost())
        rows.append(Row(setting, mine, outcomes.count("refused"), outcomes.count("failed"), cost))
    return Simulation(tuple(rows), prices, len(found), len(common), tuple(case for cases in found for case in cases))


def simulate_one(record: Record, settings: Sequence[Setting], count_as: str = OURS) -> list[Case]:
    """Try every setting on one conversation."""
    return [_case(record, setting, count_as) for setting in settings]


class _Look:
    """What is measured at every prompt of one conversation under one setting."""

    def __init__(self, record: Record, pins: Sequence[str]) -> None:
        self._needs = needed_values(record)
        self._whole = whole_texts(record)
        self._rules = Rules(record)
        self._pins = Rules(record, {}, pins)
        self.counts: dict[str, int] = defaultdict(int)

    def __call__(self, reply: AIMessage, messages: list[BaseMessage], tools: Tools) -> None:
        text = shown_text(messages)
        self._rules.look(messages, text)
        self._pins.look(messages, text)
        wanted = self._needs.get(str(reply.id), ())
        self.counts["needed"] += len(wanted)
        missing = [value for value in wanted if value not in text]
        self.counts["in_prompt"] += len(wanted) - len(missing)
        behind = behind_handles(messages, self._whole) if missing else ""
        near = sum(value in behind for value in missing)
        self.counts["by_handle"] += near
        self.counts["by_search"] += len(missing) - near

    def figures(self) -> dict[str, int]:
        """Return the counts by the names of `Case`."""
        names = ("needed", "in_prompt", "by_handle", "by_search")
        rules = {"rules": self._rules.seen, "rules_kept": self._rules.kept}
        pins = {"pins": self._pins.seen, "pins_kept": self._pins.kept}
        return {**{name: self.counts[name] for name in names}, **rules, **pins}


def _case(record: Record, setting: Setting, count_as: str) -> Case:
    """Run one conversation; an error that stops it becomes part of the case."""
    look = _Look(record, setting.context.pins if setting.context else ())
    counter = counter_for(count_as)
    runs = exchanges(record.messages)[0]
    replies = [reply for run in runs for reply in run.replies]
    common: dict[str, Any] = {"record": record.id, "policy": setting.policy, "window": setting.window}
    if setting.context is None:
        checker = play_baseline(record, setting.policy, window=setting.window, counter=counter, watch=look)
        turns = sum(isinstance(message, HumanMessage) for run in runs for message in run.input)
        output = sum(map(counter.message, replies))
        return Case(**{**common, **_baseline(checker, turns), **look.figures(), "output_tokens": output})
    try:
        run = trace(record, setting.context, count_as=count_as, watch=look)
    except EverthreadError as refusal:
        return Case(**{**common, **_nothing(str(refusal)), **look.figures(), "output_tokens": 0})
    result = run.result
    users = {str(message.id) for message in record.messages if isinstance(message, HumanMessage)}
    evicted = [name for event in run.events if event["event"] == "evicted" for name in event["message_ids"]]
    folded = [name for event in run.events if event["event"] == "compacted" for name in event["message_ids"]]
    gone = set(evicted) | set(folded)
    return Case(
        **common,
        outcome=result.outcome,
        error=result.error,
        turns=result.turns,
        calls=result.calls,
        prompt_tokens=result.prompt_tokens,
        cacheable_tokens=result.cacheable_prefix_tokens,
        output_tokens=sum(map(counter.message, replies[: result.calls])),
        largest_prompt=result.max_prompt_tokens,
        prompts_over_budget=result.overruns,
        violations=len(result.violations),
        evicted_messages=len(gone),
        evicted_turns=len(gone & users),
        masked_results=result.masked_results,
        compactions=result.compactions,
        lost_messages=result.lost_messages,
        seconds=result.seconds,
        sizes=run.sizes,
        **cast("dict[str, Any]", look.figures()),
    )


def _baseline(checker: PromptChecker, turns: int) -> dict[str, Any]:
    return _nothing(None) | {
        "outcome": "replayed" if checker.calls else "refused",
        "turns": turns,
        "calls": checker.calls,
        "prompt_tokens": checker.prompt_tokens,
        "cacheable_tokens": checker.cacheable_prefix_tokens,
        "largest_prompt": checker.max_prompt_tokens,
        "prompts_over_budget": checker.count(OVERRUN),
        "violations": len(checker.violations),
        "sizes": tuple(checker.sizes),
    }


def _nothing(error: str | None) -> dict[str, Any]:
    counts = (
        *("turns", "calls", "prompt_tokens", "cacheable_tokens", "largest_prompt", "prompts_over_budget"),
        *("violations", "evicted_messages", "evicted_turns", "masked_results", "compactions", "lost_messages"),
    )
    return {"outcome": "refused", "error": error, "seconds": 0.0, "sizes": (), **dict.fromkeys(counts, 0)}


def by_call(row: Row) -> Iterator[tuple[int, float]]:
    """Yield the number of a call and the mean size of the prompts at it, while a tenth of the conversations is left."""
    enough = max(len(row.cases) / 10, 1)
    for place in range(max((len(case.sizes) for case in row.cases), default=0)):
        there = [case.sizes[place][0] for case in row.cases if place < len(case.sizes)]
        if len(there) < enough:
            return
        yield place + 1, sum(there) / len(there)
