"""How well consolidation tells a changed value from a new one, measured on recorded changes of mind.

The input notes are made here, from the annotations and not by the distiller, so that only consolidation is measured:

- Each value that a user changed (`gold.updates` of SGD and MultiWOZ) gives the note of the old value and that of the
  new one, each quoting the message that states it. A note's text is one of `FORMS`, the ways in which a model writes
  such a note, such as `Hotel area: north.`, `The hotel area is north.` and `Prefers north for the hotel area.` Two more
  are reported by themselves: `loose`, which does not tell subject from value, and `quoted`, the user's own message,
  because most such messages name no subject at all.
- Every other value of the same conversation gives an unrelated note of the same user, which must stay active.
- Said again: the old value a third time, dated before the change, which must not come back; and every unrelated value
  in the other spelling that the annotation has, else in other case and wording, which must not become a second note.
- Two arrangements: the new value in a later session (`later`), and both in one session (`within`).

`memory_updates` records give the evidence messages themselves, cut as a captured note is, in the order of the chat. The
evidence of the same chat's other questions are the unrelated notes.

The preferences that people state for good (PrefEval) are put together as the notes of one user; all of them must stay.

A change is resolved when the old value's note is inactive and the current one's is active at the end.
"""

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from rapidfuzz import fuzz

from everthread.errors import RecordError
from everthread.evals.records import lines
from everthread.evals.suites import Options, Report, Table, Tick
from everthread.memory.capture import kind_of, normalised
from everthread.memory.consolidation import plan
from everthread.memory.consolidation.wording import wording
from everthread.memory.guard import check
from everthread.state.notes import Note, Source, note_id

__all__ = ["FORMS", "run"]

FORMS: dict[str, str] = {
    "keyed": "{subject}: {value}.",
    "stated": "The {subject} is {value}.",
    "wished": "Prefers {value} for the {subject}.",
    "chosen": "{value} is the user's choice for the {subject}.",
    "changed": "Set the {subject} to {value}.",
}
"""Ways to write down a value of a subject."""

LOOSE = "loose"
QUOTED = "quoted"

_BY_THEMSELVES = {LOOSE: "Wants {subject} {value}.", QUOTED: "{quote}"}
"""Ways that do not say where the subject ends, or that there is one; measured beside the forms, not among them."""

_ARRANGEMENTS = ("later", "within")
_DAYS = ("2026-03-01", "2026-03-08", "2026-03-15")
_UNCHANGED = ("instruction_following", "preference_following", "temporal_reasoning")
"""Questions of a chat whose evidence tells of nothing that changed or is contradicted elsewhere in it."""

_SIMILAR = 80
"""Likeness in percent above which the baseline `newest` lets the newer note replace the older one."""

Consolidator = Callable[[Sequence[Note], Sequence[Note]], list[Note]]
"""Session notes and long-term notes to the long-term notes after."""


@dataclass(frozen=True)
class Change:
    """A value that the user changed, and what must hold at the end."""

    stale: Note
    current: Note
    """The note of the last value; a value that changed twice has two changes with one end."""


@dataclass(frozen=True)
class Case:
    """The sessions of one user, and what to look for afterwards."""

    name: str
    source: str
    form: str
    arrangement: str
    sessions: list[list[Note]]
    changes: list[Change]
    unrelated: list[Note]
    same: dict[str, str] = field(default_factory=dict)
    """Text to what it means: two active notes of one meaning are duplicates."""

    @property
    def half(self) -> str:
        """Return the half of the data that it belongs to; rules were written on `seen` alone."""
        return "seen" if hashlib.sha256(self.name.split(" ")[0].encode()).digest()[0] % 2 else "unseen"


