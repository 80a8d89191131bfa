"""Days and periods in English sentences, reckoned from Saturday 21 November 2026."""

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everthread.agents.offline.dates import days_in, number_of, period_in, spoken

TODAY = date(2026, 11, 21)


def day(text: str, today: date = TODAY) -> str:
    """Return the only day of a text, with a tilde when it is an assumption."""
    (found,) = days_in(text, today)
    return ("~" if found.vague else "") + (found.day.isoformat() if found.day else "?")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("on 2027-03-04", "2027-03-04"),
        ("on 4.3.2027", "2027-03-04"),
        ("on 25/12/2026", "2026-12-25"),
        ("on 12/25/2026", "2026-12-25"),
        ("12 May", "2027-05-12"),
        ("the 12th of May 2028", "2028-05-12"),
        ("May 12", "2027-05-12"),
        ("December 3rd, 2027", "2027-12-03"),
        ("on 21 november", "2026-11-21"),
        ("on 20 November", "2027-11-20"),
        ("29 February", "2028-02-29"),
        ("today", "2026-11-21"),
        ("tomorrow morning", "2026-11-22"),
        ("the day after tomorrow", "2026-11-23"),
        ("in three days", "2026-11-24"),
        ("10 days from now", "2026-12-01"),
        ("on Monday", "2026-11-23"),
        ("this saturday", "2026-11-28"),
    ],
)
def test_exact_days_are_read_as_written(text: str, expected: str) -> None:
    assert day(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("next month", "~2026-12-15"),
        ("early next month", "~2026-12-05"),
        ("at the end of next month", "~2026-12-25"),
        ("this month", "~2026-11-22"),
        ("in May", "~2027-05-15"),
        ("late november", "~2026-11-25"),
        ("May 2028", "~2028-05-15"),
        ("next Friday", "~2026-11-27"),
        ("next week", "~2026-11-23"),
        ("this weekend", "~2026-11-22"),
        ("next weekend", "~2026-11-28"),
        ("in two weeks", "~2026-12-05"),
        ("in a month", "~2026-12-21"),
    ],
)
def test_vague_days_are_marked_as_assumptions(text: str, expected: str) -> None:
    assert day(text) == expected


def test_next_friday_is_the_one_of_the_next_calendar_week() -> None:
    monday = date(2026, 11, 23)

    assert (day("on Friday", monday), day("next Friday", monday)) == ("2026-11-27", "~2026-12-04")


def test_next_month_crosses_the_year() -> None:
    assert day("next month", date(2026, 12, 31)) == "~2027-01-15"


@pytest.mark.parametrize("text", ["I may go", "we march on", "open 24/7", "option 2", "room 1205", "flight 100"])
def test_words_and_numbers_that_are_no_dates_stay_alone(text: str) -> None:
    assert days_in(text, TODAY) == []


@pytest.mark.parametrize("text", ["on 31 April", "on 2027-02-30", "31.11.2027"])
def test_a_day_that_does_not_exist_becomes_a_question(text: str) -> None:
    (found,) = days_in(text, TODAY)

    assert found.day is None
    assert "does not exist" in found.problem


def test_a_day_that_may_be_two_becomes_a_question() -> None:
    (found,) = days_in("on 4/5/2027", TODAY)

    assert found.day is None
    assert "4 May or 5 April" in found.problem


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("from 3 May to 7 May", "2027-05-03", "2027-05-07"),
        ("3-7 May", "2027-05-03", "2027-05-07"),
        ("between 3 and 7 May", "2027-05-03", "2027-05-07"),
        ("May 3 to 7", "2027-05-03", "2027-05-07"),
        ("2027-05-03 to 2027-05-07", "2027-05-03", "2027-05-07"),
        ("on 30 December for five nights", "2026-12-30", "2027-01-04"),
        ("tomorrow for a week", "2026-11-22", "2026-11-29"),
        ("from 28 December to 3 January", "2026-12-28", "2027-01-03"),
        ("on 10 December, back on Monday", "2026-12-10", "2026-12-14"),
        ("on 12 May", "2027-05-12", None),
        ("returning on 12 May", None, "2027-05-12"),
        ("some day", None, None),
    ],
)
def test_periods_have_a_start_and_an_end(text: str, start: str | None, end: str | None) -> None:
    period = period_in(text, TODAY)

    found = [one.day.isoformat() if one and one.day else None for one in (period.start, period.end)]
    assert found == [start, end]


def test_the_rest_of_a_text_holds_no_date() -> None:
    rest = period_in("from Oslo to Rome from 3 to 7 May for 2 nights", TODAY).rest

    assert "May" not in rest
    assert "nights" not in rest
    assert "from Oslo to Rome" in rest


@pytest.mark.parametrize(("word", "number"), [("3", 3), ("a", 1), ("Ten", 10), ("many", None), ("12345", None)])
def test_numbers_are_read_as_digits_or_words(word: str, number: int | None) -> None:
    assert number_of(word) == number


def test_days_are_spoken_in_english() -> None:
    assert spoken(date(2026, 12, 15)) == "Tuesday 15 December 2026"


@given(st.text(max_size=200), st.dates(min_value=date(1900, 1, 1), max_value=date(9998, 12, 31)))
def test_any_text_on_any_day_is_read_without_an_error(text: str, today: date) -> None:
    period = period_in(f"{text} next month returning in two weeks {text}", today)

    assert period.start is not None


@given(st.dates(min_value=date(2000, 1, 1), max_value=date(2900, 1, 1)), st.integers(0, 364))
def test_a_day_and_month_is_never_read_as_past(today: date, ahead: int) -> None:
    meant = today + timedelta(days=ahead)

    (found,) = days_in(f"on {meant.day} {meant:%B}", today)

    assert found.day is not None
    assert (found.day.day, found.day.month) == (meant.day, meant.month)
    assert found.day >= today
