"""Sandbox travel insurance."""

from dataclasses import dataclass
from datetime import date

from everthread.agents.travel.errors import TravelError
from everthread.agents.travel.options import Option, money
from everthread.agents.travel.queries import InsuranceQuery, Offers
from everthread.agents.travel.sandbox import calendar, option_ids
from everthread.agents.travel.sandbox.airports import Airport, airports
from everthread.agents.travel.sandbox.places import city_airport, country_name, reading, resolve

KIND = "INS"

LONGEST_COVER_DAYS = 180

MOST_COVERED = 100_000
"""Highest trip cost that is insured, in USD."""

_DEAR_CARE = frozenset({"US", "CA", "CH", "SG", "HK"})
"""Countries where treatment is expensive, so that the medical part costs more."""

_TERMS = "full refund within 14 days of purchase while the trip has not begun"


@dataclass(frozen=True)
class _Plan:
    name: str
    share: float
    """Of the trip cost."""
    daily: float
    """In USD, for the medical part."""
    medical: int
    baggage: int
    extras: tuple[str, ...]


_PLANS = {
    "A": _Plan("Essential", 0.035, 1.2, 50_000, 500, ("no cover for rental cars",)),
    "B": _Plan("Comfort", 0.055, 2.2, 250_000, 1_500, ("rental car excess up to USD 1,500", "delays from 6 h")),
    "C": _Plan(
        "Complete",
        0.085,
        3.6,
        1_000_000,
        3_000,
        ("rental car excess up to USD 5,000", "delays from 3 h", "cancellation for any reason: 75 % back"),
    ),
}
"""What can be bought, by the letter that ends an option id."""


def search(query: InsuranceQuery, today: date) -> Offers:
    """Find insurance, the cheapest first.

    Raises:
        TravelError: place, dates or cost are not usable; the message says what to ask.
    """
    place = resolve(query.destination, "destination")
    _check(query, today)
    options = tuple(_option(query, place.airport, letter) for letter in _PLANS)
    return Offers(options, reading(query.destination, place))


def rebuild(parts: list[str], today: date) -> Option | None:
    """Make the option of a decoded id again; None when there is none.

    Raises:
        TravelError: its day is past by now.
    """
    code, start, end, cost, letter = parts
    query = InsuranceQuery(code, option_ids.day(start), option_ids.day(end), int(cost))
    _check(query, today)
    return _option(query, airports()[code], letter) if letter in _PLANS else None


def _check(query: InsuranceQuery, today: date) -> None:
    calendar.check_start(query.start, "start", today)
    calendar.check_end(query.start, query.end, ("start", "end"), least=0, most=LONGEST_COVER_DAYS)
    if not 1 <= query.trip_cost <= MOST_COVERED:
        raise TravelError(
            f"`trip_cost` is {query.trip_cost!r}, but from {money(1)} to {money(MOST_COVERED)} can "
            "be insured; ask the user what the trip costs"
        )


def _option(query: InsuranceQuery, airport: Airport, letter: str) -> Option:
    plan = _PLANS[letter]
    city = city_airport(airport)
    # The id holds whole dollars, and the price must follow from the id alone.
    cost = round(query.trip_cost)
    days = (query.end - query.start).days + 1
    price = plan.share * cost + plan.daily * days * (1.6 if city.country in _DEAR_CARE else 1.0)
    covers = (
        f"cancellation for illness or accident up to {money(cost)}",
        f"medical up to {money(plan.medical)}",
        f"baggage up to {money(plan.baggage)}",
        *plan.extras,
    )
    place = f"{city.city}, {country_name(city.country)}"
    return Option(
        kind="insurance",
        option_id=option_ids.encode(KIND, city.code, query.start, query.end, cost, letter),
        headline=f"{plan.name} travel insurance, {place}, {query.start} to {query.end}",
        facts=(f"trip cost {money(cost)}", "; ".join(covers)),
        starts=query.start,
        ends=query.end,
        # Everyone who is insured.
        names_needed=(1, 9),
        price=round(price, 2),
        terms=_TERMS,
    )
