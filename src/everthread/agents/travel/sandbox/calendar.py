"""Checks on dates and counts, and the season that moves prices."""

from datetime import date, timedelta

from everthread.agents.travel.errors import TravelError
from everthread.plain import counted

HORIZON_DAYS = 365
"""How far ahead the sandbox sells; airlines open their flights about that early."""

_SEASON = (0.90, 0.92, 0.97, 1.05, 1.05, 1.15, 1.25, 1.25, 1.05, 1.00, 0.90, 1.15)
"""Price factor by month, January first; an invention of the sandbox."""


def check_start(start: date, role: str, today: date) -> None:
    """Refuse a day that is past or too far ahead.

    Raises:
        TravelError: names the day, today and what to ask.
    """
    if start < today:
        raise TravelError(f"`{role}` {start} is in the past (today is {today}); ask the user for a date from today on")
    if start > today + timedelta(days=HORIZON_DAYS):
        raise TravelError(
            f"`{role}` {start} is {(start - today).days} days ahead, but the sandbox sells at most {HORIZON_DAYS} days "
            f"ahead; check the year, or ask the user for a date until {today + timedelta(days=HORIZON_DAYS)}"
        )


def check_end(start: date, end: date, roles: tuple[str, str], *, least: int, most: int) -> None:
    """Refuse a last day that is before the first one, or a time that is too short or too long.

    Args:
        roles: names of both arguments.

    Raises:
        TravelError: names both days and what to ask.
    """
    days = (end - start).days
    if days < least:
        relation = "before" if days < 0 else "on the same day as"
        raise TravelError(f"`{roles[1]}` {end} is {relation} `{roles[0]}` {start}; ask the user for the right dates")
    if days > most:
        raise TravelError(
            f"`{roles[0]}` {start} to `{roles[1]}` {end} is {days} days, but at most {most} are sold at once; "
            "check the dates with the user or split the time"
        )


def check_count(count: int, noun: str, most: int) -> None:
    """Refuse a number of people that one booking cannot hold.

    Raises:
        TravelError: names the number and the limit.
    """
    if not 1 <= count <= most:
        raise TravelError(
            f"{counted(count, noun)} cannot be booked together: from 1 to {most} are possible; ask the user how many "
            "travel, and search in smaller groups if there are more"
        )


def season(day: date) -> float:
    """Return the price factor of a day's month."""
    return _SEASON[day.month - 1]
