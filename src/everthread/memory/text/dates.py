"""The days and periods that a text names.

One grammar with two uses: `dates_in` reads a sentence against the day it was written on ("last Tuesday", "in two
weeks", "March 4"), and an index turns what is written out into words ("March 4" finds "2025-03-04").
"""

import calendar
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, Literal, cast

MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

NUMBER_WORDS = tuple("zero one two three four five six seven eight nine ten eleven twelve".split())  # noqa: SIM905
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sep(?:t(?:ember)?)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_GAP = r"\s{1,3}"
_COUNT = rf"(?:\d{{1,3}}|an?|(?:a )?couple of|{'|'.join(NUMBER_WORDS[1:])})"
_PART = r"early|mid|late|(?:beginning|start|middle|end) of"

# 2025-03-04, 2025/3/4, with a time as in ISO 8601, and 2025-03. What must not stand ahead of the year is looked at
# behind it: `re` skips fast to a pattern that begins with digits.
_IN_DIGITS = (
    r"(?P<y1>\d{4})(?<!\d\d\d\d\d)(?:"
    r"(?P<iso>(?P<cut>[-/.])(?P<m1>\d{1,2})(?P=cut)(?P<d1>\d{1,2})(?!\d)(?:t\d\d[\d:.]*(?:z|[+-]\d\d[\d:]*)?)?)"
    r"|(?<!-\d\d\d\d)-(?P<m2>\d{2})(?![\d-]))"
)
_WRITTEN_OUT = (
    rf"{_IN_DIGITS}|(?<!\d)(?:(?P<y3>\d{{4}})\s?年\s?)?(?P<m3>\d{{1,2}})\s?月(?:\s?(?P<d3>\d{{1,2}})\s?日)?"
    rf"|\b(?P<m4>{_MONTH})\b\.?{_GAP}(?:the )?(?P<d4>{_DAY})\b(?:,?{_GAP}(?P<y4>\d{{4}})\b)?"
    rf"|\b(?P<d5>{_DAY}){_GAP}(?:of{_GAP})?(?P<m5>{_MONTH})\b\.?(?:,?{_GAP}(?P<y5>\d{{4}})\b)?"
    rf"|\b(?P<m6>{_MONTH})\b\.?,?{_GAP}(?P<y6>\d{{4}})\b"
)
_RELATIVE = (
    r"\b(?P<d7>\d{1,2})\.(?P<m7>\d{1,2})\.(?P<y7>\d{4})\b"
    r"|\b(?!24/7\b)(?P<slash1>\d{1,2})/(?P<slash2>\d{1,2})(?:/(?P<y8>\d{4}|\d\d))?\b"
    rf"|\b(?:(?P<part>{_PART})[ -]+|(?:in|during|since|of|around|for|until|from) |(?P<which>last|this|next) )"
    rf"(?:in )?(?P<m9>{_MONTH})\b(?!\.?,? (?:the )?\d)"
    r"|\b(?:in|during|of) (?P<y9>(?:19|20)\d{2})\b"
    r"|\b(?P<near>the day before yesterday|day after tomorrow|yesterday|today|tonight|tomorrow)\b"
    rf"|\b(?P<ago>{_COUNT})[ -](?P<ago_unit>day|week|month|year)s? ago\b"
    rf"|\bin (?P<ahead>{_COUNT})[ -](?P<ahead_unit>day|week|month)s?\b(?! of\b)"
    rf"|\b(?P<from_now>{_COUNT}) (?P<from_now_unit>day|week|month)s? from (?:now|today)\b"
    rf"|\b(?:(?P<lead>last|next|this|on|coming) )?(?P<weekday>{'|'.join(WEEKDAYS)})\b"
    rf"|\b(?:(?P<part2>{_PART})[ -]+(?:the )?)?"
    # "The week" names none, but "the weekend" and "the end of the week" do.
    r"(?P<which2>last|this|next|the(?= weekend\b)|(?(part2)the|(?!))) (?P<unit>weekend|week|month|year)\b"
)
_DIGITS = re.compile(_IN_DIGITS, re.IGNORECASE)
_DATE = re.compile(_WRITTEN_OUT, re.IGNORECASE)
_MENTION = re.compile(f"{_WRITTEN_OUT}|{_RELATIVE}", re.IGNORECASE)
_MONTH_ALONE = re.compile(
    r"\b(january|february|april|june|july|august|september|october|november|december)\b"
    # "march" and "may" are ordinary words too: only after a preposition do they name the month.
    r"|\b(?:in|of|since|during|last|this|next|until|from)\s{1,3}(march|may)\b"
)
_NEAR_MONTH = (
    re.compile(rf"\d(?:st|nd|rd|th)?{_GAP}(?:of{_GAP})?(?:{'|'.join(name[:3].lower() for name in MONTHS)})"),
    re.compile(rf"(?:{'|'.join(name[:3].lower() for name in MONTHS)})[a-z]{{0,6}}\.?,?{_GAP}(?:the )?\d"),
)
"""A number beside what may be a month: a tenth of the time of `_DATE`, which only texts with one of these need."""

