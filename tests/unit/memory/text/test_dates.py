"""Which days a text names."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everthread.memory.text.dates import Span, count_of, dates_in

TODAY = date(2025, 6, 18)  # a Wednesday


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("on 2025-03-04?", "2025-03-04", "2025-03-04"),
        ("on 2025/3/4", "2025-03-04", "2025-03-04"),
        ("on 4.3.2025", "2025-03-04", "2025-03-04"),
        ("on 3/24", "2025-03-24", "2025-03-24"),
        ("on March 4, 2024", "2024-03-04", "2024-03-04"),
        ("on March 4th", "2025-03-04", "2025-03-04"),
        ("on the 4th of March 2025", "2025-03-04", "2025-03-04"),
        ("on 24 December", "2024-12-24", "2024-12-24"),
        ("in March", "2025-03-01", "2025-03-31"),
        ("in December", "2024-12-01", "2024-12-31"),
        ("in early March", "2025-03-01", "2025-03-10"),
        ("last June", "2024-06-01", "2024-06-30"),
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
        ("on 29 February", "2024-02-29", "2024-02-29"),
    ],
)
def test_a_date_of_the_past_is_read_against_today(text: str, first: str, last: str) -> None:
    (mention,) = dates_in(f"What did I ask {text}", TODAY)

    assert mention.span == Span(date.fromisoformat(first), date.fromisoformat(last))


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("March 4", "2026-03-04", "2026-03-04"),
        ("tomorrow", "2025-06-19", "2025-06-19"),
        ("the day after tomorrow", "2025-06-20", "2025-06-20"),
        ("Friday", "2025-06-20", "2025-06-20"),
        ("Wednesday", "2025-06-25", "2025-06-25"),
        ("next Friday", "2025-06-27", "2025-06-27"),
        ("in ten days", "2025-06-28", "2025-06-28"),
        ("two days from now", "2025-06-20", "2025-06-20"),
        ("in May", "2026-05-01", "2026-05-31"),
        ("next June", "2026-06-01", "2026-06-30"),
        ("next month", "2025-07-01", "2025-07-31"),
        ("the end of next month", "2025-07-21", "2025-07-31"),
        ("this weekend", "2025-06-21", "2025-06-22"),
        ("at the end of the month", "2025-06-21", "2025-06-30"),
        ("on the weekend", "2025-06-21", "2025-06-22"),
        ("next year", "2026-01-01", "2026-12-31"),
    ],
)
def test_a_date_of_the_future_is_read_against_today(text: str, first: str, last: str) -> None:
    (mention,) = dates_in(f"I leave {text}", TODAY, prefer="future")

    assert mention.span == Span(date.fromisoformat(first), date.fromisoformat(last))


@pytest.mark.parametrize(
    "text",
    [
        "order 2025-0001",
        "I may march on",
        "room 12 of 20",
        "0000-13-01",
        "open 24/7",
        "see you Friday",
        "soon",
        "the week before",
    ],
)
def test_what_is_no_date_of_the_past_is_left_alone(text: str) -> None:
    assert not [mention for mention in dates_in(text, TODAY) if mention.span]


def test_a_day_that_does_not_exist_has_no_span() -> None:
    (mention,) = dates_in("back on 30 February 2025", TODAY)

    assert (mention.phrase, mention.span, mention.readings) == ("30 February 2025", None, ())


def test_two_readings_of_a_day_are_both_given() -> None:
    (mention,) = dates_in("on 3/4", TODAY)

    assert (mention.span, mention.readings) == (None, (date(2025, 3, 4), date(2025, 4, 3)))


def test_mentions_tell_where_they_stand() -> None:
    text = "from 3 May to yesterday"

    assert [text[one.start : one.end] for one in dates_in(text, TODAY)] == ["3 May", "yesterday"]


def test_a_span_is_searched_for_by_days_or_by_months() -> None:
    assert Span(date(2025, 3, 4), date(2025, 3, 5)).words() == "2025-03-04 2025-03-05"
    assert Span(date(2024, 12, 1), date(2025, 2, 3)).words() == "2024-12 2025-01 2025-02"


@pytest.mark.parametrize(("word", "number"), [("12", 12), ("An", 1), ("a couple of", 2), ("seven", 7), ("many", None)])
def test_small_numbers_are_read(word: str, number: int | None) -> None:
    assert count_of(word) == number


@given(st.text(st.sampled_from("0123456789/-. aprilmyondstewk"), max_size=30), st.dates())
def test_any_text_and_day_can_be_read(text: str, today: date) -> None:
    for mention in [*dates_in(text, today), *dates_in(text, today, prefer="future")]:
        assert text[mention.start : mention.end].strip() == mention.phrase
