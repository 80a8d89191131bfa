"""Read the day or the period that an English sentence speaks of."""

import calendar
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Literal

MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

_NUMBERS = {
    word: number
    for number, word in enumerate("zero one two three four five six seven eight nine ten eleven twelve".split())  # noqa: SIM905
} | {"a": 1, "an": 1, "couple of": 2, "a couple of": 2}


@dataclass(frozen=True)
class Day:
    """A day that a text names."""

    start: int
    """Where the phrase begins in the text."""
    end: int
    """Where the phrase ends, excluded."""
    phrase: str
    day: date | None
    """None when the phrase fits no day, or two."""
    vague: bool = False
    """Whether the phrase left a choice, so that the assumption must be said."""
    rolls: Literal["year", "week"] | None = None
    """What may be added when the day comes before the start of its period."""
    problem: str = ""
    """What to ask when `day` is None."""


@dataclass(frozen=True)
class Period:
    """The first and last day that a text names, and the text without them."""

    start: Day | None
    end: Day | None
    rest: str
    """The text with a semicolon in place of every day, so that no place is read out of one."""


def number_of(word: str) -> int | None:
    """Read a small number, in digits or as an English word."""
    word = " ".join(word.lower().split())
    return int(word) if word.isdecimal() and len(word) < 5 else _NUMBERS.get(word)


def spoken(day: date) -> str:
    """Write a day as people say it, in English whatever the locale."""
    return f"{WEEKDAYS[day.weekday()]} {day.day} {MONTHS[day.month - 1]} {day.year}"


def days_in(text: str, today: date) -> list[Day]:
    """Find the days that a text names, in order and without overlap.

    A day without a year is the next one from today on. Where the wording leaves a choice ("next
    month"), the middle or the beginning is taken and the day is marked as vague.
    """
    found: list[Day] = []
    for pattern, read in _RULES:
        for match in pattern.finditer(text):
            if not any(match.start() < day.end and day.start < match.end() for day in found):
                day = read(match, today)
                found += [replace(day, start=match.start(), end=match.end(), phrase=match.group().strip())]
    return sorted(found, key=lambda day: day.start)


def period_in(text: str, today: date) -> Period:
    """Read the first two days of a text as a period; one day after "return" or "until" is its end.

    "for five nights" after a start gives the end as well.
    """
    text = _expanded(text)
    found = days_in(text, today)
    rest = text
    for day in reversed(found):
        rest = f"{rest[: day.start]} ; {rest[day.end :]}"
    start = found[0] if found else None
    end = found[1] if len(found) > 1 else None
    if start is not None and end is None and _ENDING.search(text[: start.start]):
        start, end = None, start
    if start and start.day and end is None and (stay := _STAY.search(rest)):
        end = _after_stay(stay, start.day)
    if start and end:
        end = _not_before(end, start)
    return Period(start, end, _STAY.sub(" ; ", rest))


_ENDING = re.compile(
    r"\b(?:return(?:ing|s)?|back|until|till|check(?:ing)?[ -]out|drop(?:ping)?[ -]?off)\W+(?:\w+\W+)?$", re.IGNORECASE
)
_COUNT = r"(\d{1,3}|an?|(?:a )?couple of|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)"
_STAY = re.compile(rf"\b(?:for|after) {_COUNT}[ -](night|day|week)s?\b|\b{_COUNT}[ -](night)s?\b", re.IGNORECASE)
_MONTH = (
    r"(jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)"
)
_PART = r"(early|mid|late|beginning of|start of|middle of|end of)[ -]+"
_DAY = r"(\d{1,2})(?:st|nd|rd|th)?"
_SPAN = r"\s*(?:-|–|—|to|until|till|and|through)\s*"


def _expanded(text: str) -> str:
    """Give both ends of "3-7 May" and "May 3-7" their month."""
    text = re.sub(rf"\b{_DAY}{_SPAN}{_DAY}\s+(?:of\s+)?{_MONTH}\b", r"\1 \3 to \2 \3", text, flags=re.IGNORECASE)
    return re.sub(rf"\b{_MONTH}\s+{_DAY}{_SPAN}{_DAY}\b(?!\s*{_MONTH})", r"\1 \2 to \1 \3", text, flags=re.IGNORECASE)


def _after_stay(match: re.Match[str], start: date) -> Day | None:
    count = number_of(match[1] or match[3])
    if count is None:
        return None
    unit = (match[2] or match[4]).lower()
    return Day(match.start(), match.end(), match.group(), _shifted(start, count, unit))


def _not_before(end: Day, start: Day) -> Day:
    if not end.day or not start.day or end.day >= start.day:
        return end
    if end.rolls == "week":
        ahead = (end.day.weekday() - start.day.weekday()) % 7 or 7
        return replace(end, day=start.day + timedelta(days=ahead))
    return replace(end, day=_dated(start.day.year + 1, end.day.month, end.day.day)) if end.rolls == "year" else end


def _month(name: str) -> int:
    return next(place for place, month in enumerate(MONTHS, start=1) if month.lower().startswith(name.lower()[:3]))


