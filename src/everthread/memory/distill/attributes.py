"""Attributes of what people book, order or ask for: what a request says that may matter again in the session."""

import re
from dataclasses import dataclass

from everthread.memory.subjects import ATTRIBUTES, SUBJECTS

_NEGATION = re.compile(
    r"(?:\b(?:no|not|without|non|never|except|don't (?:want|need|like)|do not (?:want|need|like)|avoid)"
    r"(?: (?:a|an|any|the|need|to|add|be))*[ -])$",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Attribute:
    """One wish inside a request."""

    subject: str
    phrase: str
    is_negated: bool = False


def attributes(text: str) -> list[Attribute]:
    """Return the attributes that a text names, in order, each place once and the longest reading of it."""
    places = [
        (subject, match.start(), match.end())
        for subject, pattern in ATTRIBUTES.items()
        for match in pattern.finditer(text)
    ]
    taken: list[tuple[int, int]] = []
    wanted: dict[int, Attribute] = {}
    for subject, start, end in sorted(places, key=lambda place: (place[1] - place[2], place[1])):
        if all(end <= other_start or other_end <= start for other_start, other_end in taken):
            taken.append((start, end))
            is_negated = _NEGATION.search(text[max(0, start - 30) : start]) is not None
            wanted[start] = Attribute(subject, " ".join(text[start:end].split()), is_negated)
    return [wanted[start] for start in sorted(wanted)]


def subject_of(text: str) -> str:
    """Return the exclusive subject that a statement is about; empty when there is none or more than one."""
    subjects = {attribute.subject for attribute in attributes(text)} & SUBJECTS.keys()
    # `The middle of town` and `a room with a window` name no seat.
    subjects = {name for name in subjects if any(SUBJECTS[name].values_in(text))}
    return subjects.pop() if len(subjects) == 1 else ""
