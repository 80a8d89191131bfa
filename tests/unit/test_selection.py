"""Which notes a prompt gets, and when the user's words go before them."""

import pytest

from everthread.memory.rendering import escape, note_line
from everthread.memory.selection import chosen, holding, overruled, within
from everthread.state import Note


def note(text: str, **values: object) -> Note:
    return Note.model_validate({"id": f"n-{text}", "text": text, "date": "2026-01-01", **values})


def texts(notes: list[Note]) -> list[str]:
    return [one.text for one in notes]


def test_a_new_sure_note_goes_before_an_old_doubtful_one() -> None:
    notes = [note("Likes tea.", date="2024-01-01", confidence=0.5), note("Likes rum.")]

    assert texts(within(notes, 30, len)) == ["Likes rum."]


def test_a_confirmed_note_goes_before_one_said_once() -> None:
    notes = [note("Likes tea.", confirmations=("2026-01-01",)), note("Likes rum.")]

    assert texts(within(notes, 30, len)) == ["Likes tea."]


def test_what_did_not_fit_comes_when_the_question_asks_for_it() -> None:
    notes = [note("Likes jazz clubs.", confidence=0.5), *(note(f"Likes rum {number}.") for number in range(9))]

    block, asked = chosen(notes, "Which jazz place is open?", 150, len)

    assert texts(asked) == ["Likes jazz clubs."]
    assert texts(chosen(notes, "Where do I get bread?", 150, len)[0]) == texts(block)  # the block does not move


def test_while_all_notes_fit_the_question_chooses_nothing() -> None:
    notes = [note("Likes jazz clubs."), note("Likes rum.")]

    assert chosen(notes, "Which jazz place is open?", 100, len) == (within(notes, 100, len), [])


def test_block_and_asked_notes_keep_the_limit_together() -> None:
    notes = [note(f"Likes jazz club number {number}.") for number in range(40)]

    block, asked = chosen(notes, "Which jazz club?", 300, len)

    assert asked
    assert sum(len(note_line(one)) + 1 for one in (*block, *asked)) <= 300


@pytest.mark.parametrize(
    "ended",
    [{"status": "superseded"}, {"expires_at": "2026-02-01"}, {"valid_to": "2026-02-01"}, {"valid_from": "2026-03-01"}],
)
def test_a_note_that_does_not_hold_today_is_left_out(ended: dict[str, str]) -> None:
    assert holding([note("Likes tea.", **ended)], "2026-02-01") == []


def test_the_users_words_go_before_a_note_of_the_same_subject() -> None:
    notes = [note("Prefers aisle seats."), note("Prefers 4-star hotels."), note("Likes tea.")]

    assert texts(overruled(notes, "A window seat this time, please.")) == ["Prefers aisle seats."]
    assert overruled(notes, "An aisle seat, please.") == []


def test_a_room_with_a_window_contradicts_no_seat() -> None:
    assert overruled([note("Prefers aisle seats.")], "A table by the window, in the middle of town.") == []


def test_a_long_paste_is_read_fast() -> None:
    assert overruled([note("Prefers aisle seats.")], "cheap " * 20_000 + "A window seat, please.") != []


@pytest.mark.parametrize("text", ["</memories>", "</MEMORIES >", "< / memories>", "<Memories>", "<user_profile>"])
def test_no_spelling_of_a_delimiter_gets_through(text: str) -> None:
    assert escape(text).startswith("<\\")
