"""How well consolidation tells a changed value from a new one, measured on recorded changes of mind.

`changes.py` makes the notes of users out of annotations, so that only consolidation is measured. A change
is resolved when the old value's note is inactive and the current one's is active at the end; unrelated notes must stay
active, and a value that is said again must not become a second note.

Two baselines: `keep all`, and `newest`, which lets every note replace those that it resembles.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rapidfuzz import fuzz

from everthread.errors import RecordError
from everthread.evals.parallel import spread
from everthread.evals.suites import Options, Report, Table, Tick, share
from everthread.memory.consolidate import plan
from everthread.memory.text.wording import wording
from everthread.state.notes import Note

from .annotations import annotated
from .changes import CHAT, FORMS, Case, cases_of
from .tally import Tally

__all__ = ["run"]

_WANTED = "`gold.updates`, `gold.preferences` or the evidence of an update"

_SIMILAR = 80
"""Likeness in percent above which the baseline `newest` lets the newer note replace the older one."""

Consolidator = Callable[[Sequence[Note], Sequence[Note]], list[Note]]
"""Session notes and long-term notes to the long-term notes after."""


@dataclass
class Outcome(Tally):
    """What became of notes."""

    changes: int = 0
    resolved: int = 0
    unrelated: int = 0
    retired: int = 0
    active: int = 0
    doubled: int = 0
    invented: int = 0

    def row(self) -> tuple[float | int, ...]:
        """Return changes, then the shares: resolved, duplicates, unrelated retired, and the number of inventions."""
        return (
            self.changes,
            _share(self.resolved, self.changes),
            _share(self.doubled, self.active),
            _share(self.retired, self.unrelated),
            self.invented,
        )


_Tallies = dict[tuple[str, str, str], Outcome]
"""By way to consolidate, source or half, and form of the notes."""


def run(paths: Sequence[Path], options: Options, tick: Tick) -> Report:
    """Measure consolidation by rules.

    Raises:
        RecordError: a file cannot be read, or no record has a value that changed.
    """
    picked = annotated(paths, _tells_of_change, _WANTED, chains="none")
    cases = cases_of(picked.records, options.limit)
    if not cases:
        raise RecordError(f"{', '.join(map(str, paths))}: no record has a value that changed")
    tallies: _Tallies = defaultdict(Outcome)
    for case, outcomes in zip(cases, spread(measured, cases, options.jobs, tick), strict=True):
        for way, outcome in outcomes.items():
            for key in _keys(case):
                tallies[(way, *key)].add(outcome)
    return Report(
        suite="consolidation",
        figures=_figures(tallies),
        tables=tuple(_tables(tallies)),
        remarks=(*picked.remarks, *_REMARKS),
        settings={"cases": len(cases), "forms": list(FORMS)},
    )


def _tells_of_change(value: dict[str, Any], gold: dict[str, Any]) -> bool:
    return value.get("kind") == CHAT or bool(gold.get("updates") or gold.get("preferences"))


def _keys(case: Case) -> Iterator[tuple[str, str]]:
    """Yield where a case counts: whose notes, and written in which way."""
    yield case.source, case.form
    yield case.half, case.form
    yield case.source, "by " + case.arrangement
    if case.form in FORMS:
        yield from ((name, "forms") for name in ("all", case.source, case.half))


_REMARKS = (
    "Values that the guard refuses at capture, such as street addresses, never become notes and are left out.",
    "resolved: the old value's note is inactive and the current one's is active.",
    "quoted: the user's own messages as notes; most name a value but not what it is a value of, so both are kept.",
    "memory_updates: messages of a chat as notes; there, a retired note that states no value at all counts as retired.",
)


def _figures(tallies: _Tallies) -> dict[str, float]:
    figures: dict[str, float] = {}
    for (way, source, form), tally in sorted(tallies.items()):
        if way != "rules" or form.startswith("by "):
            continue
        name = source if form == "forms" else f"{source}.{form}"
        if tally.changes:
            figures[f"{name}.resolved"] = _share(tally.resolved, tally.changes)
            figures[f"{name}.changes"] = tally.changes
        if tally.unrelated:
            figures[f"{name}.unrelated_retired"] = _share(tally.retired, tally.unrelated)
        figures[f"{name}.duplicates"] = _share(tally.doubled, tally.active)
        figures[f"{name}.inventions"] = tally.invented
    return figures


def _tables(tallies: _Tallies) -> Iterator[Table]:
    columns = ("changes", "resolved", "duplicates", "unrelated retired", "inventions")
    for source in ("all", *sorted({key[1] for key in tallies} - {"all"})):
        rows = [
            (way, form, *tally.row())
            for (way, at, form), tally in sorted(tallies.items(), key=lambda item: (item[0][2], item[0][0]))
            if at == source
        ]
        if rows:
            yield Table(f"Changes, {source}", ("consolidation", "notes", *columns), tuple(rows))


def measured(case: Case) -> dict[str, Outcome]:
    """Return what becomes of a case in every way to consolidate."""
    return {way: _measured(case, consolidate) for way, consolidate in _WAYS.items()}


def _measured(case: Case, consolidate: Consolidator) -> Outcome:
    """Consolidate the sessions of a case one by one and compare what is active with what should be."""
    notes: list[Note] = []
    for session in case.sessions:
        notes = consolidate(session, notes)
    active = [note for note in notes if note.status == "active"]
    texts = {note.text for note in active}
    inputs = [note.text for session in case.sessions for note in session]
    words = frozenset(word for text in inputs for word in wording(text).words)
    meanings = [case.same[note.text] for note in active if note.text in case.same]
    stale = [change for change in case.changes if _means(case, change.stale, texts)]
    gone = [change for change in case.changes if not _means(case, change.current, texts)]
    return Outcome(
        changes=len(case.changes),
        resolved=sum(change not in stale and change not in gone for change in case.changes),
        unrelated=len(case.unrelated),
        retired=sum(not _means(case, note, texts) for note in case.unrelated),
        active=len(active),
        doubled=len(meanings) - len(set(meanings)),
        invented=sum(not wording(note.text).words <= words for note in active),
    )


def _means(case: Case, note: Note, texts: set[str]) -> bool:
    """Tell whether one of the texts says what a note says."""
    meaning = case.same.get(note.text, note.text)
    return any(case.same.get(text, text) == meaning for text in texts)


def _by_rules(session: Sequence[Note], long_term: Sequence[Note]) -> list[Note]:
    return list(plan(session, long_term).after().values())


def _keep_all(session: Sequence[Note], long_term: Sequence[Note]) -> list[Note]:
    return [*long_term, *session]


def _newest_by_similarity(session: Sequence[Note], long_term: Sequence[Note]) -> list[Note]:
    """Let every note replace those that it resembles: what a threshold on similarity alone does."""
    notes = list(long_term)
    for new in session:
        alike = [old for old in notes if fuzz.token_set_ratio(old.text, new.text) >= _SIMILAR]
        if any(old.date > new.date for old in alike):
            continue
        notes = [*(old for old in notes if old not in alike), new]
    return notes


_WAYS: dict[str, Consolidator] = {"rules": _by_rules, "keep all": _keep_all, "newest": _newest_by_similarity}


def _share(part: int, whole: int) -> float:
    return round(share(part, whole), 4)
