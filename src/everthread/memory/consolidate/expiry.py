"""Forgetting: when a note ends, and how sure we still are of one that was not said again."""

from datetime import date, timedelta

from everthread.state.notes import Note, NoteKind

HISTORY_DAYS = 730
"""Days for which a replaced, expired or retracted note is kept, so that one can still ask what held before."""

_HALF_LIFE_DAYS: dict[NoteKind, int | None] = {"constraint": None, "preference": 730, "habit": 365, "fact": 365}
"""Days after which an unconfirmed note counts half; None never fades: a rule of the user holds until it is lifted."""

_VOLATILE_HALF_LIFE_SHARE = 0.5
"""A note with an end fades by half at this share of its life."""


def end_of(note: Note, today: str) -> str:
    """Say why a long-term note ends today or ended before; empty when it holds on."""
    if note.expires_at and note.expires_at[:10] <= today and note.status == "active":
        return f"expired on {note.expires_at[:10]}"
    if note.status != "active" and _days(note.valid_to or note.date, today) > HISTORY_DAYS:
        return f"{note.status} more than {HISTORY_DAYS} days ago"
    return ""


def confidence_on(note: Note, today: str) -> float:
    """Return a note's confidence on a day: it fades from the day on which it was last said.

    Args:
        note: `date` is when it was last said, `expires_at` when it ends.
        today: ISO 8601.
    """
    half_life: float | None = _HALF_LIFE_DAYS[note.kind]
    if note.expires_at:
        half_life = max(_days(note.date, note.expires_at) * _VOLATILE_HALF_LIFE_SHARE, 1)
    age = max(_days(note.date, today), 0)
    return note.confidence if half_life is None else float(note.confidence * 0.5 ** (age / half_life))


def renewed(old: Note, new: Note) -> str | None:
    """Return the end of a note that was said again: none when either has none, else as long a life from now on."""
    if old.expires_at is None or new.expires_at is None:
        return None
    life = _days(old.date, old.expires_at)
    again = date.fromisoformat(new.date[:10]) + timedelta(days=max(life, 0))
    return max(old.expires_at, new.expires_at, again.isoformat())


def _days(since: str, until: str) -> int:
    try:
        return (date.fromisoformat(until[:10]) - date.fromisoformat(since[:10])).days
    except ValueError:
        return 0