@dataclass
class Tally:
    """Counts over cases."""

    changes: int = 0
    resolved: int = 0
    stale_active: int = 0
    current_gone: int = 0
    unrelated: int = 0
    retired: int = 0
    active: int = 0
    doubled: int = 0
    invented: int = 0
    marked: int = 0

    def add(self, other: "Tally") -> None:
        """Add the counts of another tally."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)

    def row(self) -> tuple[float | int, ...]:
        """Return changes, then the shares: resolved, duplicates, unrelated retired, and the number of inventions."""
        return (
            self.changes,
            _share(self.resolved, self.changes),
            _share(self.doubled, self.active),
            _share(self.retired, self.unrelated),
            self.invented,
        )


def run(paths: Sequence[Path], options: Options, tick: Tick) -> Report:
    """Measure consolidation by rules on files of `preference_dialogues` or `memory_updates` records.

    Raises:
        RecordError: a file cannot be read, or no record has a value that changed.
    """
    records = [record for path in paths for record in _records(path)][: options.limit]
    cases = [*_dialogue_cases(records), *_chat_cases(records)]
    if cases:
        cases += _preference_cases(records)
    else:
        raise RecordError(
            f"{', '.join(map(str, paths))}: no record has `gold.updates` or evidence of a knowledge update"
        )
    ways: dict[str, Consolidator] = {"rules": _by_rules, "keep all": _keep_all, "newest": _newest_by_similarity}
    tallies: dict[tuple[str, ...], Tally] = defaultdict(Tally)
    for done, case in enumerate(cases, start=1):
        for way, consolidate in ways.items():
            found = _measured(case, consolidate)
            for key in (
                (way, case.source, case.form),
                (way, case.half, case.form),
                (way, case.source, "by " + case.arrangement),
            ):
                tallies[key].add(found)
            if case.form in FORMS:
                tallies[way, "all", "forms"].add(found)
                tallies[way, case.source, "forms"].add(found)
                tallies[way, case.half, "forms"].add(found)
        tick(done, len(cases), case.name)
    return Report("consolidation", _figures(tallies), tuple(_tables(tallies)), _REMARKS, {"forms": list(FORMS)})


_REMARKS = (
    "Values that the guard refuses at capture, such as street addresses, never become notes and are left out.",
    "resolved: the old value's note is inactive and the current one's is active.",
    "quoted: the user's own messages as notes; most name a value but not what it is a value of, so both are kept.",
    "memory_updates: messages of a chat as notes; there, a retired note that states no value at all counts as retired.",
)


def _figures(tallies: dict[tuple[str, ...], Tally]) -> dict[str, float]:
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


def _tables(tallies: dict[tuple[str, ...], Tally]) -> Iterator[Table]:
    columns = ("changes", "resolved", "duplicates", "unrelated retired", "inventions")
    for source in ("all", *sorted({key[1] for key in tallies} - {"all"})):
        rows = [
            (way, form, *tally.row())
            for (way, at, form), tally in sorted(tallies.items(), key=lambda item: (item[0][2], item[0][0]))
            if at == source
        ]
        if rows:
            yield Table(f"Changes, {source}", ("consolidation", "notes", *columns), tuple(rows))


def _measured(case: Case, consolidate: Consolidator) -> Tally:
    """Consolidate the sessions of a case one by one and compare what is active with what should be."""
    notes: list[Note] = []
    for session in case.sessions:
        notes = consolidate(session, notes)
    active = [note for note in notes if note.status == "active"]
    texts = {note.text for note in active}
    given = [note.text for session in case.sessions for note in session]
    words = frozenset(word for text in given for word in wording(text).words)
    meanings = [case.same[note.text] for note in active if note.text in case.same]
    stale = [change for change in case.changes if _means(case, change.stale, texts)]
    gone = [change for change in case.changes if not _means(case, change.current, texts)]
    return Tally(
        changes=len(case.changes),
        resolved=sum(change not in stale and change not in gone for change in case.changes),
        stale_active=len(stale),
        current_gone=len(gone),
        unrelated=len(case.unrelated),
        retired=sum(not _means(case, note, texts) for note in case.unrelated),
        active=len(active),
        doubled=len(meanings) - len(set(meanings)),
        invented=sum(not wording(note.text).words <= words for note in active),
        marked=sum(bool(note.conflicts_with) for note in active),
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


def _dialogue_cases(records: Iterable[dict[str, Any]]) -> Iterator[Case]:
    for record in records:
        updates = (record.get("gold") or {}).get("updates") or []
        if not updates or record.get("kind") == "composite_session":
            continue
        for arrangement in _ARRANGEMENTS:
            for form in (*FORMS, *_BY_THEMSELVES):
                yield _dialogue_case(record, updates, form, arrangement)


def _dialogue_case(record: dict[str, Any], updates: list[dict[str, Any]], form: str, arrangement: str) -> Case:
    said = {message["id"]: str(message.get("content") or "") for message in record["messages"]}
    write = _Writer(str(record["id"]), form, said)
    final = {(update["service"], update["slot"]): update for update in updates}
    changes: list[Change] = []
    first, later, again = _lists()
    for update in updates:
        subject, last = _subject(update), final[update["service"], update["slot"]]
        old = write(subject, update["old"], update["old_evidence"], _DAYS[0])
        new = write(subject, update["new"], update["evidence"], _DAYS[0 if arrangement == "within" else 1])
        current = write(subject, last["new"], last["evidence"], _DAYS[1])
        if old.text == new.text or not _are_allowed(old, new, current):
            continue
        changes += [Change(old, current)] if old.text != current.text else []
        if old.text not in {note.text for note in (*first, *later)}:
            first.append(old)
        (first if arrangement == "within" else later).append(new)
        if arrangement == "later":
            again.append(write(subject, update["old"], update["old_evidence"], _DAYS[0], salt="again"))
    unrelated, other, _ = _lists()
    changed = {_subject(update) for update in updates}
    for slot in (record.get("gold") or {}).get("slots") or []:
        if form == QUOTED or _subject(slot) in changed:
            continue
        note = write(_subject(slot), slot["values"][0], slot["evidence"], _DAYS[0])
        reworded = write.again(_subject(slot), slot["values"], slot["evidence"], _DAYS[2])
        if _are_allowed(note, reworded):
            unrelated.append(note)
            other.append(reworded)
    sessions = [[*unrelated, *first], later, [*other, *again]]
    return Case(
        f"{record['id']} {form} {arrangement}",
        str(record["id"]).split("/")[0],
        form,
        arrangement,
        [session for session in sessions if session],
        changes,
        unrelated,
        write.meanings,
    )


def _are_allowed(*notes: Note) -> bool:
    """Tell whether the guard lets notes be captured at all; an address never gets as far as consolidation."""
    return all(_is_allowed(note.text) for note in notes)


@lru_cache(maxsize=65_536)
def _is_allowed(text: str) -> bool:
    return check(text).allowed


def _lists() -> tuple[list[Note], list[Note], list[Note]]:
    return [], [], []


class _Writer:
    """Writes the notes of one conversation in one form, and knows which of them mean the same."""

    def __init__(self, name: str, form: str, said: dict[str, str]) -> None:
        self.meanings: dict[str, str] = {}
        self._name = name
        self._pattern = {**FORMS, **_BY_THEMSELVES}[form]
        self._said = said

    def __call__(self, subject: str, value: str, evidence: Sequence[str], day: str, salt: str = "") -> Note:
        quote = " ".join(self._said.get(known, "") for known in evidence[-1:])
        text = self._pattern.format(subject=subject, value=value, quote=quote)
        return self._note(text, f"{subject}={_canonical(value)}", evidence, quote, day, salt)

    def again(self, subject: str, values: Sequence[str], evidence: Sequence[str], day: str) -> Note:
        """Write a value as it might be said again: in its other spelling, or in other wording."""
        quote = " ".join(self._said.get(known, "") for known in evidence[-1:])
        value = values[-1] if len(values) > 1 else values[0].lower()
        text = "User said: " + self._pattern.format(subject=subject.lower(), value=value, quote=quote).rstrip(".")
        return self._note(text, f"{subject}={_canonical(values[0])}", evidence, quote, day, "again")

    def _note(self, text: str, meaning: str, evidence: Sequence[str], quote: str, day: str, salt: str) -> Note:
        text = normalised(text)
        self.meanings[text] = meaning
        source = Source(thread_id=self._name, message_ids=(*evidence, day), quote=quote)
        return Note(
            id=note_id(self._name, text, day, salt, *evidence),
            text=text,
            date=day,
            kind=kind_of(text),
            sources=(source,),
        )


def _chat_cases(records: Iterable[dict[str, Any]]) -> Iterator[Case]:
    """Make a case of every changed fact of a chat, with the evidence of the chat's other questions beside it."""
    mine = [record for record in records if record.get("kind") == "memory_update"]
    for record in mine:
        gold = record["gold"]
        if (record.get("meta") or {}).get("type") != "knowledge_update" or not gold.get("stale"):
            continue
        chat = str(record["id"]).rsplit("/", 1)[0]
        said = {message["id"]: str(message.get("content") or "") for message in record["messages"]}
        elsewhere = {
            message["id"]: str(message.get("content") or "")
            for other in mine
            if str(other["id"]).startswith(chat + "/") and other["meta"].get("type") in _UNCHANGED
            for message in other["messages"]
            if message["role"] == "user" and message["id"] not in said
        }
        notes = {known: _chat_note(chat, known, text) for known, text in {**said, **elsewhere}.items()}
        stale, current = notes[gold["stale"][0]], notes[gold["current"][0]]
        order = sorted(notes, key=lambda known: int(re.sub(r"\D", "", known) or 0))
        order = [known for known in order if _are_allowed(notes[known])]
        if not _are_allowed(stale, current):
            continue
        unrelated = [notes[known] for known in order if known in elsewhere]
        sessions = [[notes[known]] for known in order]
        yield Case(
            str(record["id"]), "memory_updates", "messages", "later", sessions, [Change(stale, current)], unrelated
        )


