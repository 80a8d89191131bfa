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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from everthread.errors import RecordError
from everthread.evals.distillation import raw_records
from everthread.evals.suites import Options, Report, Table, Tick
from everthread.memory.capture import capture
from everthread.memory.consolidation import plan
from everthread.memory.distillation import candidates, content_words, keywords
from everthread.memory.rendering import render_notes
from everthread.memory.selection import holding, within
from everthread.state import Context
from everthread.state.notes import Note, Source
from everthread.window.tokens import TokenCounter, counter_for

__all__ = ["run"]

BUDGET = 4096
_PROBE = "preference_following"
_FEW = "lexical, as many tokens as the notes"
_UNDATED = "2026-01-01"
_K1, _B = 1.5, 0.75
"""BM25's usual constants (Robertson and Zaragoza 2009)."""


@dataclass
class _Tally:
    probes: int = 0
    met: int = 0
    most_tokens: int = 0
    over: int = 0


def run(paths: Sequence[Path], options: Options, tick: Tick) -> Report:
    """Measure injected notes beside baselines that see the raw conversation.

    Raises:
        RecordError: a file cannot be read, or no record has probes.
    """
    budget, counter = options.budget or BUDGET, counter_for(None)
    records = [record for path in paths for record in raw_records(path)][: options.limit]
    records = [one for one in records if _probes(one)]
    if not records:
        raise RecordError(f"{', '.join(map(str, paths))}: no record has a question of the category {_PROBE!r}")
    dial = min(Context().notes_tokens, budget)
    limits = {"notes": dial, "notes, a quarter": budget // 4}
    tallies = {name: _Tally() for name in (*limits, "recent", "lexical", "both", _FEW)}
    sizes = {_FEW: dial}
    by_record: list[tuple[str, int, float, float]] = []
    for done, record in enumerate(records, start=1):
        notes, today = _lived(record)
        before = tallies["notes"].met
        for name, limit in limits.items():
            _notes(record, holding(notes, today), limit, counter, tallies[name])
        probes = _probes(record)
        for name, show in _baselines(record["messages"], counter).items():
            for probe in probes:
                shown = show(probe["question"], sizes.get(name, budget))
                tallies[name].probes += 1
                tallies[name].met += any(evidence in shown for evidence in probe["evidence"])
        by_record.append((record["id"], len(notes), (tallies["notes"].met - before) / len(probes), len(probes)))
        tick(done, len(records), str(record["id"]))
    return Report(
        suite="injection",
        figures={
            "preference_in_prompt": _share(tallies["notes"].met, tallies["notes"].probes),
            "preference_in_prompt.quarter": _share(tallies["notes, a quarter"].met, tallies["notes, a quarter"].probes),
            "lexical": _share(tallies["lexical"].met, tallies["lexical"].probes),
            "lexical.as_many_tokens": _share(tallies[_FEW].met, tallies[_FEW].probes),
            "recent": _share(tallies["recent"].met, tallies["recent"].probes),
            "block_tokens": tallies["notes"].most_tokens,
            "blocks_over_budget": sum(tallies[name].over for name in limits),
        },
        tables=(
            Table(
                f"the preference is in a prompt of {budget:,} tokens",
                ("what is shown", "probes", "in the prompt", "most tokens"),
                tuple(
                    (name, tally.probes, _share(tally.met, tally.probes), tally.most_tokens or sizes.get(name, budget))
                    for name, tally in tallies.items()
                ),
            ),
            Table("notes, by record", ("record", "notes", "in the prompt", "probes"), tuple(by_record)),
        ),
        remarks=("The probes name no preference, so what searches for their words finds others.",),
        settings={"budget": budget, "notes_tokens": dial, "quarter": budget // 4, "distillation": "turn (rules)"},
    )


def _probes(record: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the questions that need a preference and say which one it is."""
    asked = record.get("gold", {}).get("questions", ())
    return [one for one in asked if one.get("category") == _PROBE and one.get("preference")]


def _lived(record: dict[str, Any]) -> tuple[list[Note], str]:
    """Return the long-term notes after every session of a record, and the day of the last one."""
    long_term: list[Note] = []
    today = _UNDATED
    for session in record["sessions"]:
        today = str(session["date"] or today)[:10]
        told = list(_session_notes(record, record["messages"][session["start"] : session["end"]], today))
        long_term = list(plan(told, long_term, today).after().values())
    return long_term, today


def _session_notes(record: dict[str, Any], messages: Sequence[dict[str, Any]], day: str) -> Iterator[Note]:
    question = ""
    for message in messages:
        for found in candidates(message["content"] or "", question=question) if message["role"] == "user" else ():
            note, _, _ = capture(
                found.text,
                keywords(found.quote),
                scope=found.scope,
                source=Source(thread_id=record["id"], message_ids=(message["id"],), quote=found.quote),
                date=day,
                salt=message["id"],
                kind=found.kind,
                subject=found.subject,
                confidence=found.confidence,
            )
            if note is not None:
                yield note
        question = (message["content"] or "") if message["role"] == "assistant" else ""


def _notes(record: dict[str, Any], notes: Sequence[Note], limit: int, counter: TokenCounter, tally: _Tally) -> None:
    """Count the probes whose preference the block has, and what the block weighs."""
    for probe in _probes(record):
        chosen = within(notes, limit, counter.text)
        block = render_notes("Long-term notes", chosen)
        tokens = counter.text(block)
        words = content_words(probe["preference"])
        tally.probes += 1
        tally.met += any(
            content_words(note.text) & words
            and any(evidence in source.message_ids for source in note.sources for evidence in probe["evidence"])
            for note in chosen
        )
        tally.most_tokens = max(tally.most_tokens, tokens)
        tally.over += tokens > limit


def _baselines(
    messages: Sequence[dict[str, Any]], counter: TokenCounter
) -> dict[str, Callable[[str, int], frozenset[str]]]:
    told = [(str(one["id"]), str(one["content"] or "")) for one in messages if one["content"]]
    sizes = {message_id: counter.text(text) + 4 for message_id, text in told}
    terms = {message_id: Counter(re.findall(r"\w+", text.lower())) for message_id, text in told}
    known: Counter[str] = Counter(term for found in terms.values() for term in found)
    average = sum(found.total() for found in terms.values()) / max(len(terms), 1)

    def recent(question: str, budget: int) -> frozenset[str]:
        return _filled([message_id for message_id, _ in reversed(told)], budget)

    def lexical(question: str, budget: int) -> frozenset[str]:
        asked = set(re.findall(r"\w+", question.lower()))
        ranked = sorted(terms, key=lambda message_id: -score(terms[message_id], asked))
        return _filled(ranked, budget)

    def both(question: str, budget: int) -> frozenset[str]:
        return recent(question, budget // 2) | lexical(question, budget // 2)

    def score(found: Counter[str], asked: set[str]) -> float:
        norm = _K1 * (1 - _B + _B * found.total() / average)
        return sum(
            math.log(1 + (len(terms) - known[term] + 0.5) / (known[term] + 0.5))
            * found[term]
            * (_K1 + 1)
            / (found[term] + norm)
            for term in asked & found.keys()
        )

    def _filled(ranked: Sequence[str], budget: int) -> frozenset[str]:
        shown = set()
        for message_id in ranked:
            if sizes[message_id] <= budget:
                budget -= sizes[message_id]
                shown.add(message_id)
        return frozenset(shown)

    return {"recent": recent, "lexical": lexical, "both": both, _FEW: lexical}


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
