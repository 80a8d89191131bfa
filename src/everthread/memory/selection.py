"""Choose which notes go into the prompt."""

from collections.abc import Callable, Sequence
from datetime import date
from functools import lru_cache

from everthread.memory.distillation.attributes import attributes
from everthread.memory.distillation.wording import content_words
from everthread.memory.rendering import newest_first, note_line
from everthread.memory.subjects import EXCLUSIVE, value_of
from everthread.state.notes import Note

HALF_LIFE_DAYS = 180
"""Days after which a note counts half, beside notes of the newest day; our choice: tastes last longer than trips."""

_CONFIRMED = 0.1
"""What each day of confirmation adds to a note's worth, for at most five of them; our choice."""


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


def within(notes: Sequence[Note], limit: int, count: Callable[[str], int]) -> list[Note]:
    """Return the notes that fit, constraints first, then by recency, confidence and confirmations.

    The current question plays no part: this block stands near the head of the prompt, and a block that
    followed every question would break the provider's cache on every turn. What did not fit and the
    question asks for comes by `relevant`, near the end of the prompt.

    Args:
        notes: active notes, in any order.
        limit: tokens for all of them.
        count: tokens of a text.

    Returns:
        The chosen notes, oldest first.
    """
    newest = max((note.date for note in notes), default="")
    ranked = sorted(newest_first(notes), key=lambda note: (note.kind != "constraint", -_worth(note, newest)))
    chosen: list[Note] = []
    for note in ranked:
        size = count(note_line(note)) + 1
        if size <= limit:
            limit -= size
            chosen.append(note)
    return list(reversed(newest_first(chosen)))


def relevant(
    notes: Sequence[Note], chosen: Sequence[Note], question: str, limit: int, count: Callable[[str], int]
) -> list[Note]:
    """Return notes that did not fit into the block and share words that carry meaning with the question.

    Empty as long as all notes fit, so that most prompts never see it.

    Args:
        notes: all active notes.
        chosen: what `within` chose of them.
        question: the user's current message.
        limit: tokens for all of them.
        count: tokens of a text.

    Returns:
        The most relevant that fit, oldest first.
    """
    there, asked = {note.id for note in chosen}, content_words(question)
    newest = max((note.date for note in notes), default="")
    shared = {note.id: len(content_words(f"{note.text} {' '.join(note.keywords)}") & asked) for note in notes}
    left = [note for note in newest_first(notes) if note.id not in there and shared[note.id]]
    found: list[Note] = []
    for note in sorted(left, key=lambda note: -shared[note.id] * _worth(note, newest)):
        size = count(note_line(note)) + 1
        if size <= limit:
            limit -= size
            found.append(note)
    return list(reversed(newest_first(found)))


def overruled(notes: Sequence[Note], said: str) -> list[Note]:
    """Return the notes that the user's message contradicts: another value of a subject that has one value at a time.

    The user wins (BEHAVIOUR §5); the notes stay as they are, since "this time" changes no default.

    Args:
        notes: notes of the prompt.
        said: the user's current message.
    """
    wanted = _values(said)
    found = []
    for note in notes:
        mine = _values(note.text)
        if any(mine[subject].isdisjoint(wanted[subject]) for subject in mine.keys() & wanted.keys()):
            found.append(note)
    return found


@lru_cache(maxsize=4_096)
def _values(text: str) -> dict[str, set[tuple[str, bool]]]:
    values: dict[str, set[tuple[str, bool]]] = {}
    for attribute in attributes(text):
        if attribute.subject in EXCLUSIVE:
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
