"""Which note takes the place of which."""

import pytest

from everthread.memory.consolidation.conflicts import relation
from everthread.state import Note


def note(text: str, **values: object) -> Note:
    return Note.model_validate({"id": text, "text": text, "date": "2026-01-01", **values})


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Prefers aisle seats.", "Prefers window seats."),
        ("Seat: aisle.", "Prefers window seats."),
        ("Avoids window seats.", "Prefers window seats."),
        ("Prefers aisle seats, not window seats.", "Prefers window seats, not aisle seats."),
        ("Lives in Berlin.", "Moved to Munich."),
        ("Works at Acme.", "Works for Globex now."),
        ("Is vegetarian.", "Is vegan now."),
        ("Budget is 900 EUR.", "Budget is 1,200 EUR."),
        ("The weekly target is 1,200 words.", "The weekly target was raised to 1,350 words."),
        ("The deadline is on May 20.", "The deadline was moved to May 25."),
        ("Hotel area: north.", "Hotel area: any."),
        ("The cuisine of the restaurant is Thai.", "The cuisine of the restaurant is Greek."),
        ("Prefers Thai for the restaurant food.", "Prefers Greek for the restaurant food."),
        ("Hates red-eye flights.", "Likes red-eye flights."),
        ("Eats meat.", "No longer eats meat."),
        ("Wants 4 tickets.", "Wants 5 tickets."),
        ("Prefers morning flights.", "Prefers evening flights."),
        ("Usually stays at the Meridian.", "Usually stays at the Aurora now."),
        ("The budget is $50.", "Changed the budget from $50 to $60."),
        ("North is the user's choice for the hotel area.", "South is the user's choice for the hotel area."),
        ("Always flies business class.", "Flies economy these days."),
    ],
)
def test_another_value_of_one_subject_replaces(old: str, new: str) -> None:
    assert relation(note(old), note(new)) == "replaces"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Likes sushi.", "Likes pizza."),
        ("Allergic to nuts.", "Allergic to shellfish."),
        ("Speaks German.", "Speaks French."),
        ("Usually stays at the Meridian.", "Usually stays at the Aurora."),
        ("Plays chess.", "Plays golf now."),
        ("Rome is the user's favorite for the honeymoon city.", "Rome is too far for the user."),
        ("Rome is far.", "Rome is expensive."),
        ("Prefers aisle seats.", "Prefers vegetarian meals."),
        ("Prefers aisle seats on flights.", "Prefers vegetarian meals on flights."),
        ("Prefers aisle seats on long flights.", "Prefers window seats on short flights."),
        ("Hotel area: north.", "Restaurant area: east."),
        ("Check in date: May 3.", "Check out date: May 9."),
        ("Prefers 2 for the number of hotel guests.", "Prefers 5 for the number of hotel nights."),
        ("Flight budget is 900 EUR.", "Hotel budget is 200 EUR."),
        ("Budget is 900 EUR.", "A budget hotel is fine."),
        ("Wife is vegetarian.", "Is vegan."),
        ("Likes window seats.", "Hates middle seats."),
        ("Works from home on Fridays.", "Works at Acme."),
        ("Met Ann on May 3 at 10:00.", "Has dinner with Bob on May 9 at 19:00."),
        ("Never book before I approve.", "Prefers to book early."),
        ("Improved at chess from 60% to 85%.", "Improved at quizzes from 75% to 92%."),
    ],
)
def test_notes_on_different_things_are_both_kept(old: str, new: str) -> None:
    assert relation(note(old), note(new)) is None


def test_a_liking_beside_a_preference_is_a_doubt() -> None:
    assert relation(note("Prefers aisle seats."), note("Likes window seats.")) == "doubt"


def test_a_subject_that_is_known_but_not_certain_is_a_doubt() -> None:
    old, new = note("Wants a sauna.", subject="wellness"), note("Wants a massage.", subject="wellness")

    assert relation(old, new) == "doubt"