def _preference_cases(records: Iterable[dict[str, Any]]) -> Iterator[Case]:
    """Make one case of the preferences that people state for good, as if they were all one user's."""
    mine = [record for record in records if record.get("kind") != "composite_session"]
    told = [one["text"] for record in mine for one in (record.get("gold") or {}).get("preferences") or []]
    notes = [_chat_note("preferences", f"p{number}", text) for number, text in enumerate(dict.fromkeys(told))]
    notes = [note for note in notes if _are_allowed(note)]
    if notes:
        yield Case("preferences", "prefeval", "preferences", "later", [[note] for note in notes], [], notes)


def _chat_note(chat: str, message_id: str, text: str) -> Note:
    text = normalised(text)
    # A chat has no dates here; its messages are counted, a day for each.
    number = int(re.sub(r"\D", "", message_id) or 0)
    day = f"{2026 + number // 336:04d}-{number // 28 % 12 + 1:02d}-{number % 28 + 1:02d}"
    source = Source(thread_id=chat, message_ids=(message_id,), quote=text)
    return Note(id=note_id(chat, message_id), text=text, date=day, kind=kind_of(text), sources=(source,))


def _subject(slot: dict[str, Any]) -> str:
    """Write a service and a slot as words: `Buses_1` and `from_location` become `Buses from location`."""
    service = re.sub(r"_\d+$", "", str(slot["service"]))
    words = re.sub(r"(?<=[a-z])(?=[A-Z])|_", " ", f"{service} {slot['slot']}")
    return " ".join(words.split())


def _canonical(value: str) -> str:
    return " ".join(value.lower().split())


def _share(part: int, whole: int) -> float:
    return round(part / whole, 4) if whole else 0.0


def _records(path: Path) -> Iterator[dict[str, Any]]:
    files = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
    for file in files:
        for where, line in lines(file):
            try:
                value = json.loads(line)
            except ValueError as error:
                raise RecordError(f"{where}: not JSON: {error}") from error
            if not isinstance(value, dict) or "id" not in value or "messages" not in value:
                raise RecordError(f"{where}: a record has at least `id` and `messages`")
            yield value
