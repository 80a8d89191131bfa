"""How well the rules find what users say about themselves, measured on recorded conversations.

What counts, and against what:

- *Lasting preferences* (records with `gold.preferences`): each user message is distilled with the assistant's message
  ahead of it. A note matches a gold preference when its source is an evidence message of that preference **and** the
  two share a word that carries meaning (`wording`: stop words and words of attitude such as `avoid` do not
  count). `recall` is the share of gold preferences with a matching durable note.
- `precision_strict` counts every durable note without a match as wrong, although the annotation names one preference
  per conversation and users state others. `precision` looks at those again: a note outside the annotation is right when
  its message is in `prefeval_statements.yaml`: messages that were read one by one and state something lasting. What the
  rules found was read, so the baselines, which find more, are judged too hard by it; their `strict` compares fairly.
- *Explicit forms*: the same preference in the words of an explicit statement, as a message of its own. `recall` is the
  share that gives a durable note of a shared word; `precision` counts every other note, and every note from the probing
  questions of the same records, which state nothing (`false_alarms` per question), as wrong.
- *Slots* (SGD, MultiWOZ): a note matches a slot when its source is an evidence message and its text has the value, or
  a word of it of at least four letters. `recall_durable` is over the slots marked as lasting that the user stated;
  `precision` is over all notes of these records and all slots: is what a note says part of what the user was after?
  `claimed_lasting` are durable notes per 100 user messages: few people say lasting things while they book.

Baselines: `every sentence` keeps each sentence of the user, `keyword` each with a word such as `prefer` or `avoid`.
Records are halved by a digest of their id: the rules were written while reading the `open` half only, and `held_out`
is the figure to believe.

In a folder, records that were put together from other conversations are left out: they would count the same preference
twice, and `prefeval_statements.yaml` knows messages by the conversation that they come from.
"""

import hashlib
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from everthread.evals.suites import Options, Report, Table, Tick, share
from everthread.memory.distill import Candidate, candidates
from everthread.memory.text.own_words import own_sentences
from everthread.memory.text.wording import wording

from .annotations import AnnotatedRecord, Message, Slot, annotated
from .tally import Tally

__all__ = ["is_held_out", "run"]

Distiller = Callable[[str, str], list[Candidate]]
"""User message and the assistant's message ahead of it to candidates."""

_KEYWORD = re.compile(
    r"\b(?:prefer|like|love|hate|dislike|avoid|enjoy|always|never|usually|want|need)\b", re.IGNORECASE
)
_SHORTEST_VALUE = 4

_STATEMENTS: dict[str, list[str]] = yaml.safe_load(
    Path(__file__).with_name("prefeval_statements.yaml").read_text(encoding="utf-8")
)
"""Record id to ids of messages that were read and state something lasting outside of the annotation."""


@dataclass(frozen=True)
class _Note:
    message_id: str
    candidate: Candidate


@dataclass
class Outcome(Tally):
    """Counts of the notes that a distiller made."""

    gold: int = 0
    met: int = 0
    notes: int = 0
    matched: int = 0
    read: int = 0
    messages: int = 0
    lasting: int = 0

    @property
    def recall(self) -> float:
        return share(self.met, self.gold)

    @property
    def strict(self) -> float:
        return share(self.matched, self.notes)

    @property
    def precision(self) -> float:
        return share(self.matched + self.read, self.notes)

    @property
    def rate(self) -> float:
        return share(self.notes, self.messages)

    @property
    def claims(self) -> float:
        return share(self.lasting, self.messages)


_Tallies = dict[tuple[str, str, str], Outcome]
"""By distiller, part and half."""


def run(paths: Sequence[Path], options: Options, tick: Tick) -> Report:
    """Measure the rules and the baselines.

    Raises:
        RecordError: a file cannot be read, or no record has preferences or slots.
    """
    picked = annotated(
        paths,
        lambda value, gold: bool(value["messages"] and (gold.get("preferences") or gold.get("slots"))),
        "`gold.preferences` or `gold.slots`",
        chains="named",
        limit=options.limit,
    )
    tallies: _Tallies = defaultdict(Outcome)
    for done, record in enumerate(picked.records, start=1):
        half = "held_out" if is_held_out(record.id) else "open"
        for name, distiller in _DISTILLERS.items():
            for part, outcome in _measured(record, distiller):
                label = part if part != "slots" else f"slots.{record.source}"
                tallies[name, label, half].add(outcome)
                tallies[name, label, "all"].add(outcome)
        tick(done, len(picked.records), record.id)
    return Report(
        suite="distillation",
        figures=dict(_figures(tallies)),
        tables=tuple(_tables(tallies)),
        remarks=(
            *picked.remarks,
            "Preferences: one is annotated per conversation, so `strict` counts other true statements as wrong.",
            "Slots: requests become notes of the session; no rule can tell from one request what will last.",
        ),
        settings={"mode": "rules", "records": len(picked.records)},
    )


def is_held_out(record_id: str) -> bool:
    """Tell whether a record is in the half that was not read while the rules were written."""
    return hashlib.sha256(f"7:{record_id}".encode()).digest()[0] % 2 == 1


def _rules(text: str, question: str) -> list[Candidate]:
    return candidates(text, question=question)


def _every_sentence(text: str, question: str) -> list[Candidate]:
    return [Candidate(sentence.quote, sentence.text, "durable") for sentence in own_sentences(text)]


def _keyword(text: str, question: str) -> list[Candidate]:
    return [one for one in _every_sentence(text, question) if _KEYWORD.search(one.text)]