def _dated(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _shifted(start: date, count: int, unit: str) -> date | None:
    """Go some days, weeks or months ahead; the end of a month stays within it."""
    try:
        if unit.startswith("month"):
            years, month = divmod(start.month - 1 + count, 12)
            last = calendar.monthrange(start.year + years, month + 1)[1]
            return date(start.year + years, month + 1, min(start.day, last))
        return start + timedelta(days=count * (7 if unit.startswith("week") else 1))
    except (ValueError, OverflowError):
        return None


def _found(day: date | None, *, vague: bool = False, rolls: Literal["year", "week"] | None = None) -> Day:
    problem = "" if day else "That date does not exist. Which date do you mean?"
    return Day(0, 0, "", day, vague, rolls, problem)


def _upcoming(year: str | None, month: int, day: int, today: date) -> Day:
    if year:
        return _found(_dated(int(year), month, day))
    years = range(today.year, today.year + 9)  # 29 February may be eight years away
    dated = (_dated(one, month, day) for one in years)
    return _found(next((one for one in dated if one and one >= today), None), rolls="year")


def _iso(match: re.Match[str], today: date) -> Day:
    return _found(_dated(int(match[1]), int(match[2]), int(match[3])))


def _dotted(match: re.Match[str], today: date) -> Day:
    return _found(_dated(int(match[3]), int(match[2]), int(match[1])))


def _slashed(match: re.Match[str], today: date) -> Day:
    first, second = int(match[1]), int(match[2])
    year = match[3] if not match[3] or len(match[3]) == 4 else f"20{match[3]}"
    if first <= 12 and second <= 12 and first != second:
        problem = (
            f"Is {match.group().strip()} {first} {MONTHS[second - 1]} or {second} {MONTHS[first - 1]}? "
            "Please write it as YYYY-MM-DD."
        )
        return Day(0, 0, "", None, problem=problem)
    day, month = (second, first) if first <= 12 < second else (first, second)
    return _upcoming(year, month, day, today)


def _day_month(match: re.Match[str], today: date) -> Day:
    return _upcoming(match[3], _month(match[2]), int(match[1]), today)


def _month_day(match: re.Match[str], today: date) -> Day:
    return _upcoming(match[3], _month(match[1]), int(match[2]), today)


_PARTS = {"early": 5, "beginning": 5, "start": 5, "late": 25, "end": 25}


def _within(year: int, month: int, part: str | None, today: date) -> Day:
    """Take the middle of a month, or the part of it that was named, but never a day that is over."""
    wanted = _dated(year, month, _PARTS.get((part or "mid").lower().split()[0], 15))
    if wanted and wanted < today and (year, month) == (today.year, today.month):
        last = date(year, month, calendar.monthrange(year, month)[1])
        wanted = min(today + timedelta(days=1), last)
    return _found(wanted, vague=True)


def _named_month(match: re.Match[str], today: date) -> Day:
    month = _month(match[2])
    year = int(match[3]) if match[3] else today.year + (month < today.month)
    return _within(year, month, match[1], today)


def _relative_month(match: re.Match[str], today: date) -> Day:
    ahead = match[2].lower() == "next"
    first = _shifted(today.replace(day=1), 1 if ahead else 0, "month") or today
    return _within(first.year, first.month, match[1], today)


def _near(match: re.Match[str], today: date) -> Day:
    word = match.group().lower()
    return _found(_shifted(today, 2 if "after" in word else 1 if "tomorrow" in word else 0, "day"))


def _ahead(match: re.Match[str], today: date) -> Day:
    count, unit = number_of(match[1] or match[3]), (match[2] or match[4]).lower()
    return _found(_shifted(today, count or 0, unit), vague=not unit.startswith("day"))


def _weekday(match: re.Match[str], today: date) -> Day:
    """Take the first such day after today; "next" is the one of the calendar week to come."""
    place = [name.lower() for name in WEEKDAYS].index(match[2].lower())
    if (match[1] or "").lower() == "next":
        monday = today + timedelta(days=7 - today.weekday())
        return _found(monday + timedelta(days=place), vague=True, rolls="week")
    return _found(today + timedelta(days=(place - today.weekday()) % 7 or 7), rolls="week")


def _week(match: re.Match[str], today: date) -> Day:
    following, weekend = match[1].lower() == "next", match[2].lower() != "week"
    monday = today - timedelta(days=today.weekday()) + timedelta(days=7 if following else 0)
    wanted = monday + timedelta(days=5 if weekend else 0)
    return _found(max(wanted, today + timedelta(days=1)), vague=True)


# Most specific first: a phrase that one rule has taken is closed to the later ones.
_RULES: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], date], Day]], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), read)
    for pattern, read in (
        (r"\b(\d{4})-(\d{1,2})-(\d{1,2})\b", _iso),
        (r"\b(\d{1,2})\.(\d{1,2})\.(\d{4})\b", _dotted),
        (r"\b(?!24/7\b)(\d{1,2})/(\d{1,2})(?:/(\d{4}|\d{2}))?\b", _slashed),
        (rf"\b{_DAY}\s+(?:of\s+)?{_MONTH}\b\.?(?:,?\s+(\d{{4}})\b)?", _day_month),
        (rf"\b{_MONTH}\b\.?\s+(?:the\s+)?{_DAY}\b(?:,?\s+(\d{{4}})\b)?", _month_day),
        (
            rf"\b(?:{_PART}|(?:in|during|of|this|next|around|for)\s+)"
            rf"(?:in\s+)?{_MONTH}\b(?:,?\s+(\d{{4}})\b)?",
            _named_month,
        ),
        (rf"()\b{_MONTH}\s+(\d{{4}})\b", _named_month),
        (
            rf"\b(?:{_PART})?(?:the\s+)?(next|this|the)\s+month\b",
            _relative_month,
        ),
        (r"\bday after tomorrow\b|\btomorrow\b|\btoday\b|\btonight\b", _near),
        (rf"\bin {_COUNT}[ -](day|week|month)s?\b|\b{_COUNT} (day|week|month)s? from (?:now|today)\b", _ahead),
        (rf"\b(?:(next|this|coming)\s+)?({'|'.join(WEEKDAYS)})\b", _weekday),
        (r"\b(next|this|the)\s+(weekend|week)\b", _week),
    )
)