_Unit = Literal["day", "weekday", "week", "weekend", "month", "year"]

_SIGN = "¤"
"""Begins the word of a date in an index; no ordinary word has it."""

_LONGEST_LIST = 28
"""Days of a span that are named one by one in a query; a longer one is named by its months."""


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
        length = (self.last - self.first).days
        if length < _LONGEST_LIST:
            return " ".join((self.first + timedelta(step)).isoformat() for step in range(length + 1))
        months = range(self.first.year * 12 + self.first.month - 1, self.last.year * 12 + self.last.month)
        return " ".join(f"{month // 12:04d}-{month % 12 + 1:02d}" for month in months)


@dataclass(frozen=True)
class DateMention:
    """A place of a text that names a day or a period."""

    start: int
    """Where the phrase begins in the text."""
    end: int
    """Where it ends, excluded."""
    phrase: str
    span: Span | None
    """None when there is no such day, or when the phrase fits two."""
    unit: _Unit = "day"
    """How exact the phrase is: with `month`, the span is a month or a part of one."""
    has_year: bool = True
    """False for `March 4`: the year was worked out from the day that the text was written on."""
    is_relative: bool = False
    """The phrase counts from the day that the text was written on, such as `next week`."""
    readings: tuple[date, ...] = ()
    """The two days that `3/4` may be; then `span` is None."""


def dates_in(text: str, today: date, *, prefer: Literal["past", "future"] = "past") -> list[DateMention]:
    """Return the days and periods that a text names, in order and without overlap.

    Args:
        text: a sentence or more.
        today: the day it was written on.
        prefer: which day `March 4` and `Monday` are: the last one, or the next one from today on. With `past`, phrases
            such as `tomorrow`, and a weekday without `on`, `last` or `this`, name none.
    """
    mentions = []
    for match in _MENTION.finditer(text):
        try:
            mention = _mention(match, today, prefer == "future")
        except (ValueError, OverflowError):  # no such day
            mention = DateMention(match.start(), match.end(), match.group().strip(), None)
        is_ahead = mention.is_relative and mention.span is not None and mention.span.first > today
        if prefer == "future" or not (is_ahead or (match["weekday"] and not match["lead"])):
            mentions.append(mention)
    return mentions


def count_of(word: str) -> int | None:
    """Read a small number, in digits or as an English word; None when it is none."""
    plain = " ".join(word.lower().split())
    if plain.isdecimal() and len(plain) < 5:
        return int(plain)
    if plain in ("a", "an"):
        return 1
    return 2 if plain.endswith("couple of") else NUMBER_WORDS.index(plain) if plain in NUMBER_WORDS else None


def date_words(folded: str) -> tuple[list[str], str]:
    """Return the words of the dates in a document, and the text without its ISO timestamps.

    A document gets every word of its dates: day, month, day of any year. The digits of a timestamp
    would otherwise be words that mean nothing; its year stays one.
    """
    return _written_out(folded, _all_words, lambda match, year: f" {year} " if match["iso"] else match[0])


