"""How well the rules find what users say about themselves, measured on recorded conversations.

What counts, and against what:

- *Lasting preferences* (records with `gold.preferences`): each user message is distilled with the assistant's message
  ahead of it. A note matches a gold preference when its source is an evidence message of that preference **and** the
  two share a word that carries meaning (`content_words`: stop words and words of attitude such as `avoid` do not
  count). `recall` is the share of gold preferences with a matching durable note.
- `precision_strict` counts every durable note without a match as wrong, although the annotation names one preference
  per conversation and users state others. `precision` looks at those again: a note outside the annotation is right when
  its message is in `READ`, messages that were read one by one and state something lasting about the user. What the
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
"""

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from everthread.errors import RecordError
from everthread.evals.readings import READ
from everthread.evals.suites import Options, Report, Table, Tick
from everthread.memory.distillation import Candidate, candidates, content_words
from everthread.memory.distillation.sentences import sentences

__all__ = ["is_held_out", "raw_records", "run"]

Distiller = Callable[[str, str], list[Candidate]]
"""User message and the assistant's message ahead of it to candidates."""

_KEYWORD = re.compile(
    r"\b(?:prefer|like|love|hate|dislike|avoid|enjoy|always|never|usually|want|need)\b", re.IGNORECASE
)
_SHORTEST_VALUE = 4


@dataclass(frozen=True)
class _Made:
    message_id: str
    found: Candidate


@dataclass
class _Tally:
    gold: int = 0
    met: int = 0
    notes: int = 0
    matched: int = 0
    read: int = 0
    messages: int = 0
    lasting: int = 0

    def add(self, other: "_Tally") -> None:
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


def run(paths: Sequence[Path], options: Options, tick: Tick) -> Report:
    """Measure the rules and the baselines.

    Raises:
        RecordError: a file cannot be read, or no record has preferences or slots.
    """
    records = [record for path in paths for record in raw_records(path)][: options.limit]
    records = [one for one in records if {"preferences", "slots"} & set(one.get("gold", {})) and one["messages"]]
    if not records:
        raise RecordError(f"{', '.join(map(str, paths))}: no record has `gold.preferences` or `gold.slots`")
    tallies: dict[tuple[str, str, str], _Tally] = defaultdict(_Tally)
    for done, record in enumerate(records, start=1):
        source, half = str(record["id"]).split("/")[0], "held_out" if is_held_out(str(record["id"])) else "open"
        for name, distiller in _DISTILLERS.items():
            for part, tally in _measured(record, distiller):
                label = part if part != "slots" else f"slots.{source}"
                tallies[name, label, half].add(tally)
                tallies[name, label, "all"].add(tally)
        tick(done, len(records), str(record["id"]))
    return Report(
        suite="distillation",
        figures=dict(_figures(tallies)),
        tables=tuple(_tables(tallies)),
        remarks=(
            "Preferences: one is annotated per conversation, so `strict` counts other true statements as wrong.",
            "Slots: requests become notes of the session; no rule can tell from one request what will last.",
        ),
        settings={"mode": "rules", "records": len(records)},
    )


def is_held_out(record_id: str) -> bool:
    """Tell whether a record is in the half that was not read while the rules were written."""
    return hashlib.sha256(f"7:{record_id}".encode()).digest()[0] % 2 == 1


def _rules(text: str, question: str) -> list[Candidate]:
    return candidates(text, question=question)


def _every_sentence(text: str, question: str) -> list[Candidate]:
    return [Candidate(sentence.quote, sentence.text, "durable") for sentence in sentences(text)]


def _keyword(text: str, question: str) -> list[Candidate]:
    return [one for one in _every_sentence(text, question) if _KEYWORD.search(one.text)]


_DISTILLERS: dict[str, Distiller] = {"rules": _rules, "keyword": _keyword, "every sentence": _every_sentence}


def _measured(record: dict[str, Any], distiller: Distiller) -> Iterator[tuple[str, _Tally]]:
    gold = record["gold"]
    made = list(_distilled(record["messages"], distiller))
    said = sum(message["role"] == "user" for message in record["messages"])
    if gold.get("preferences"):
        yield "preferences", _preferences(record, made, said)
        yield "explicit", _explicit(gold, distiller)
    if gold.get("slots"):
        yield "slots", _slots(gold["slots"], made, said)


def _distilled(messages: Sequence[dict[str, Any]], distiller: Distiller) -> Iterator[_Made]:
    question = ""
    for message in messages:
        if message["role"] == "user":
            for found in distiller(message["content"] or "", question):
                yield _Made(str(message["id"]), found)
        question = (message["content"] or "") if message["role"] == "assistant" else ""


def _preferences(record: dict[str, Any], made: Sequence[_Made], said: int) -> _Tally:
    lasting = [one for one in made if one.found.scope == "durable"]
    tally = _Tally(messages=said, notes=len(lasting), lasting=len(lasting))
    right: set[int] = set()
    for wanted in record["gold"]["preferences"]:
        words = content_words(wanted["text"]) | content_words(wanted.get("explicit_form") or "")
        hits = {
            place
            for place, one in enumerate(lasting)
            if one.message_id in wanted["evidence"] and content_words(one.found.text) & words
        }
        tally.gold += 1
        tally.met += bool(hits)
        right |= hits
    tally.matched = len(right)
    known = READ.get(str(record["id"]), frozenset())
    tally.read = sum(place not in right and one.message_id in known for place, one in enumerate(lasting))
    return tally