_DISTILLERS: dict[str, Distiller] = {"rules": _rules, "keyword": _keyword, "every sentence": _every_sentence}


def _measured(record: AnnotatedRecord, distiller: Distiller) -> Iterator[tuple[str, Outcome]]:
    notes = list(_distilled(record.messages, distiller))
    user_messages = sum(message.role == "user" for message in record.messages)
    if record.gold.preferences:
        yield "preferences", _preferences(record, notes, user_messages)
        yield "explicit", _explicit(record, distiller)
    if record.gold.slots:
        yield "slots", _slots(record.gold.slots, notes, user_messages)


def _distilled(messages: Sequence[Message], distiller: Distiller) -> Iterator[_Note]:
    question = ""
    for message in messages:
        if message.role == "user":
            for candidate in distiller(message.text, question):
                yield _Note(message.id, candidate)
        question = message.text if message.role == "assistant" else ""


def _preferences(record: AnnotatedRecord, notes: Sequence[_Note], user_messages: int) -> Outcome:
    lasting = [one for one in notes if one.candidate.scope == "durable"]
    tally = Outcome(messages=user_messages, notes=len(lasting), lasting=len(lasting))
    right: set[int] = set()
    for wanted in record.gold.preferences:
        words = wording(wanted.text).words | wording(wanted.explicit_form).words
        hits = {
            place
            for place, one in enumerate(lasting)
            if one.message_id in wanted.evidence and wording(one.candidate.text).words & words
        }
        tally.gold += 1
        tally.met += bool(hits)
        right |= hits
    tally.matched = len(right)
    known = _STATEMENTS.get(record.id, ())
    tally.read = sum(place not in right and one.message_id in known for place, one in enumerate(lasting))
    return tally


def _explicit(record: AnnotatedRecord, distiller: Distiller) -> Outcome:
    tally = Outcome()
    for form in (wanted.explicit_form for wanted in record.gold.preferences if wanted.explicit_form):
        words = wording(form).words
        durable = [one for one in distiller(form, "") if one.scope == "durable"]
        matched = [one for one in durable if wording(one.text).words & words]
        tally.gold += 1
        tally.met += bool(matched)
        tally.matched += len(matched)
        tally.notes += len(durable)
    for probe in record.gold.questions:
        tally.messages += 1
        false_alarms = sum(one.scope == "durable" for one in distiller(probe.question, ""))
        tally.notes += false_alarms
        tally.lasting += false_alarms
    return tally


def _slots(slots: Sequence[Slot], notes: Sequence[_Note], user_messages: int) -> Outcome:
    wanted = [slot for slot in slots if slot.durable and slot.stated_by == "user"]
    return Outcome(
        messages=user_messages,
        gold=len(wanted),
        met=sum(any(_is_about(one, slot) for one in notes) for slot in wanted),
        notes=len(notes),
        matched=sum(any(_is_about(one, slot) for slot in slots) for one in notes),
        lasting=sum(one.candidate.scope == "durable" for one in notes),
    )


def _is_about(one: _Note, slot: Slot) -> bool:
    if one.message_id not in slot.evidence:
        return False
    text = one.candidate.text.lower()
    values = [value.lower() for value in (*slot.values, slot.canonical) if value]
    words = [word for value in values for word in re.findall(r"\w+", value) if len(word) >= _SHORTEST_VALUE]
    # "yes" to parking has no word of its own: the slot's name stands for it.
    if {"yes", "true", "free", "no", "false"} & set(values):
        words += [word for word in re.split(r"[_\W]+", slot.slot) if len(word) >= _SHORTEST_VALUE]
        words += ["wifi"] if slot.slot == "internet" else []
    return any(re.search(rf"\b{re.escape(value)}\b", text) for value in values) or any(word in text for word in words)


def _figures(tallies: _Tallies) -> Iterator[tuple[str, float]]:
    for (name, label, half), tally in tallies.items():
        if name != "rules":
            continue
        prefix = label if half == "all" else f"{label}.{half}"
        if label == "preferences":
            yield f"{prefix}.recall", tally.recall
            yield f"{prefix}.precision", tally.precision
            yield f"{prefix}.precision_strict", tally.strict
        elif label == "explicit":
            yield f"{prefix}.recall", tally.recall
            yield f"{prefix}.precision", tally.strict
            yield f"{prefix}.false_alarms", tally.claims
        else:
            yield f"{prefix}.recall_durable", tally.recall
            yield f"{prefix}.precision", tally.strict
            yield f"{prefix}.claimed_lasting", 100 * tally.claims


def _tables(tallies: _Tallies) -> Iterator[Table]:
    columns = ("distiller", "half", "gold", "recall", "notes", "precision", "strict", "notes per 100 messages")
    for label in dict.fromkeys(label for _, label, _ in tallies if label != "explicit"):
        rows = [
            (
                name,
                half,
                one.gold,
                one.recall,
                one.notes,
                one.precision,
                one.strict,
                100 * share(one.notes, one.messages),
            )
            for (name, part, half), one in tallies.items()
            if part == label
        ]
        yield Table(label, columns, tuple(rows))
    explicit = tuple(
        (name, half, one.gold, one.recall, one.strict, one.claims)
        for (name, part, half), one in tallies.items()
        if part == "explicit"
    )
    if explicit:
        yield Table("explicit", ("distiller", "half", "gold", "recall", "precision", "false alarms"), explicit)
