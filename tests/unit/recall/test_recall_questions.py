"""What recall reads in a question: words, days, speakers, wishes."""

from datetime import date

import pytest

from everthread.memory.recall import Question
from everthread.memory.recall.dates import Span, spans_of

TODAY = date(2025, 6, 18)  # a Wednesday


def day(text: str) -> Span:
    return Span(date.fromisoformat(text), date.fromisoformat(text))


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("on 2025-03-04?", "2025-03-04", "2025-03-04"),
        ("on 2025/3/4", "2025-03-04", "2025-03-04"),
        ("on March 4, 2024", "2024-03-04", "2024-03-04"),
        ("on March 4th", "2025-03-04", "2025-03-04"),
        ("on the 4th of March 2025", "2025-03-04", "2025-03-04"),
        ("on 24 December", "2024-12-24", "2024-12-24"),
        ("in March", "2025-03-01", "2025-03-31"),
        ("in December", "2024-12-01", "2024-12-31"),
        ("in Feb 2024", "2024-02-01", "2024-02-29"),
        ("during 2023", "2023-01-01", "2023-12-31"),
        ("yesterday", "2025-06-17", "2025-06-17"),
        ("the day before yesterday", "2025-06-16", "2025-06-16"),
        ("last Wednesday", "2025-06-11", "2025-06-11"),
        ("on Monday", "2025-06-16", "2025-06-16"),
        ("last week", "2025-06-09", "2025-06-15"),
        ("last month", "2025-05-01", "2025-05-31"),
        ("last year", "2024-01-01", "2024-12-31"),
        ("three days ago", "2025-06-15", "2025-06-15"),
        ("2 months ago", "2025-04-01", "2025-04-30"),
    ],
)
def test_a_date_is_read_against_the_day_of_the_question(text: str, first: str, last: str) -> None:
    spans, _ = spans_of(f"What did I ask {text}", TODAY)

    assert spans == [Span(date.fromisoformat(first), date.fromisoformat(last))]


@pytest.mark.parametrize("text", ["on 2025-02-30", "order 2025-0001", "I may march on", "room 12 of 20", "0000-13-01"])
def test_what_is_no_date_is_left_alone(text: str) -> None:
    assert spans_of(text, TODAY) == ([], text)


def test_a_date_is_searched_for_as_an_iso_day_and_not_word_by_word() -> None:
    question = Question.read("What did I complain about on March 4?", TODAY)

    assert question.query == "complain 2025-03-04"


def test_a_long_span_is_searched_for_by_its_months() -> None:
    assert Question.read("refunds during 2024", TODAY).query.split()[1:4] == ["2024-01", "2024-02", "2024-03"]


def test_words_without_a_subject_are_not_searched_for() -> None:
    assert Question.read("Thanks, what is it then?", TODAY).query == ""


def test_a_short_follow_up_takes_its_words_from_the_message_before() -> None:
    question = Question.read("And the price?", TODAY, before="Which hotel did you find in Lisbon?")

    assert question.words == ("price", "hotel", "find", "lisbon")


def test_a_long_message_is_searched_for_by_its_first_words_only() -> None:
    question = Question.read(" ".join(f"word{number}" for number in range(500)), TODAY)

    assert len(question.words) == 48


def test_the_name_of_a_speaker_is_no_search_word() -> None:
    question = Question.read("What did Nora's sister study?", TODAY).among(["Nora", "Ben"])

    assert question.words == ("sister", "study")
    assert question.speakers == {"nora"}


def test_a_question_of_names_alone_keeps_them() -> None:
    question = Question.read("Nora?", TODAY).among(["Nora"])

    assert question.query == "nora"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Can you recommend a hotel?", True),
        ("Where should I eat tonight?", True),
        ("What are some things to do in Oslo?", True),
        ("Which hotel did I book in Oslo?", False),
        ("When did Nora move?", False),
    ],
)
def test_a_wish_for_advice_is_told_from_a_question_of_fact(text: str, wanted: bool) -> None:
    assert Question.read(text, TODAY).asks_advice is wanted
