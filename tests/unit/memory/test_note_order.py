"""Notes of one day stand in the order in which they were said."""

from everthread.memory.rendering import newest_first, render_notes
from everthread.memory.selection import within
from everthread.state import Note

EARLY = Note(id="n-f", text="Prefers aisle seats.", date="2026-01-02", said_at="2026-01-02T08:00:00.000+00:00")
LATE = Note(id="n-a", text="Prefers window seats.", date="2026-01-02", said_at="2026-01-02T08:00:01.000+00:00")
MORE = Note(id="n-c", text="Likes jazz.", date="2026-01-01", said_at="2026-01-01T23:00:00.000+00:00")


def test_the_later_one_of_a_day_comes_first() -> None:
    assert [note.id for note in newest_first([MORE, EARLY, LATE])] == ["n-a", "n-f", "n-c"]


def test_a_block_shows_it_first_too() -> None:
    lines = render_notes("Notes", within([LATE, EARLY], 1_000, len)).splitlines()

    assert [line.partition(": ")[2] for line in lines if line.startswith("- ")] == [LATE.text, EARLY.text]


def test_a_note_of_which_only_the_day_is_known_comes_behind_those_of_the_day() -> None:
    old = EARLY.model_copy(update={"id": "n-z", "said_at": ""})

    assert newest_first([old, EARLY]) == [EARLY, old]
