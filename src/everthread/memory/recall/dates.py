"""The days that a question names, against the day it is asked on."""

import calendar
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta

_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTH = "(?:" + "|".join(f"{name[:3]}(?:{name[3:]})?" if len(name) > 3 else name for name in _MONTHS) + "|sept)"
_ORDINAL = r"(?:st|nd|rd|th)?"
_COUNT = r"(?P<count>\d{1,3}|an?|one|two|three|four|five|six|seven|eight|nine|ten)"
_COUNTS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_LONGEST_LIST = 31
"""Days of a span that are named one by one in a query; a longer one is named by its months."""

_DATE = re.compile(
    r"(?<![\d-])(?P<y1>\d{4})[-/.](?P<m1>\d{1,2})[-/.](?P<d1>\d{1,2})(?!\d)"
    r"|(?<![\d-])(?P<y2>\d{4})-(?P<m2>\d{2})(?![\d-])"
    rf"|\b(?P<m3>{_MONTH})\.? (?:the )?(?P<d3>\d{{1,2}}){_ORDINAL}\b(?:,? (?P<y3>\d{{4}})\b)?"
    rf"|\b(?P<d4>\d{{1,2}}){_ORDINAL} (?:of )?(?P<m4>{_MONTH})\b\.?(?:,? (?P<y4>\d{{4}})\b)?"
    rf"|\b(?P<m5>{_MONTH})\.?,? (?P<y5>\d{{4}})\b"
    rf"|\b(?:in|during|since|of|last|this|early|late) (?P<m6>{_MONTH})\b(?!\.?,? (?:the )?\d)"
    r"|\b(?:in|during|of) (?P<y7>(?:19|20)\d{2})\b"
    r"|\b(?P<relative>the day before yesterday|yesterday|today|(?:last|this) (?:week|month|year))\b"
    rf"|\b{_COUNT} (?P<unit>day|week|month|year)s? ago\b"
    rf"|\b(?:last|on|this) (?P<weekday>{'|'.join(_WEEKDAYS)})\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Span:
    """Days from first to last, both included."""

    first: date
    last: date

    def holds(self, day: str) -> bool:
        """Tell whether an ISO day is in it."""
        return self.first.isoformat() <= day <= self.last.isoformat()

    def words(self) -> str:
        """Return the span as ISO days or months, for a search."""
        if (self.last - self.first).days < _LONGEST_LIST - 3:
            days = (self.first + timedelta(step) for step in range((self.last - self.first).days + 1))
            return " ".join(day.isoformat() for day in days)
        months = {(self.first.year, self.first.month): None}
        day = self.first
        while day <= self.last:
            months[(day.year, day.month)] = None
            day += timedelta(28)
        months[(self.last.year, self.last.month)] = None
        return " ".join(f"{year:04d}-{month:02d}" for year, month in months)


def spans_of(text: str, today: date) -> tuple[list[Span], str]:
    """Return the days that a text names, and the text without them.

    Args:
        text: a question.
        today: the day it is asked on; a date without a year is the last one of that name.
    """
    spans = []
    rest = []
    end = 0
    for match in _DATE.finditer(" ".join(text.split())):
        span = _span(match, today)
        if span is not None:
            spans.append(span)
            rest.append(match.string[end : match.start()])
            end = match.end()
    return list(dict.fromkeys(spans)), " ".join([*rest, " ".join(text.split())[end:]])


def _span(match: re.Match[str], today: date) -> Span | None:
    try:
        return next(_read(match, today), None)
    except (ValueError, OverflowError):  # no such day
        return None


def _read(match: re.Match[str], today: date) -> Iterator[Span]:
    found = {name: value for name, value in match.groupdict().items() if value}
    part = {name[0]: value for name, value in found.items() if len(name) == 2}
    if part:
        yield _calendar(part, today)
    elif "relative" in found:
        yield _relative(found["relative"].lower(), today)
    elif "unit" in found:
        yield _ago(found["count"].lower(), found["unit"].lower(), today)
    else:
        back = (today.weekday() - _WEEKDAYS.index(found["weekday"].lower())) % 7 or 7
        yield _days(today - timedelta(back))


def _calendar(part: dict[str, str], today: date) -> Span:
    if "m" not in part:
        return Span(date(int(part["y"]), 1, 1), date(int(part["y"]), 12, 31))
    month = int(part["m"]) if part["m"].isdigit() else _month(part["m"])
    year = int(part["y"]) if "y" in part else today.year
    first = date(year, month, int(part.get("d", 1)))
    if "y" not in part and first > today:
        first = first.replace(year=year - 1)
    return _days(first) if "d" in part else _whole_month(first)


def _relative(words: str, today: date) -> Span:
    if words.endswith("week"):
        monday = today - timedelta(today.weekday() + (7 if words.startswith("last") else 0))
        return Span(monday, monday + timedelta(6))
    if words.endswith("month"):
        first = today.replace(day=1)
        return _whole_month(first - timedelta(1) if words.startswith("last") else first)
    if words.endswith("year"):
        year = today.year - words.startswith("last")
        return Span(date(year, 1, 1), date(year, 12, 31))
    return _days(today - timedelta({"today": 0, "yesterday": 1}.get(words, 2)))


def _ago(count: str, unit: str, today: date) -> Span:
    number = int(count) if count.isdigit() else _COUNTS.index(count) + 1 if count in _COUNTS else 1
    if unit == "day":
        return _days(today - timedelta(number))
    if unit == "week":
        return Span(today - timedelta(7 * number + 3), today - timedelta(7 * number - 3))
    months = number * (12 if unit == "year" else 1)
    year, month = divmod(today.year * 12 + today.month - 1 - months, 12)
    return _whole_month(date(year, month + 1, 1))


def _month(name: str) -> int:
    return next(place for place, month in enumerate(_MONTHS, start=1) if month.startswith(name[:3].lower()))


def _days(day: date) -> Span:
    return Span(day, day)


def _whole_month(day: date) -> Span:
    return Span(day.replace(day=1), day.replace(day=calendar.monthrange(day.year, day.month)[1]))
