"""Recorded changes of mind as the notes of users, with what must hold after they were consolidated.

The notes are made here, from the annotations and not by the distiller:

- Each value that a user changed (`gold.updates` of SGD and MultiWOZ) gives the note of the old value and that of the
  new one, each quoting the message that states it. A note's text is one of `FORMS`, the ways in which a model writes
  such a note, such as `Hotel area: north.`, `The hotel area is north.` and `Prefers north for the hotel area.` Two more
  stand by themselves: `loose`, which does not tell subject from value, and `quoted`, the user's own message, because
  most such messages name no subject at all.
- Every other value of the same conversation gives an unrelated note of the same user, which must stay active.
- Said again: the old value a third time, dated before the change, which must not come back; and every unrelated value
  in the other spelling that the annotation has, else in other case and wording, which must not become a second note.
- Two arrangements: the new value in a later session (`later`), and both in one session (`within`).

`memory_updates` records give the evidence messages themselves, cut as a captured note is, in the order of the chat. The
evidence of the same chat's other questions are the unrelated notes.

The preferences that people state for good (PrefEval) are put together as the notes of one user; all of them must stay.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from everthread.errors import RecordError
from everthread.memory.capture import kind_of, normalised
from everthread.memory.guard import check
from everthread.state.notes import Note, Source, note_id

from .annotations import AnnotatedRecord, Slot, Update

__all__ = ["CHAT", "FORMS", "Case", "Change", "cases_of"]

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

CHAT = "memory_update"
"""Kind of a record that has the evidence of one question about a long chat."""

_ARRANGEMENTS = ("later", "within")
_DAYS = ("2026-03-01", "2026-03-08", "2026-03-15")
_UNCHANGED = ("instruction_following", "preference_following", "temporal_reasoning")
"""Questions of a chat whose evidence tells of nothing that changed or is contradicted elsewhere in it."""


@dataclass(frozen=True)
class Change:
    """A value that the user changed, and what must hold at the end."""

    stale: Note
    current: Note
    """The note of the last value; a value that changed twice has two changes with one end."""


@dataclass(frozen=True)
class Case:
    """The sessions of one user, and what to look for afterwards."""

    id: str
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
        return "seen" if hashlib.sha256(self.id.split(" ")[0].encode()).digest()[0] % 2 else "unseen"


def cases_of(records: Sequence[AnnotatedRecord], limit: int | None = None) -> list[Case]:
    """Return the cases of records, none when no value of theirs changed.

    Args:
        records: conversations, and evidence of updates with that of the same chat's other questions.
        limit: only the first so many records that tell of a change, and as many with preferences.
    """
    changed = [record for record in records if record.gold.updates or _is_update(record)][:limit]
    chats = [record for record in records if record.kind == CHAT]
    cases = [*_dialogue_cases(changed), *_chat_cases([record for record in changed if record.kind == CHAT], chats)]
    return [*cases, *_preference_cases([one for one in records if one.gold.preferences][:limit])] if cases else []


def _is_update(record: AnnotatedRecord) -> bool:
    is_update = record.kind == CHAT and record.meta.type == "knowledge_update"
    return is_update and bool(record.gold.stale and record.gold.current)


def _dialogue_cases(records: Iterable[AnnotatedRecord]) -> Iterator[Case]:
    for record in records:
        if record.gold.updates:
            for arrangement in _ARRANGEMENTS:
                for form in (*FORMS, *_BY_THEMSELVES):
                    yield _dialogue_case(record, form, arrangement)


def _dialogue_case(record: AnnotatedRecord, form: str, arrangement: str) -> Case:
    write = _Writer(record.id, form, record.texts)
    first, later, again, changes = _changed(record.gold.updates, write, arrangement)
    unrelated, reworded = ([], []) if form == QUOTED else _unchanged(record, write)
    sessions = [[*unrelated, *first], later, [*reworded, *again]]
    return Case(
        f"{record.id} {form} {arrangement}",
        record.source,
        form,
        arrangement,
        [session for session in sessions if session],
        changes,
        unrelated,
        write.meanings,
    )


def _changed(
    updates: Sequence[Update], write: "_Writer", arrangement: str
) -> tuple[list[Note], list[Note], list[Note], list[Change]]:
    """Return the notes of the first session, those of the later one, the old values said again and the changes."""
    final = {(update.service, update.slot): update for update in updates}
    first: list[Note] = []
    later: list[Note] = []
    again: list[Note] = []
    changes: list[Change] = []
    for update in updates:
        subject, last = _subject(update), final[update.service, update.slot]
        old = write(subject, update.old, update.old_evidence, _DAYS[0])
        new = write(subject, update.new, update.evidence, _DAYS[0 if arrangement == "within" else 1])
        current = write(subject, last.new, last.evidence, _DAYS[1])
        if old.text == new.text or not _are_allowed(old, new, current):
            continue
        changes += [Change(old, current)] if old.text != current.text else []
        if old.text not in {note.text for note in (*first, *later)}:
            first.append(old)
        (first if arrangement == "within" else later).append(new)
        if arrangement == "later":
            again.append(write(subject, update.old, update.old_evidence, _DAYS[0], salt="again"))
    return first, later, again, changes


def _unchanged(record: AnnotatedRecord, write: "_Writer") -> tuple[list[Note], list[Note]]:
    """Return the notes of the values that did not change, and the same said again."""
    unrelated: list[Note] = []
    reworded: list[Note] = []
    changed = {_subject(update) for update in record.gold.updates}
    for slot in record.gold.slots:
        if _subject(slot) in changed:
            continue
        note = write(_subject(slot), slot.values[0], slot.evidence, _DAYS[0])
        other = write.again(_subject(slot), slot.values, slot.evidence, _DAYS[2])
        if _are_allowed(note, other):
            unrelated.append(note)
            reworded.append(other)
    return unrelated, reworded


def _are_allowed(*notes: Note) -> bool:
    """Tell whether the guard lets notes be captured at all; an address never gets as far as consolidation."""
    return all(_is_allowed(note.text) for note in notes)


@lru_cache(maxsize=65_536)
def _is_allowed(text: str) -> bool:
    return check(text).allowed


class _Writer:
    """Writes the notes of one conversation in one form, and knows which of them mean the same."""

    def __init__(self, name: str, form: str, texts: dict[str, str]) -> None:
        self.meanings: dict[str, str] = {}
        self._name = name
        self._pattern = {**FORMS, **_BY_THEMSELVES}[form]
        self._texts = texts

    def __call__(self, subject: str, value: str, evidence: Sequence[str], day: str, salt: str = "") -> Note:
        quote = " ".join(self._texts.get(message_id, "") for message_id in evidence[-1:])
        text = self._pattern.format(subject=subject, value=value, quote=quote)
        return self._note(text, f"{subject}={_canonical(value)}", evidence, quote, day, salt)

    def again(self, subject: str, values: Sequence[str], evidence: Sequence[str], day: str) -> Note:
        """Write a value as it might be said again: in its other spelling, or in other wording."""
        quote = " ".join(self._texts.get(message_id, "") for message_id in evidence[-1:])
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


def _chat_cases(updates: Iterable[AnnotatedRecord], chats: Sequence[AnnotatedRecord]) -> Iterator[Case]:
    """Make a case of every changed fact of a chat, with the evidence of the chat's other questions beside it."""
    for record in updates:
        gold, chat, texts = record.gold, record.id.rsplit("/", 1)[0], record.texts
        if missing := {gold.stale[0], gold.current[0]} - texts.keys():
            raise RecordError(f"{record.where}: `gold` names {min(missing)!r}, which is no message")
        elsewhere = {
            message.id: message.text
            for other in chats
            if other.id.startswith(chat + "/") and other.meta.type in _UNCHANGED
            for message in other.messages
            if message.role == "user" and message.id not in texts
        }
        notes = {message_id: _chat_note(chat, message_id, text) for message_id, text in {**texts, **elsewhere}.items()}
        stale, current = notes[gold.stale[0]], notes[gold.current[0]]
        if not _are_allowed(stale, current):
            continue
        order = sorted(notes, key=lambda message_id: int(re.sub(r"\D", "", message_id) or 0))
        order = [message_id for message_id in order if _are_allowed(notes[message_id])]
        unrelated = [notes[message_id] for message_id in order if message_id in elsewhere]
        sessions = [[notes[message_id]] for message_id in order]
        yield Case(record.id, "memory_updates", "messages", "later", sessions, [Change(stale, current)], unrelated)


def _preference_cases(records: Iterable[AnnotatedRecord]) -> Iterator[Case]:
    """Make one case of the preferences that people state for good, as if they were all one user's."""
    texts = dict.fromkeys(preference.text for record in records for preference in record.gold.preferences)
    notes = [_chat_note("preferences", f"p{number}", text) for number, text in enumerate(texts)]
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


def _subject(named: Update | Slot) -> str:
    """Write a service and a slot as words: `Buses_1` and `from_location` become `Buses from location`."""
    service = re.sub(r"_\d+$", "", named.service)
    words = re.sub(r"(?<=[a-z])(?=[A-Z])|_", " ", f"{service} {named.slot}")
    return " ".join(words.split())


def _canonical(value: str) -> str:
    return " ".join(value.lower().split())
