"""Dates in a text as words of their own, so that "March 4" finds "2025-03-04" and the other way round.

Such a word starts with a sign that no ordinary word has. A document gets all words of its dates, a query
only those of what it names: "March 2025" asks for a month of one year, "March 4" for a day of any year.
"""

import re
from collections.abc import Sequence
from datetime import date
from functools import lru_cache

_SIGN = "¤"
_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sep(?:t(?:ember)?)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
# 2025-03-04, 2025/3/4, with a time as in ISO 8601, and 2025-03. It begins with a set of characters, to which `re` skips
# fast; what must not stand before the year is therefore looked at behind it.
_IN_DIGITS = (
    r"(?P<y1>\d\d\d\d)(?<!\d\d\d\d\d)(?:"
    r"(?P<iso>(?P<cut>[-/.])(?P<m1>\d{1,2})(?P=cut)(?P<d1>\d{1,2})(?!\d)(?:t\d\d[\d:.]*(?:z|[+-]\d\d[\d:]*)?)?)"
    r"|(?<!-\d\d\d\d)-(?P<m2>\d{2})(?![\d-]))"
)
_DATE = re.compile(
    _IN_DIGITS + r"|(?<!\d)(?:(?P<y3>\d{4})\s?年\s?)?(?P<m3>\d{1,2})\s?月(?:\s?(?P<d3>\d{1,2})\s?日)?"
    rf"|\b(?P<m4>{_MONTH})\b\.?\s{{1,3}}(?P<d4>{_DAY})\b(?:,?\s{{1,3}}(?P<y4>\d{{4}})\b)?"
    rf"|\b(?P<d5>{_DAY})\s{{1,3}}(?:of\s{{1,3}})?(?P<m5>{_MONTH})\b\.?(?:,?\s{{1,3}}(?P<y5>\d{{4}})\b)?"
    rf"|\b(?P<m6>{_MONTH})\b\.?,?\s{{1,3}}(?P<y6>\d{{4}})\b",
)
_ALONE = re.compile(
    r"\b(january|february|april|june|july|august|september|october|november|december)\b"
    # "march" and "may" are ordinary words too: only after a preposition do they name the month.
    r"|\b(?:in|of|since|during|last|this|next|until|from)\s{1,3}(march|may)\b"
)
_DIGITS = re.compile(_IN_DIGITS)

# A date with the name of a month holds one of these, which take a tenth of the time of `_DATE`.
_DAY_MONTH = re.compile(rf"\d(?:st|nd|rd|th)?\s{{1,3}}(?:of\s{{1,3}})?(?:{'|'.join(_NAMES)})")
_MONTH_NUMBER = re.compile(rf"(?:{'|'.join(_NAMES)})[a-z]{{0,6}}\.?,?\s{{1,3}}\d")

MONTHS = frozenset(
    [
        *_NAMES,
        *("january", "february", "march", "april", "june", "july", "august", "sept", "september"),
        *("october", "november", "december"),
    ]
)
"""All words that name a month."""

# Each begins with one character, to which `re` skips much faster than to any digit. Every date in digits has one.
_CUTS = tuple(map(re.compile, (r"-(?:\d\d?-\d|\d\d(?![\d-]))", r"/\d\d?/\d", r"\.\d\d?\.\d")))

_SHORT = 40
"""Characters of a text whose dates are remembered: every record has a timestamp, and many are of one day."""

_STAMP = re.compile(r"(\d{4}-\d\d-\d\d)t\d\d[\d:.]*(?:z|[+-]\d\d[\d:]*)?")


def date_words(folded: str, *, has_month: bool = True) -> tuple[Sequence[str], str]:
    """Return the words of the dates in a document, and the text without its ISO timestamps.

    The digits of a timestamp would otherwise be words that mean nothing; its year stays one.

    Args:
        folded: the document.
        has_month: False when it is known to hold none of `MONTHS`, and no Japanese or Chinese date.
    """
    if len(folded) > _SHORT:
        return _date_words(folded, has_month)
    if stamp := _STAMP.fullmatch(folded):
        words, rest = _remembered(stamp[1], False)
        if words:  # else there is no such day, and the text is no timestamp
            return words, rest
    return _remembered(folded, has_month)


def asked_dates(folded: str) -> tuple[list[str], str]:
    """Return the words of the dates that a query names, and the rest of the query."""
    words: list[str] = []

    def note(match: re.Match[str]) -> str:
        found = _parts(match)
        if found is None:
            return match[0]
        words.extend(_asked_words(*found))
        return " "

    rest = _pattern(folded).sub(note, folded)
    words.extend(f"{_SIGN}m{_number(match[1] or match[2]):02d}" for match in _ALONE.finditer(rest))
    return list(dict.fromkeys(words)), rest


def _date_words(folded: str, has_month: bool) -> tuple[tuple[str, ...], str]:
    words: list[str] = []

    def note(match: re.Match[str]) -> str:
        found = _parts(match)
        if found is None:
            return match[0]
        year, month, day = found
        words.extend(_all_words(year, month, day))
        return f" {year} " if match["iso"] else match[0]

    if has_month:
        rest = _pattern(folded).sub(note, folded)
    else:
        rest = _DIGITS.sub(note, folded) if any(cut.search(folded) for cut in _CUTS) else folded
    return tuple(words), rest


_remembered = lru_cache(maxsize=1024)(_date_words)


def _pattern(folded: str) -> re.Pattern[str]:
    """Return the cheapest pattern that finds the same dates in a text as `_DATE`."""
    return _DATE if "月" in folded or _DAY_MONTH.search(folded) or _MONTH_NUMBER.search(folded) else _DIGITS


def _parts(match: re.Match[str]) -> tuple[int | None, int, int | None] | None:
    """Return year, month and day of a match; None when there is no such day."""
    # A match is of one spelling: of the groups for years, months and days one each at most has a value.
    read = {name[0]: value for name, value in match.groupdict().items() if value and name[1:].isdigit()}
    year = int(read["y"]) if "y" in read else None
    day = int(re.sub(r"\D", "", read["d"])) if "d" in read else None
    month = _number(read["m"])
    try:
        date(year if year else 2024, month, day or 1)  # 2024 was a leap year
    except ValueError:
        return None
    return year, month, day


def _number(month: str) -> int:
    return int(month) if month.isdigit() else _NAMES.index(month[:3]) + 1


def _all_words(year: int | None, month: int, day: int | None) -> list[str]:
    words = [f"{_SIGN}m{month:02d}"]
    if day:
        words.append(f"{_SIGN}d{month:02d}{day:02d}")
    if year:
        words.append(f"{_SIGN}y{year:04d}{month:02d}")
    if year and day:
        words.append(f"{_SIGN}{year:04d}{month:02d}{day:02d}")
    return words


def _asked_words(year: int | None, month: int, day: int | None) -> list[str]:
    if year and day:
        # A message that says only "March 4" is still a hit, behind those of that year.
        return [f"{_SIGN}{year:04d}{month:02d}{day:02d}", f"{_SIGN}d{month:02d}{day:02d}"]
    if day:
        return [f"{_SIGN}d{month:02d}{day:02d}"]
    return [f"{_SIGN}y{year:04d}{month:02d}"] if year else [f"{_SIGN}m{month:02d}"]