def queried_date_words(folded: str) -> tuple[list[str], str]:
    """Return the words of the dates that a query names, and the rest of the query.

    "March 2025" asks for a month of one year, "March 4" for a day of any year.
    """
    found, rest = _written_out(folded, _queried_words, lambda match, year: " ")
    found += [f"{_SIGN}m{_month(match[1] or match[2]):02d}" for match in _MONTH_ALONE.finditer(rest)]
    return list(dict.fromkeys(found)), rest


def _written_out(
    folded: str,
    words: Callable[[int | None, int, int | None], list[str]],
    instead: Callable[[re.Match[str], int | None], str],
) -> tuple[list[str], str]:
    found: list[str] = []

    def note(match: re.Match[str]) -> str:
        parts = _parts(match)
        try:
            year, month, day = parts.get("y"), parts["m"], parts.get("d")
            date(year or 2024, month, day or 1)  # 2024 was a leap year
        except ValueError:
            return match[0]
        found.extend(words(year, month, day))
        return instead(match, year)

    may_name_month = "月" in folded or any(pattern.search(folded) for pattern in _NEAR_MONTH)
    return found, (_DATE if may_name_month else _DIGITS).sub(note, folded)


def _parts(match: re.Match[str]) -> dict[str, int]:
    """Return `y`, `m` and `d` of a match; it is of one spelling, so each has one group with a value at most."""
    found = {name[0]: text for name, text in match.groupdict().items() if text and len(name) == 2 and name[1].isdigit()}
    return {name: _month(text) if name == "m" else int(re.sub(r"\D", "", text)) for name, text in found.items()}


def _month(text: str) -> int:
    if text.isdigit():
        return int(text)
    return next(place for place, name in enumerate(MONTHS, start=1) if name.lower().startswith(text[:3].lower()))


def _all_words(year: int | None, month: int, day: int | None) -> list[str]:
    words = [f"{_SIGN}m{month:02d}"]
    if day:
        words.append(f"{_SIGN}d{month:02d}{day:02d}")
    if year:
        words.append(f"{_SIGN}y{year:04d}{month:02d}")
    if year and day:
        words.append(f"{_SIGN}{year:04d}{month:02d}{day:02d}")
    return words


def _queried_words(year: int | None, month: int, day: int | None) -> list[str]:
    if year and day:
        # A message that says only "March 4" is still a hit, behind those of that year.
        return [f"{_SIGN}{year:04d}{month:02d}{day:02d}", f"{_SIGN}d{month:02d}{day:02d}"]
    if day:
        return [f"{_SIGN}d{month:02d}{day:02d}"]
    return [f"{_SIGN}y{year:04d}{month:02d}"] if year else [f"{_SIGN}m{month:02d}"]


def _mention(match: re.Match[str], today: date, is_future: bool) -> DateMention:
    group = {name: text.lower() for name, text in match.groupdict().items() if text}
    start, end, phrase = match.start(), match.end(), match.group().strip()

    def mention(span: Span | None, unit: _Unit = "day", **more: Any) -> DateMention:
        return DateMention(start, end, phrase, span, unit, **more)

    if "slash1" in group:
        days = _slashed(group, today, is_future)
        has_year = "y8" in group
        return mention(_on(days[0]), has_year=has_year) if len(days) == 1 else mention(None, readings=days)
    parts = _parts(match)
    has_year = "y" in parts
    if "m" in parts and "d" in parts:
        return mention(_on(_dated(parts, today, is_future)), has_year=has_year)
    if "m" in parts:
        year = parts["y"] if has_year else _year_of_month(parts["m"], group.get("which", ""), today, is_future)
        return mention(_month_span(year, parts["m"], group.get("part", "")), "month", has_year=has_year)
    if has_year:
        return mention(_year_span(parts["y"]), "year")
    if "near" in group:
        words = ("the day before yesterday", "yesterday", "today", "tomorrow", "day after tomorrow")
        place = words.index("today" if group["near"] == "tonight" else group["near"])
        return mention(_on(today + timedelta(place - 2)), is_relative=True)
    if "weekday" in group:
        day = _weekday(group["weekday"], group.get("lead", ""), today, is_future)
        return mention(_on(day), "weekday", is_relative=True)
    if "unit" in group:
        span = _this_or_next(group["which2"], group["unit"], group.get("part2", ""), today)
        return mention(span, cast(_Unit, group["unit"]), is_relative=True)
    name = next(name for name in ("ago", "ahead", "from_now") if name in group)
    count, unit = count_of(group[name]) or 0, group[f"{name}_unit"]
    return mention(_shifted(today, -count if name == "ago" else count, unit), cast(_Unit, unit), is_relative=True)


