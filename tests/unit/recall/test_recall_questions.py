"""What recall reads in a question: words, days, speakers, wishes."""

from datetime import date

import pytest

from everthread.memory.recall import Question

TODAY = date(2025, 6, 18)  # a Wednesday


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
