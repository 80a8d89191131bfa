"""What has one value at a time, and which values it can have; the list is `rules/subjects.yaml`.

Distillation takes from it what a request names, consolidation what a note claims, and injection what the user has
just said otherwise.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from everthread.memory.rules import BUILT_IN, Rule
from everthread.memory.text.wording import root

_PACK = BUILT_IN.pack("subjects")


@dataclass(frozen=True)
class Subject:
    """Something of which one value holds at a time."""

    choices: re.Pattern[str] | None
    """A group for each value; None: any words are a value, as of a name."""
    beside: re.Pattern[str] | None = None
    """Words one of which stands beside a value, unless a note says nothing but the value; None: none is needed."""
    things: re.Pattern[str] | None = None
    """What the choice is made for, anew for each: cheap hotels go with an expensive flight."""
    unless: re.Pattern[str] | None = None
    """Wording in which the values mean something else."""
    request: re.Pattern[str] | None = None
    """How a request names a value, with the nouns around it; None: requests are not searched for it."""
    is_single: bool = True
    """False when a person may well have two: then only wording that tells of a change replaces a value."""

    def values_in(self, text: str) -> Iterator[tuple[str, str]]:
        """Yield the values that a text names, each with the words that name it."""
        if self.choices and not (self.unless and self.unless.search(text)):
            for match in self.choices.finditer(text):
                yield (match.lastgroup or "").strip("_").replace("_", " "), match.group()

    def has_cue(self, text: str) -> bool:
        """Tell whether a text has a word that goes with the subject, or the subject needs none."""
        cues = [pattern for pattern in (self.beside, self.things) if pattern]
        return not cues or any(pattern.search(text) for pattern in cues)

    def things_in(self, text: str) -> list[str]:
        """Return what a text makes the choice for, in lower case."""
        return [match.group().lower() for match in self.things.finditer(text)] if self.things else []


def _whole_words(pattern: re.Pattern[str] | None) -> re.Pattern[str] | None:
    return re.compile(rf"\b(?:{pattern.pattern})\b", re.IGNORECASE) if pattern else None


def _subject(rule: Rule) -> Subject:
    fields: dict[str, Any] = {
        name: _whole_words(rule.values.get(name)) for name in ("beside", "things", "unless", "request")
    }
    return Subject(_whole_words(rule.pattern), **fields, is_single=rule.name not in _PACK.words["several"])


SUBJECTS: dict[str, Subject] = {
    **{rule.name: _subject(rule) for rule in _PACK.sections["subject"]},
    **{rule.name: Subject(None) for rule in _PACK.sections["open"]},
}

EXCLUSIVE = frozenset(SUBJECTS)
"""Subjects of which one value holds at a time."""

ATTRIBUTES: dict[str, re.Pattern[str]] = {
    **{name: subject.request for name, subject in SUBJECTS.items() if subject.request},
    **{rule.name: pattern for rule in _PACK.sections["attribute"] if (pattern := _whole_words(rule.pattern))},
}
"""How a request names what it asks for, by what it is about."""

_NAMES = {
    frozenset(map(root, name.split())): rule.name
    for section in ("subject", "open")
    for rule in _PACK.sections[section]
    for name in (rule.name, *rule.values.get("aliases", "").split(","))
    if name
}


def named(words: Collection[str]) -> str:
    """Return the subject that goes by a name of these words; empty when none does."""
    return _NAMES.get(frozenset(map(root, words)), "")


def value_of(subject: str, words: str) -> str:
    """Return the value of a subject that some words name; empty when they name none, or more than one.

    Args:
        subject: one of `SUBJECTS`.
        words: such as `aisle seats`, or `German`, which in a sentence stands behind `in`.
    """
    for preposition in ("", "in ", "by "):
        values = {value for value, _ in SUBJECTS[subject].values_in(preposition + words)}
        if values:
            return values.pop() if len(values) == 1 else ""
    return ""