def _on(day: date) -> Span:
    return Span(day, day)


def _dated(parts: dict[str, int], today: date, is_future: bool) -> date:
    """Return the day; without a year it is the nearest one in the preferred direction."""
    month, day = parts["m"], parts["d"]
    if "y" in parts:
        return date(parts["y"], month, day)
    for year in range(today.year, today.year + 9) if is_future else range(today.year, today.year - 9, -1):
        # 29 February may be eight years away.
        if (month, day) != (2, 29) or calendar.isleap(year):
            found = date(year, month, day)
            if (found >= today) if is_future else (found <= today):
                return found
    raise ValueError("no such day")


def _slashed(group: dict[str, str], today: date, is_future: bool) -> tuple[date, ...]:
    """Return the days that `3/4` may be: two, unless one of the numbers is above 12 or both are the same."""
    first, second, year = int(group["slash1"]), int(group["slash2"]), group.get("y8", "")
    dated = {"y": int(year if len(year) == 4 else f"20{year}")} if year else {}
    return tuple(
        _dated({"m": month, "d": day, **dated}, today, is_future)
        for month, day in dict.fromkeys([(first, second), (second, first)])
        if 0 < month <= 12 and 0 < day <= calendar.monthrange(2024, month)[1]
    )


def _year_of_month(month: int, which: str, today: date, is_future: bool) -> int:
    if is_future:
        return today.year + (month < today.month or (which == "next" and month == today.month))
    return today.year - (month > today.month or (which == "last" and month == today.month))


def _month_span(year: int, month: int, part: str) -> Span:
    last = calendar.monthrange(year, month)[1]
    if part.startswith(("early", "beginning", "start")):
        return Span(date(year, month, 1), date(year, month, 10))
    if part.startswith(("mid", "middle")):
        return Span(date(year, month, 11), date(year, month, 20))
    return Span(date(year, month, 21 if part else 1), date(year, month, last))


def _year_span(year: int) -> Span:
    return Span(date(year, 1, 1), date(year, 12, 31))


def _weekday(name: str, lead: str, today: date, is_future: bool) -> date:
    """Return the next or the last such day; "next" is the one of the calendar week to come."""
    place = [day.lower() for day in WEEKDAYS].index(name)
    if lead == "next":
        return today + timedelta(7 - today.weekday() + place)
    if lead == "last" or not is_future:
        return today - timedelta((today.weekday() - place) % 7 or 7)
    return today + timedelta((place - today.weekday()) % 7 or 7)


def _this_or_next(which: str, unit: str, part: str, today: date) -> Span:
    step = {"last": -1, "next": 1}.get(which, 0)
    if unit in ("year", "month"):
        return _shifted(today, step, unit, part)
    monday = today + timedelta(7 * step - today.weekday())
    return Span(monday + timedelta(5 if unit == "weekend" else 0), monday + timedelta(6))


def _shifted(today: date, count: int, unit: str, part: str = "") -> Span:
    """Return the day or period that lies some units ahead of today, or behind it; of a month also a part, `early`."""
    if unit == "year":
        return _year_span(today.year + count)
    if unit == "month":
        years, month = divmod(today.month - 1 + count, 12)
        return _month_span(today.year + years, month + 1, part)
    if unit == "week":
        middle = today + timedelta(7 * count)
        return Span(middle - timedelta(3), middle + timedelta(3))
    return _on(today + timedelta(count))
