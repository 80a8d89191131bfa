"""Is the preference that a question needs in the prompt, although the question does not name it?

Each record with `preference_following` probes is lived through session by session, as a thread of one user: the rules
distil every user message (`turn`), the guard checks every note, and the rules consolidate at the end of each session.
After the last session each probe is the current question, and the prompt's memory block is rendered as it would be.

A preference is `in the prompt` when a rendered note has an evidence message of the probe among its sources **and**
shares a word that carries meaning with the preference as annotated. For the baselines, which show passages instead of
notes, it is enough that an evidence message is there whole.

The budget is for everything beside instructions: notes take at most `notes_tokens` of it, by default what the dial
`Context.notes_tokens` says and in a second row a quarter of the budget; what is left is for recent turns, which do not
count here. Baselines fill the *whole* budget: `recent` with the newest messages, `lexical` with the passages that BM25
ranks first for the question, `both` with half of each; a last row gives BM25 only as many tokens as the notes have.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from everthread.evals.suites import Options, Report, Table, Tick, share
from everthread.memory.capture import capture
from everthread.memory.consolidate import plan
from everthread.memory.distill import candidates, keywords
from everthread.memory.rendering import render_notes
from everthread.memory.selection import holding, within
from everthread.memory.text.own_words import is_typed
from everthread.memory.text.wording import wording
from everthread.state import Context
from everthread.state.notes import Note, Source
from everthread.window.tokens import TokenCounter, counter_for

from .annotations import AnnotatedRecord, Message, Question, Session, annotated
from .tally import Tally

__all__ = ["run"]

BUDGET = 4096
_PROBE = "preference_following"
_NOTES, _QUARTER = "notes", "notes, a quarter"
_FEW = "lexical, as many tokens as the notes"
_UNDATED = "2026-01-01"
_K1, _B = 1.5, 0.75
"""BM25's usual constants (Robertson and Zaragoza 2009)."""


@dataclass
class _Shown(Tally):
    """How often the preference of a probe was shown, and what that took."""

    probes: int = 0
    met: int = 0
    most_tokens: int = 0
    over: int = 0

    @property
    def in_prompt(self) -> float:
        return share(self.met, self.probes)


