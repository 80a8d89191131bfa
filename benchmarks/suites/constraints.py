"""Is every constraint in every prompt, word for word, from the message on that states it?

Three kinds of constraint, in conversations whose history gets only `budget` tokens, so that the messages that state
them soon leave the prompt:

- `planted`: one sentence of `planted.py` at the end of an early message of the user, in every recorded
  conversation and in conversations made for this (40 turns). Nobody tells Everthread about it.
- `found`: the constraints that the rules recognise in the recorded messages themselves.
- `pinned`: the planted sentence again, this time as `Context.pins`.

`in_prompts` is the share of pairs of a constraint and a prompt that has to have it; `always` is the share of
constraints that no prompt misses. Baselines play the same conversations in the same window.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from langchain_core.messages import AIMessage, BaseMessage

from everthread.evals.baselines import BASELINES, play_baseline
from everthread.evals.needs import Rules, shown_text
from everthread.evals.parallel import spread
from everthread.evals.picking import playable
from everthread.evals.recording import recorded_agent
from everthread.evals.records import Record
from everthread.evals.replay import OURS, trace
from everthread.evals.suites import Options, Report, Table, Tick, refusals
from everthread.memory.text.constraints import constraints_in
from everthread.models.scripted import Tools
from everthread.nodes.prompt_plan import system_message
from everthread.state import Context
from everthread.tools.read_tool_output import read_tool_output
from everthread.tools.recall_history import recall_history
from everthread.window.tokens import TokenCounter, counter_for

from .planted import WORDINGS, make_records, plant

__all__ = ["run"]

BUDGET = 2_000
_MADE, _TURNS = 10, 40
_UNKNOWN = "A wording that no rule knows survives only while its message or a line about it is in the prompt."

RESERVE = 200
"""Tokens for the reply, small so that the history decides."""

_SOME_DAY = "2026-01-01"

PLANTED, FOUND, PINNED = "planted", "found", "pinned"


@dataclass(frozen=True)
class Kept:
    """What became of the constraints of one conversation under one method."""

    method: str
    kind: str
    category: str
    wording: str
    """The sentence, when it was planted."""
    pairs: int
    kept: int
    constraints: int
    always: int


def run(paths: Sequence[Path], options: Options, tick: Tick) -> Report:
    """Measure how constraints survive small windows.

    Raises:
        RecordError: a file cannot be read, or holds no conversation.
    """
    history = options.budget or BUDGET
    picked = playable(paths, options.limit)
    records = [*picked.records, *make_records(_MADE, _TURNS, options.seed)]
    work = partial(measured, history=history, seed=options.seed)
    results = spread(work, records, options.jobs, tick)
    kept = [row for rows in results if not isinstance(rows, str) for row in rows]
    stopped = [reason for reason in results if isinstance(reason, str)]
    remarks = [
        *picked.remarks,
        "A wording that no rule knows survives only while its message or a line about it is in the prompt.",
    ]
    if stopped:
        remarks.append(refusals(stopped))
    return Report(
        suite="constraints",
        figures=_figures(kept),
        tables=tuple(_tables(kept, history)),
        remarks=tuple(remarks),
        settings={"budget": history, "conversations": len(records) - len(stopped), "made": _MADE, "seed": options.seed},
    )


def measured(record: Record, history: int, seed: int) -> list[Kept] | str:
    """Play one conversation under every method; a text says why it could not be played."""
    counter = counter_for(OURS)
    planted, stated, category = plant(record, seed)
    context = roomy(planted, history, counter)
    sentences = tuple(stated.values())
    settings: dict[str, Context] = {
        "everthread": context,
        "everthread, notes by rules": replace(context, distillation=("turn",)),
    }
    rows: list[Kept] = []
    for method, dials in settings.items():
        probe = _Probe(planted, stated)
        result = trace(planted, dials, watch=probe).result
        if result.outcome != "replayed":
            return f"{record.id}: {result.error}"
        rows += probe.rows(method, category)
    probe = _Probe(planted, stated, pins=sentences)
    wider = replace(context, window=(context.window or 0) + 100, pins=sentences)
    if sentences and trace(planted, wider, watch=probe).result.outcome == "replayed":
        rows += [row for row in probe.rows("everthread, pinned", category) if row.kind == PINNED]
    for name in BASELINES:
        probe = _Probe(planted, stated)
        window = context.window or 0
        play_baseline(planted, name, window=window, counter=counter, watch=probe, reserve=RESERVE)
        rows += probe.rows(name, category)
    return rows


def roomy(record: Record, history: int, counter: TokenCounter) -> Context:
    """Return dials under which a record's fixed parts fit and its conversation has `history` tokens."""
    agent = recorded_agent(record)
    system = counter.messages([system_message(agent, _SOME_DAY)])
    tools = counter.tools([*agent.tools, read_tool_output, recall_history])
    return Context(
        window=max(system + tools + history + RESERVE + 1, 256), max_output_tokens=RESERVE, safety_fraction=1.0
    )


