"""What a user says about themselves becomes a note; what they ask for does not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everthread.agents.offline.statements import keywords_of, statements_in, third_person


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("Remember that I am vegetarian.", "Is vegetarian."),
        ("Please remember: I don't check bags", "Does not check bags."),
        ("I prefer aisle seats", "Prefers aisle seats."),
        ("From now on I want hotels with a gym", "Wants hotels with a gym."),
        ("I'm allergic to peanuts!", "Is allergic to peanuts."),
        ("I never fly at night.", "Never flies at night."),
        ("I usually take my own pillow", "Usually takes their own pillow."),
        ("My favourite airline is Northwind.", "Favourite airline is Northwind."),
        ("I live in Lisbon now", "Lives in Lisbon now."),
        ("I love walkable areas", "Loves walkable areas."),
        ("Can you remember that my partner is vegan?", "Partner is vegan."),
        ("Remember to use the metric system", "Asks to use the metric system."),
        ("Actually, I prefer window seats now", "Prefers window seats now."),
        ("I am no longer vegetarian", "Is no longer vegetarian."),
        ("I'm allergic to nuts, please remember that.", "Is allergic to nuts."),
        ("Remember that I want eco-friendly hotels", "Wants eco-friendly hotels."),
        ("Please don't book before I approve", "Don't book before I approve."),
        ("Do not book anything until I confirm.", "Do not book anything until I confirm."),
        ("Wait for my approval before you book.", "Wait for my approval before you book."),
        ("No bookings before I say yes", "No bookings before I say yes."),
        ("Please check with me before you book anything.", "Check with me before you book anything."),
    ],
)
def test_lasting_statements_become_durable_notes(text: str, note: str) -> None:
    (found,), rest = statements_in(text)

    assert (found.text, found.scope, rest) == (note, "durable", "")


@pytest.mark.parametrize(
    ("text", "note"),
    [
        (
            "This time, I like to have a window seat. I really want to sleep.",
            "This trip only: prefers a window seat (wants to sleep).",
        ),
        ("For this trip I prefer a quiet room", "This trip only: prefers a quiet room."),
        ("I'd like a high floor room", "This trip only: prefers a high floor room."),
        ("I don't want any layovers", "This trip only: does not want any layovers."),
        ("My budget is 800 dollars", "This trip only: budget is 800 dollars."),
        (
            "I want an aisle seat because I want to walk",
            "This trip only: wants an aisle seat because they want to walk.",
        ),
        ("Remember that this time I travel with my mother", "This trip only: travels with their mother."),
    ],
)
def test_wishes_for_this_time_become_session_notes(text: str, note: str) -> None:
    (found,), _ = statements_in(text)

    assert (found.text, found.scope) == (note, "session")


@pytest.mark.parametrize(
    "text",
    [
        "Book me a flight to Paris next month.",
        "I want to fly to Rome",
        "I'd like a hotel in Oslo",
        "I like the first one",
        "I prefer option 2",
        "I love it, thanks!",
        "Forget that I am vegetarian",
        "I forgot my bag and my passport is gone",
        "Do you know my preferences?",
        "Do you remember me?",
        "Do you remember that I am vegetarian?",
        "What do I prefer?",
        "yes",
        "",
    ],
)
def test_requests_questions_and_choices_are_no_notes(text: str) -> None:
    found, rest = statements_in(text)

    assert found == []
    assert rest == text


def test_two_statements_in_a_sentence_become_two_notes() -> None:
    found, _ = statements_in("I usually take the aisle, but this time I want a window seat")

    assert [(one.text, one.scope) for one in found] == [
        ("Usually takes the aisle.", "durable"),
        ("This trip only: wants a window seat.", "session"),
    ]


def test_the_rest_of_a_message_is_left_for_others() -> None:
    found, rest = statements_in("I prefer nonstop flights. Find me one to Oslo tomorrow.")

    assert [one.text for one in found] == ["Prefers nonstop flights."]
    assert rest == "Find me one to Oslo tomorrow."


@pytest.mark.parametrize(
    ("text", "notes"),
    [
        ("I always get error 809", []),
        ("I never receive mail", []),
        ("I like my laptop but it crashes", []),
        ("I prefer e-mail to phone calls", ["Prefers e-mail to phone calls."]),
        ("Remember that I work on Linux", ["Works on Linux."]),
        ("For this case I prefer phone calls", ["This case only: prefers phone calls."]),
        ("From now on write to me in short sentences", ["Write to them in short sentences."]),
    ],
)
def test_symptoms_are_no_habits(text: str, notes: list[str]) -> None:
    found, _ = statements_in(text, cautious=True)

    assert [one.text for one in found] == notes


@pytest.mark.parametrize(
    ("text", "keywords"),
    [
        ("Prefers a window seat", ("seat", "window")),
        ("Is vegetarian", ("vegetarian", "meal")),
        ("Works with large spreadsheets", ("large", "spreadsheets")),
        ("Met Ada in Paris", ("preference",)),
        ("Is allergic to peanuts at breakfast meals", ("allergy", "meal")),
    ],
)
def test_keywords_are_topics_or_content_words(text: str, keywords: tuple[str, ...]) -> None:
    assert keywords_of(text) == keywords


@pytest.mark.parametrize(
    ("clause", "person"),
    [
        ("I can't sleep when I'm cold", "Cannot sleep when they are cold"),
        ("I've got two kids", "Has two kids"),
        ("I would rather pay more", "Would rather pay more"),
        ("I carry my own bag", "Carries their own bag"),
        ("no red-eyes for me", "No red-eyes for them"),
        ("I moved to Porto", "Moved to Porto"),
    ],
)
def test_the_first_person_becomes_the_third(clause: str, person: str) -> None:
    assert third_person(clause) == person


@given(st.text(max_size=500), st.booleans())
def test_every_note_is_short_and_has_keywords(text: str, cautious: bool) -> None:
    found, _ = statements_in(f"Remember that {text}. This time I want {text} seats. {text}", cautious=cautious)

    for one in found:
        assert 3 < len(one.text) < 400 + len(text)
        assert 1 <= len(one.keywords) <= 3
        assert all(word == word.lower() and " " not in word for word in one.keywords)


def test_a_preference_that_takes_the_place_of_another_is_one_note() -> None:
    (found,), rest = statements_in("I don't like aisle seats anymore, I prefer window seats now")

    assert (found.text, found.scope) == ("Prefers window seats (no longer aisle seats).", "durable")
    assert rest == ""


@pytest.mark.parametrize(
    "text",
    [
        "Remember to call my mom tomorrow",
        "Remember: call my mom tomorrow",
        "Please remember that I have to call my mom on Monday",
        "Remind me to pay the bill",
    ],
)
def test_a_task_is_no_statement_about_the_user(text: str) -> None:
    assert statements_in(text)[0] == []


def test_the_scope_is_the_one_that_the_tool_will_keep() -> None:
    (found,), _ = statements_in("Remember that I am vegan today")

    assert found.scope == "session"