def run(paths: Sequence[Path], options: Options, tick: Tick) -> Report:
    """Measure injected notes beside baselines that see the raw conversation.

    Raises:
        RecordError: a file cannot be read, or no record has probes.
    """
    budget, counter = options.budget or BUDGET, counter_for(None)
    picked = annotated(
        paths,
        lambda value, gold: any(map(_is_probe, gold.get("questions") or ())),
        f"a question of the category {_PROBE!r} with its `preference`",
        limit=options.limit,
    )
    dial = min(Context().notes_tokens, budget)
    limits = {_NOTES: dial, _QUARTER: budget // 4}
    sizes = {_FEW: dial}
    tallies = {name: _Shown() for name in (*limits, "recent", "lexical", "both", _FEW)}
    by_record: list[tuple[str, int, float, int]] = []
    for done, record in enumerate(picked.records, start=1):
        notes, today = _lived(record)
        probes = [one for one in record.gold.questions if one.category == _PROBE and one.preference]
        before = tallies[_NOTES].met
        for name, limit in limits.items():
            _notes(probes, holding(notes, today), limit, counter, tallies[name])
        for name, show in _baselines(record.messages, counter).items():
            for probe in probes:
                shown = show(probe.question, sizes.get(name, budget))
                tallies[name].probes += 1
                tallies[name].met += any(evidence in shown for evidence in probe.evidence)
        by_record.append((record.id, len(notes), (tallies[_NOTES].met - before) / len(probes), len(probes)))
        tick(done, len(picked.records), record.id)
    rows = [
        (name, one.probes, one.in_prompt, one.most_tokens or sizes.get(name, budget)) for name, one in tallies.items()
    ]
    heads = ("what is shown", "probes", "in the prompt", "most tokens")
    return Report(
        suite="injection",
        figures=_figures(tallies, limits),
        tables=(
            Table(f"the preference is in a prompt of {budget:,} tokens", heads, tuple(rows)),
            Table("notes, by record", ("record", "notes", "in the prompt", "probes"), tuple(by_record)),
        ),
        remarks=(*picked.remarks, "The probes name no preference, so what searches for their words finds others."),
        settings={"budget": budget, "notes_tokens": dial, "quarter": budget // 4, "distillation": "turn (rules)"},
    )


def _figures(tallies: Mapping[str, _Shown], limits: Iterable[str]) -> dict[str, float]:
    return {
        "preference_in_prompt": tallies[_NOTES].in_prompt,
        "preference_in_prompt.quarter": tallies[_QUARTER].in_prompt,
        "lexical": tallies["lexical"].in_prompt,
        "lexical.as_many_tokens": tallies[_FEW].in_prompt,
        "recent": tallies["recent"].in_prompt,
        "block_tokens": tallies[_NOTES].most_tokens,
        "blocks_over_budget": sum(tallies[name].over for name in limits),
    }


def _is_probe(question: object) -> bool:
    """Tell whether a recorded question needs a preference and says which one it is."""
    return isinstance(question, dict) and question.get("category") == _PROBE and bool(question.get("preference"))


def _lived(record: AnnotatedRecord) -> tuple[list[Note], str]:
    """Return the long-term notes after every session of a record, and the day of the last one."""
    long_term: list[Note] = []
    today = _UNDATED
    for session in record.sessions or [Session(start=0, end=len(record.messages))]:
        today = (session.date or today)[:10]
        session_notes = list(_session_notes(record.id, record.messages[session.start : session.end], today))
        long_term = list(plan(session_notes, long_term, today).after().values())
    return long_term, today


def _session_notes(thread_id: str, messages: Sequence[Message], day: str) -> Iterator[Note]:
    question = ""
    for message in messages:
        for candidate in candidates(message.text, question=question) if message.role == "user" else ():
            note, _, _ = capture(
                candidate.text,
                keywords(candidate.quote),
                scope=candidate.scope,
                source=Source(thread_id=thread_id, message_ids=(message.id,), quote=candidate.quote),
                date=day,
                salt=message.id,
                kind=candidate.kind,
                subject=candidate.subject,
                confidence=candidate.confidence,
                origin="user",
                is_own=is_typed(message.text),
            )
            if note is not None:
                yield note
        question = message.text if message.role == "assistant" else ""


def _notes(probes: Sequence[Question], notes: Sequence[Note], limit: int, counter: TokenCounter, tally: _Shown) -> None:
    """Count the probes whose preference the block has, and what the block weighs."""
    chosen = within(notes, limit, counter.text)
    tokens = counter.text(render_notes("Long-term notes", chosen))
    for probe in probes:
        words = wording(probe.preference).words
        tally.probes += 1
        tally.met += any(
            wording(note.text).words & words
            and any(evidence in source.message_ids for source in note.sources for evidence in probe.evidence)
            for note in chosen
        )
        tally.most_tokens = max(tally.most_tokens, tokens)
        tally.over += tokens > limit


def _baselines(messages: Sequence[Message], counter: TokenCounter) -> dict[str, Callable[[str, int], frozenset[str]]]:
    texts = [(message.id, message.text) for message in messages if message.text]
    sizes = {message_id: counter.text(text) + 4 for message_id, text in texts}
    terms = {message_id: Counter(re.findall(r"\w+", text.lower())) for message_id, text in texts}
    frequency: Counter[str] = Counter(term for counts in terms.values() for term in counts)
    average = sum(counts.total() for counts in terms.values()) / max(len(terms), 1)

    def recent(question: str, budget: int) -> frozenset[str]:
        return _filled([message_id for message_id, _ in reversed(texts)], budget)

    def lexical(question: str, budget: int) -> frozenset[str]:
        query = set(re.findall(r"\w+", question.lower()))
        ranked = sorted(terms, key=lambda message_id: -score(terms[message_id], query))
        return _filled(ranked, budget)

    def both(question: str, budget: int) -> frozenset[str]:
        return recent(question, budget // 2) | lexical(question, budget // 2)

    def score(counts: Counter[str], query: set[str]) -> float:
        norm = _K1 * (1 - _B + _B * counts.total() / average)
        return sum(
            math.log(1 + (len(terms) - frequency[term] + 0.5) / (frequency[term] + 0.5))
            * counts[term]
            * (_K1 + 1)
            / (counts[term] + norm)
            for term in query & counts.keys()
        )

    def _filled(ranked: Sequence[str], budget: int) -> frozenset[str]:
        shown = set()
        for message_id in ranked:
            if sizes[message_id] <= budget:
                budget -= sizes[message_id]
                shown.add(message_id)
        return frozenset(shown)

    return {"recent": recent, "lexical": lexical, "both": both, _FEW: lexical}