class _Probe:
    """Check every prompt of one conversation."""

    def __init__(self, record: Record, sentences: dict[str, str], pins: Sequence[str] = ()) -> None:
        self._sentence = next(iter(sentences.values()), "")
        listed = {message_id: [sentence] for message_id, sentence in sentences.items()}
        self._rules = {PLANTED: Rules(record, listed), FOUND: Rules(record, _others(record, sentences))}
        if pins:
            self._rules = {PINNED: Rules(record, {}, pins)}

    def __call__(self, reply: AIMessage, messages: list[BaseMessage], tools: Tools) -> None:
        text = shown_text(messages)
        for rules in self._rules.values():
            rules.look(messages, text)

    def rows(self, method: str, category: str) -> list[Kept]:
        """Return what became of the constraints, by kind."""
        return [
            Kept(
                method=method,
                kind=kind,
                category=category if kind != FOUND else "",
                wording=self._sentence if kind != FOUND else "",
                pairs=rules.seen,
                kept=rules.kept,
                constraints=len(rules.due),
                always=len(rules.due - rules.missed.keys()),
            )
            for kind, rules in self._rules.items()
        ]


def _others(record: Record, sentences: dict[str, str]) -> dict[str, list[str]]:
    """Return the constraints of the recording itself."""
    own = set(sentences.values())
    by_message = {
        str(message.id): [one for one in constraints_in(str(message.text)) if one not in own]
        for message in record.messages
        if message.type == "human"
    }
    return {message_id: constraints for message_id, constraints in by_message.items() if constraints}


def _figures(rows: Sequence[Kept]) -> dict[str, float]:
    figures: dict[str, float] = {}
    for kind in (PLANTED, FOUND, PINNED):
        mine = [row for row in rows if row.kind == kind and row.method.startswith("everthread")]
        for method in dict.fromkeys(row.method for row in mine):
            short = method.removeprefix("everthread").strip(", ").replace(" ", "_")
            name = kind if not short or short == kind else f"{kind}.{short}"
            in_prompts, always, _ = _shares([row for row in mine if row.method == method])
            figures |= {f"{name}.in_prompts": in_prompts, f"{name}.always": always}
    known = [row for row in rows if row.kind == PLANTED and row.method == "everthread" and constraints_in(row.wording)]
    figures["planted.known_wordings.always"] = _shares(known)[1]
    for name in BASELINES:
        mine = [row for row in rows if row.kind == PLANTED and row.method == name]
        figures[f"baseline.{name.replace(' ', '_')}.always"] = _shares(mine)[1]
    return figures


def _tables(rows: Sequence[Kept], history: int) -> list[Table]:
    columns = ("constraints", "in their prompts", "in every prompt", "number")
    tables = []
    for kind in (PLANTED, FOUND, PINNED):
        by_method: dict[str, list[Kept]] = defaultdict(list)
        for row in rows:
            if row.kind == kind:
                by_method[row.method].append(row)
        cells = tuple((method, *_shares(mine)) for method, mine in by_method.items() if _shares(mine)[2])
        if cells:
            tables.append(Table(f"{kind}, {history:,} tokens of history", columns, cells))
    ours = [row for row in rows if row.kind == PLANTED and row.method == "everthread"]
    categories = tuple((name, *_shares([row for row in ours if row.category == name])) for name in WORDINGS)
    tables.append(Table("planted, by category", columns, categories))
    wordings = [
        (one, [row for row in ours if row.wording == one]) for category in WORDINGS.values() for one in category
    ]
    cells = tuple((one, *_shares(mine)) for one, mine in wordings if mine)
    tables.append(Table("planted, by wording", columns, cells))
    return tables


def _shares(rows: Sequence[Kept]) -> tuple[float, float, int]:
    pairs, constraints = sum(row.pairs for row in rows), sum(row.constraints for row in rows)
    kept, always = sum(row.kept for row in rows), sum(row.always for row in rows)
    return (kept / pairs if pairs else 0.0, always / constraints if constraints else 0.0, constraints)