def _explicit(gold: dict[str, Any], distiller: Distiller) -> _Tally:
    tally = _Tally()
    for wanted in gold["preferences"]:
        if form := wanted.get("explicit_form"):
            words = content_words(form)
            found = [one for one in distiller(form, "") if one.scope == "durable"]
            matched = [one for one in found if content_words(one.text) & words]
            tally.gold += 1
            tally.met += bool(matched)
            tally.matched += len(matched)
            tally.notes += len(found)
    for question in gold.get("questions", ()):
        tally.messages += 1
        false_alarms = sum(one.scope == "durable" for one in distiller(question["question"], ""))
        tally.notes += false_alarms
        tally.lasting += false_alarms
    return tally


def _slots(slots: Sequence[dict[str, Any]], made: Sequence[_Made], said: int) -> _Tally:
    asked = [slot for slot in slots if slot["durable"] and slot["stated_by"] == "user"]
    return _Tally(
        messages=said,
        gold=len(asked),
        met=sum(any(_is_about(one, slot) for one in made) for slot in asked),
        notes=len(made),
        matched=sum(any(_is_about(one, slot) for slot in slots) for one in made),
        lasting=sum(one.found.scope == "durable" for one in made),
    )


def _is_about(one: _Made, slot: dict[str, Any]) -> bool:
    if one.message_id not in slot["evidence"]:
        return False
    text = one.found.text.lower()
    values = [str(value).lower() for value in (*slot["values"], slot.get("canonical") or "") if value]
    words = [word for value in values for word in re.findall(r"\w+", value) if len(word) >= _SHORTEST_VALUE]
    # "yes" to parking has no word of its own: the slot's name stands for it.
    if {"yes", "true", "free", "no", "false"} & set(values):
        words += [word for word in re.split(r"[_\W]+", slot["slot"]) if len(word) >= _SHORTEST_VALUE]
        words += ["wifi"] if slot["slot"] == "internet" else []
    return any(re.search(rf"\b{re.escape(value)}\b", text) for value in values) or any(word in text for word in words)


def _figures(tallies: dict[tuple[str, str, str], _Tally]) -> Iterator[tuple[str, float]]:
    for (name, label, half), tally in tallies.items():
        if name != "rules":
            continue
        prefix = label if half == "all" else f"{label}.{half}"
        if label == "preferences":
            yield f"{prefix}.recall", _share(tally.met, tally.gold)
            yield f"{prefix}.precision", _share(tally.matched + tally.read, tally.notes)
            yield f"{prefix}.precision_strict", _share(tally.matched, tally.notes)
        elif label == "explicit":
            yield f"{prefix}.recall", _share(tally.met, tally.gold)
            yield f"{prefix}.precision", _share(tally.matched, tally.notes)
            yield f"{prefix}.false_alarms", _share(tally.lasting, tally.messages)
        else:
            yield f"{prefix}.recall_durable", _share(tally.met, tally.gold)
            yield f"{prefix}.precision", _share(tally.matched, tally.notes)
            yield f"{prefix}.claimed_lasting", 100 * _share(tally.lasting, tally.messages)


def _tables(tallies: dict[tuple[str, str, str], _Tally]) -> Iterator[Table]:
    columns = ("distiller", "half", "gold", "recall", "notes", "precision", "strict", "notes per 100 messages")
    for label in dict.fromkeys(label for _, label, _ in tallies):
        rows = [
            (
                name,
                half,
                tally.gold,
                _share(tally.met, tally.gold),
                tally.notes,
                _share(tally.matched + tally.read, tally.notes),
                _share(tally.matched, tally.notes),
                100 * _share(tally.notes, tally.messages),
            )
            for (name, part, half), tally in tallies.items()
            if part == label and label != "explicit"
        ]
        if rows:
            yield Table(label, columns, tuple(rows))
    yield Table(
        "explicit",
        ("distiller", "half", "gold", "recall", "precision", "false alarms"),
        tuple(
            (
                name,
                half,
                tally.gold,
                _share(tally.met, tally.gold),
                _share(tally.matched, tally.notes),
                _share(tally.lasting, tally.messages),
            )
            for (name, part, half), tally in tallies.items()
            if part == "explicit"
        ),
    )


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def raw_records(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of a file or folder with their annotations.

    Raises:
        RecordError: a file cannot be read, or a line is no record.
    """
    files: Iterable[Path] = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
    for file in files:
        try:
            lines = file.read_text(encoding="utf-8").split("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise RecordError(f"{file}: cannot be read: {error}") from error
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                value = json.loads(line)
            except ValueError as error:
                raise RecordError(f"{file}:{number}: not JSON: {error}") from error
            if not isinstance(value, dict) or not isinstance(value.get("messages"), list) or "id" not in value:
                raise RecordError(f"{file}:{number}: a record has at least `id` and `messages`")
            yield value
