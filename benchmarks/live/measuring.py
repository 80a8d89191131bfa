"""The guard and the distiller by rules, and by rules and a model, on cases of our own."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from langchain_core.messages import HumanMessage

from benchmarks.notes.generator import LabelledNote
from everthread.memory.capture import kind_of
from everthread.memory.distill import Candidate, candidates
from everthread.memory.distill.proposals import together
from everthread.memory.guard import check
from everthread.models.calls import make_calls
from everthread.nodes.deps import NodeDeps
from everthread.nodes.distiller import read_with_model
from everthread.nodes.second_opinion import second_opinion
from everthread.state import Context, Note, Source

__all__ = ["Distilled", "Guarded", "Message", "distilled", "guarded", "messages"]

Tick = Callable[[], None]
"""Called after each request."""

CONTEXT = Context(guard="model", distiller="model", opinion_seconds=60)


@dataclass(frozen=True)
class Guarded:
    """What became of a note."""

    case: LabelledNote
    by_rules: bool
    """The rules refuse it."""
    by_model: bool
    """The rules or the model refuse it."""
    is_unjudged: bool
    """The model gave no answer."""


@dataclass(frozen=True)
class Message:
    """A message of a user, and what lasts of what it says."""

    language: str
    text: str
    says: tuple[str, ...]
    """Words of it, one part for each fact; empty when nothing lasts."""


@dataclass(frozen=True)
class Distilled:
    """What was made of a message: facts that were found, notes, and how many of them are right."""

    message: Message
    found: int
    notes: int
    right: int


def guarded(cases: Sequence[LabelledNote], deps: NodeDeps, *, batch: int, tick: Tick) -> list[Guarded]:
    """Judge notes by the rules, and what they allow by the model too, so many in a request.

    Good notes and bad ones are to come mixed: one that is bad must not give its neighbours away.
    """
    allowed = [(number, case) for number, case in enumerate(cases) if check(case.text).allowed]
    outcomes = [Guarded(case, by_rules=True, by_model=True, is_unjudged=False) for case in cases]
    for start in range(0, len(allowed), batch):
        part = allowed[start : start + batch]
        verdicts = make_calls(second_opinion([_note(*one) for one in part], CONTEXT, deps), {})
        for (number, case), verdict in zip(part, verdicts, strict=True):
            unjudged = verdict.category == "unreadable"
            outcomes[number] = Guarded(case, by_rules=False, by_model=not verdict.allowed, is_unjudged=unjudged)
        tick()
    return outcomes


def _note(number: int, case: LabelledNote) -> Note:
    source = Source(thread_id="live", message_ids=(f"m{number}",))
    return Note(id=f"n-{number}", text=case.text, kind=kind_of(case.text), date="2026-01-01", sources=(source,))


def messages() -> Iterator[Message]:
    """Yield the messages of `messages.yaml`."""
    document: Any = yaml.safe_load(Path(__file__).with_name("messages.yaml").read_text(encoding="utf-8"))
    for language, rows in document.items():
        for row in rows:
            yield Message(language, row["text"], tuple(row.get("says", ())))


def distilled(cases: Sequence[Message], deps: NodeDeps | None, tick: Tick) -> list[Distilled]:
    """Distil messages one by one, by the rules, or by rules and model where there is a model."""
    return [_distilled(number, case, deps, tick) for number, case in enumerate(cases)]


def _distilled(number: int, case: Message, deps: NodeDeps | None, tick: Tick) -> Distilled:
    notes: Sequence[Candidate] = candidates(case.text)
    if deps is not None:
        message = HumanMessage(case.text, id=f"m{number}")
        read = make_calls(read_with_model(deps.summarizer, [message], seconds=CONTEXT.opinion_seconds), {})
        notes = together(read.found.get(f"m{number}", ()), notes)
        tick()
    lasting = [note for note in notes if note.scope == "durable"]
    met = [{fact for fact in case.says if fact in f"{note.quote} {note.text}"} for note in lasting]
    return Distilled(case, len(set[str]().union(*met)), len(lasting), sum(map(bool, met)))
