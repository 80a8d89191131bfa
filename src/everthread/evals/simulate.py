"""Try policies and windows on recorded conversations, without a model and without a key.

Each conversation runs through the real graph once for each setting, with its recorded replies and tool results, and
every prompt is measured. What a policy would have changed in a model's *replies* cannot be seen this way; what it
would have shown the model, and at what price, can.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from everthread.errors import EverthreadError
from everthread.evals.baselines import BASELINES, FULL, TRUNCATE, play_baseline
from everthread.evals.needs import Rules, behind_handles, full_texts, needed_values, shown_text
from everthread.evals.parallel import spread
from everthread.evals.prices import Cost, Prices
from everthread.evals.recording import exchanges
from everthread.evals.records import Record
from everthread.evals.replay import OURS, Outcome, trace
from everthread.evals.suites import Tick, share
from everthread.models.scripted import Tools
from everthread.state import Context
from everthread.window.budget import UNKNOWN_WINDOW
from everthread.window.tokens import counter_for


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
    outcome: Outcome
    error: str | None = None
    seconds: float = 0.0
    sizes: tuple[tuple[int, int], ...] = ()
    """Of each prompt: its tokens, and those at its head that the one before had too."""
    largest_prompt: int = 0
    turns: int = 0
    calls: int = 0
    prompt_tokens: int = 0
    cacheable_tokens: int = 0
    output_tokens: int = 0
    prompts_over_budget: int = 0
    violations: int = 0
    evicted_messages: int = 0
    evicted_turns: int = 0
    masked_results: int = 0
    compactions: int = 0
    lost_messages: int = 0
    needed: int = 0
    """Values that later calls used and earlier messages had."""
    in_prompt: int = 0
    """Those that the prompt of their call has."""
    by_handle: int = 0
    """Those that a handle in the prompt leads to: one call of `read_tool_output`."""
    by_search: int = 0
    """Those that only the transcript has: one call of `recall_history`; for a baseline they are gone."""
    rules: int = 0
    """Pairs of a constraint that the user stated and a prompt that must have it."""
    rules_kept: int = 0
    pins: int = 0
    """The same for pinned sentences."""
    pins_kept: int = 0

    @property
    def is_baseline(self) -> bool:
        """Tell whether it was computed from the recording alone."""
        return self.policy in BASELINES

    def line(self) -> dict[str, Any]:
        """Return the case as JSON, without the sizes of every prompt."""
        return {name: value for name, value in asdict(self).items() if name != "sizes" and value is not None}


_SUMS = tuple(one.name for one in fields(Case) if one.type is int and one.name not in ("window", "largest_prompt"))
"""Figures of a case that can be added up."""


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

    def portion(self, name: str) -> str:
        """Return the share of `rules` or `pins` that was kept, as text; a dash where there were none."""
        return f"{share(self.sum(f'{name}_kept'), self.sum(name)):.1%}" if self.sum(name) else "–"

    def document(self) -> dict[str, Any]:
        """Return the row as JSON."""
        return {
            "policy": self.setting.policy,
            "window": self.setting.window,
            "baseline": self.setting.is_baseline,
            "records": len(self.cases),
            "refused": self.refused,
            "failed": self.failed,
            **{name: self.sum(name) for name in _SUMS},
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
    tick: Tick | None = None,
) -> Simulation:
    """Try every setting on every conversation; full history and plain truncation come along as baselines.

    Args:
        count_as: name of the model whose tokens are counted.
        tick: called after each conversation with: done, all, its id.
    """
    windows = list(dict.fromkeys(setting.window for setting in settings))
    baselines = [Setting(FULL, max(windows)), *(Setting(TRUNCATE, window) for window in windows)]
    tried = [*settings, *baselines]
    cases = spread(partial(simulate_one, settings=tried, count_as=count_as), records, jobs, tick)
    return _summed(cases, tried, prices)


def _summed(cases: Sequence[Sequence[Case]], tried: Sequence[Setting], prices: Prices) -> Simulation:
    """Add up; a sum over fewer conversations would look cheaper, so only those that all settings ran count."""
    common = [row for row in cases if all(case.outcome == "replayed" for case in row)]
    rows = []
    for place, setting in enumerate(tried):
        mine = tuple(row[place] for row in common)
        outcomes = [row[place].outcome for row in cases]
        cost = sum((prices.cost(case.sizes, case.output_tokens) for case in mine), Cost())
        rows.append(Row(setting, mine, outcomes.count("refused"), outcomes.count("failed"), cost))
    return Simulation(tuple(rows), prices, len(cases), len(common), tuple(case for row in cases for case in row))


def simulate_one(record: Record, settings: Sequence[Setting], count_as: str = OURS) -> list[Case]:
    """Try every setting on one conversation."""
    cases = []
    for setting in settings:
        probe = _Probe(record, setting.context.pins if setting.context else ())
        figures = _figures(record, setting, count_as, probe)
        cases.append(Case(record.id, setting.policy, setting.window, **figures, **probe.figures()))
    return cases


class _Probe:
    """Look into every prompt of one conversation for what it should have."""

    def __init__(self, record: Record, pins: Sequence[str]) -> None:
        self._needs = needed_values(record)
        self._texts = full_texts(record)
        self._rules = Rules(record)
        self._pins = Rules(record, {}, pins)
        self._counts: Counter[str] = Counter()

    def __call__(self, reply: AIMessage, messages: list[BaseMessage], tools: Tools) -> None:
        text = shown_text(messages)
        self._rules.look(messages, text)
        self._pins.look(messages, text)
        needed = self._needs.get(str(reply.id), ())
        missing = [value for value in needed if value not in text]
        behind = behind_handles(messages, self._texts) if missing else ""
        near = sum(value in behind for value in missing)
        self._counts.update(needed=len(needed), in_prompt=len(needed) - len(missing))
        self._counts.update(by_handle=near, by_search=len(missing) - near)

    def figures(self) -> dict[str, Any]:
        """Return the counts by the names of `Case`."""
        rules = {"rules": self._rules.seen, "rules_kept": self._rules.kept}
        pins = {"pins": self._pins.seen, "pins_kept": self._pins.kept}
        return {**self._counts, **rules, **pins}


def _figures(record: Record, setting: Setting, count_as: str, probe: _Probe) -> dict[str, Any]:
    """Play a conversation under a setting; an error that stops it becomes part of the figures."""
    counter = counter_for(count_as)
    try:
        if setting.context is None:
            run = play_baseline(record, setting.policy, window=setting.window, counter=counter, watch=probe)
        else:
            run = trace(record, setting.context, count_as=count_as, watch=probe)
    except EverthreadError as refusal:
        return {"outcome": "refused", "error": str(refusal)}
    result = run.result
    replies = [reply for one in exchanges(record.messages)[0] for reply in one.replies]
    users = {str(message.id) for message in record.messages if isinstance(message, HumanMessage)}
    moves = [event["message_ids"] for event in run.events if event["event"] in ("evicted", "compacted")]
    gone = {message_id for message_ids in moves for message_id in message_ids}
    return {
        "outcome": result.outcome,
        "error": result.error,
        "turns": result.turns,
        "calls": result.calls,
        "prompt_tokens": result.prompt_tokens,
        "cacheable_tokens": result.cacheable_prefix_tokens,
        "output_tokens": sum(map(counter.message, replies[: result.calls])),
        "largest_prompt": result.max_prompt_tokens,
        "prompts_over_budget": result.overruns,
        "violations": len(result.violations),
        "evicted_messages": len(gone),
        "evicted_turns": len(gone & users),
        "masked_results": result.masked_results,
        "compactions": result.compactions,
        "lost_messages": result.lost_messages,
        "seconds": result.seconds,
        "sizes": run.sizes,
    }


def by_call(row: Row) -> Iterator[tuple[int, float]]:
    """Yield the number of a call and the mean size of the prompts at it, while a tenth of the conversations is left."""
    enough = max(len(row.cases) / 10, 1)
    for place in range(max((len(case.sizes) for case in row.cases), default=0)):
        sizes = [case.sizes[place][0] for case in row.cases if place < len(case.sizes)]
        if len(sizes) < enough:
            return
        yield place + 1, sum(sizes) / len(sizes)
