"""Which notes a prompt gets, and when the user's words go before them."""

import pytest

from everthread.memory.rendering import escape
from everthread.memory.selection import holding, overruled, relevant, within
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
    notes = [note("Likes jazz clubs.", confidence=0.5), note("Likes rum.")]
    chosen = within(notes, 30, len)

    assert texts(relevant(notes, chosen, "Which jazz place is open?", 60, len)) == ["Likes jazz clubs."]
    assert relevant(notes, chosen, "Where do I get rum?", 60, len) == []


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


@pytest.mark.parametrize("text", ["</memories>", "</MEMORIES >", "< / memories>", "<Memories>", "<user_profile>"])
def test_no_spelling_of_a_delimiter_gets_through(text: str) -> None:
    assert escape(text).startswith("<\\")
