"""Choose which notes go into the prompt."""

from collections.abc import Callable, Sequence
from datetime import date
from functools import lru_cache

from everthread.memory.distill.attributes import attributes
from everthread.memory.rendering import newest_first, note_line
from everthread.memory.subjects import SUBJECTS, value_of
from everthread.memory.text.sentences import sentences
from everthread.memory.text.wording import wording
from everthread.state.notes import Note

HALF_LIFE_DAYS = 180
"""Days after which a note counts half, beside notes of the newest day; our choice: tastes last longer than trips."""

_CONFIRMED = 0.1
"""What each day of confirmation adds to a note's worth, for at most five of them; our choice."""

_SHARE_ASKED = 0.25
"""Share of the limit for notes that only the question brings, once the notes do not all fit; our choice."""

_LONGEST_QUESTION = 4_000
"""Characters of a message that are read for what it asks and what it contradicts; a longer one is a paste."""


def holding(notes: Sequence[Note], today: str) -> list[Note]:
    """Return the notes that hold on a day: active, begun, and neither replaced nor expired.

    Args:
        notes: any notes.
        today: ISO 8601.
    """
    return [
        note
        for note in notes
        if note.status == "active"
        and (note.valid_from is None or note.valid_from <= today)
        and (note.valid_to is None or note.valid_to > today)
        and (note.expires_at is None or note.expires_at > today)
    ]


def chosen(
    notes: Sequence[Note], question: str, limit: int, count: Callable[[str], int]
) -> tuple[list[Note], list[Note]]:
    """Return the notes for the block at the head of the prompt, and those that only the question brings.

    While all of them fit, all are in the block. Otherwise the block takes the constraints and what is newest,
    surest and most often confirmed: it stands near the head of the prompt, and a block that followed every
    question would break the provider's cache on every turn. A part of the limit is kept for notes beside it
    that the question asks for; they come near the end of the prompt.

    Args:
        notes: active notes, in any order.
        question: the user's current message; empty brings none.
        limit: tokens for all of them together.
        count: tokens of a text.

    Returns:
        Both oldest first.
    """
    block = within(notes, limit, count)
    if len(block) == len(notes):
        return block, []
    asked_limit = int(limit * _SHARE_ASKED)
    block = within(notes, limit - asked_limit, count)
    return block, _asked(notes, block, question, asked_limit, count)


def within(notes: Sequence[Note], limit: int, count: Callable[[str], int]) -> list[Note]:
    """Return the notes that fit, constraints first, then by recency, confidence and confirmations.

    Args:
        notes: active notes, in any order.
        limit: tokens for all of them.
        count: tokens of a text.

    Returns:
        The chosen notes, oldest first.
    """
    newest = max((note.date for note in notes), default="")
    ranked = sorted(newest_first(notes), key=lambda note: (note.kind != "constraint", -_worth(note, newest)))
    return _filled(ranked, limit, count)


def _asked(
    notes: Sequence[Note], block: Sequence[Note], question: str, limit: int, count: Callable[[str], int]
) -> list[Note]:
    """Return what is not in the block by relevance, the words that it shares with the question, and worth."""
    there, asked = {note.id for note in block}, wording(question[:_LONGEST_QUESTION]).words
    newest = max((note.date for note in notes), default="")
    shared = {note.id: len(wording(f"{note.text} {' '.join(note.keywords)}").words & asked) for note in notes}
    left = [note for note in newest_first(notes) if note.id not in there and shared[note.id]]
    return _filled(sorted(left, key=lambda note: -shared[note.id] * _worth(note, newest)), limit, count)


def _filled(ranked: Sequence[Note], limit: int, count: Callable[[str], int]) -> list[Note]:
    """Return the first of the notes that fit, oldest first."""
    taken: list[Note] = []
    for note in ranked:
        size = count(note_line(note)) + 1
        if size <= limit:
            limit -= size
            taken.append(note)
    return list(reversed(newest_first(taken)))


def overruled(notes: Sequence[Note], said: str) -> list[Note]:
    """Return the notes that the user's message contradicts: another value of a subject that has one value at a time.

    The user wins (BEHAVIOUR §5); the notes stay as they are, since "this time" changes no default.

    Args:
        notes: notes of the prompt.
        said: the user's current message.
    """
    wanted = _values(said[-_LONGEST_QUESTION:])
    contradicted = []
    for note in notes:
        mine = _values(note.text)
        if any(mine[subject].isdisjoint(wanted[subject]) for subject in mine.keys() & wanted.keys()):
            contradicted.append(note)
    return contradicted


@lru_cache(maxsize=4_096)
def _values(text: str) -> dict[str, set[tuple[str, bool]]]:
    values: dict[str, set[tuple[str, bool]]] = {}
    for sentence in sentences(text):
        for attribute in attributes(sentence):
            # `A table by the window` names no seat.
            if attribute.subject not in SUBJECTS or not any(SUBJECTS[attribute.subject].values_in(sentence)):
                continue
            value = value_of(attribute.subject, attribute.phrase) or attribute.phrase.lower()
            values.setdefault(attribute.subject, set()).add((value, attribute.is_negated))
    return values


def _worth(note: Note, newest: str) -> float:
    try:
        age = (date.fromisoformat(newest[:10]) - date.fromisoformat(note.date[:10])).days
    except ValueError:
        age = HALF_LIFE_DAYS
    recency: float = 0.5 ** (max(age, 0) / HALF_LIFE_DAYS)
    return note.confidence * recency * (1 + _CONFIRMED * min(len(note.confirmations), 5))
