"""Choose which notes go into the prompt."""

from collections.abc import Callable, Sequence

from everthread.memory.rendering import newest_first, note_line
from everthread.state.notes import Note


def within(notes: Sequence[Note], limit: int, count: Callable[[str], int]) -> list[Note]:
    """Return the notes that fit, constraints first, then the newest; returned oldest first.

    Args:
        notes: active notes, in any order.
        limit: tokens for all of them.
        count: tokens of a text.
    """
    ranked = sorted(newest_first(notes), key=lambda note: note.kind != "constraint")
    chosen: list[Note] = []
    for note in ranked:
        size = count(note_line(note)) + 1
        if size <= limit:
            limit -= size
            chosen.append(note)
    return list(reversed(newest_first(chosen)))
