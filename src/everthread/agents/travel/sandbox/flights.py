"""Sandbox flights: schedules in local time and prices, drawn from route and date alone."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from typing import get_args

from everthread.agents.travel.errors import TravelError
from everthread.agents.travel.options import Cabin, FlightOption, Journey, Segment, money
from everthread.agents.travel.queries import FlightQuery, Offers
from everthread.agents.travel.sandbox import calendar, option_ids
from everthread.agents.travel.sandbox.airports import Airport, airports, distance_km
from everthread.agents.travel.sandbox.dice import between, draw, pick
from everthread.agents.travel.sandbox.places import reading, resolve, where
from everthread.agents.travel.sandbox.routes import SHORTEST_KM, Route, routes
from everthread.plain import counted

KIND = "FLT"

MOST_TRAVELLERS = 9
"""Seats in one booking; reservation systems stop there as well."""

LONGEST_TRIP_DAYS = 330

_CARRIERS = ("Arrowjet", "Halcyon", "Lumen Air", "Meridian", "Northwind", "Sunda Pacific")
"""Invented, so that nobody takes an option for a real airline's offer."""

_CABIN_FACTOR: dict[Cabin, float] = {"economy": 1.0, "premium_economy": 1.6, "business": 3.2, "first": 5.0}

_CABIN_LETTERS: dict[str, Cabin] = {cabin[0].upper(): cabin for cabin in get_args(Cabin)}

_SHORT_HAUL_KM = 1_500
"""Up to here nobody changes planes when a nonstop flight exists."""

_TURNAROUND = timedelta(hours=1)
"""Least time between landing and the way back."""


@dataclass(frozen=True)
class _Fare:
    name: str
    factor: float
    baggage: str
    terms: str


_STANDARD = _Fare(
    "Standard", 1.0, "1 checked bag", "changes cost USD 90; cancelling until 24 h before departure refunds half"
)
_FLEX = _Fare("Flex", 1.25, "1 checked bag", "free changes and free cancellation until 24 h before departure")
_LIGHT = _Fare("Light", 0.88, "cabin bag only", "no changes, not refundable")

_PLANS: dict[str, tuple[_Fare, tuple[int, int]]] = {
    "A": (_STANDARD, (7, 9)),
    "B": (_FLEX, (16, 20)),
    "C": (_LIGHT, (10, 13)),
    "D": (_STANDARD, (13, 17)),
}
"""Fare and first and last hour of departure, by the letter that ends an option id."""


def search(query: FlightQuery, today: date) -> Offers:
    """Find flights.

    Raises:
        TravelError: places, dates or travellers are not usable; the message says what to ask.
    """
    origin, destination = resolve(query.origin, "origin"), resolve(query.destination, "destination")
    _check(query, origin.airport, destination.airport, today)
    found = [_option(query, origin.airport, destination.airport, letter) for letter in _PLANS]
    options = tuple(option for option in found if option is not None)
    if not options:
        raise _none(query, origin.airport, destination.airport)
    return Offers(options, (*reading(query.origin, origin), *reading(query.destination, destination)))


def rebuild(parts: list[str], today: date) -> FlightOption | None:
    """Make the option of a decoded id again; None when there is none.

    Raises:
        TravelError: its day is past by now.
    """
    origin, destination, *days, last = parts
    cabin, travellers, letter = _CABIN_LETTERS[last[0]], int(last[1:-1]), last[-1]
    outbound, *back = (option_ids.day(part) for part in days)
    query = FlightQuery(origin, destination, outbound, back[0] if back else None, cabin, travellers)
    start, end = airports()[origin], airports()[destination]
    _check(query, start, end, today)
    return _option(query, start, end, letter)


def _check(query: FlightQuery, origin: Airport, destination: Airport, today: date) -> None:
    calendar.check_count(query.travellers, "traveller", MOST_TRAVELLERS)
    calendar.check_start(query.date, "date", today)
    if query.return_date:
        roles = ("date", "return_date")
        calendar.check_end(query.date, query.return_date, roles, least=0, most=LONGEST_TRIP_DAYS)
    if query.cabin not in _CABIN_FACTOR:
        raise TravelError(f"`cabin` is {query.cabin!r}; choose one of {', '.join(_CABIN_FACTOR)}")
    distance = distance_km(origin, destination)
    if distance < SHORTEST_KM:
        raise TravelError(
            f"{where(origin)} and {where(destination)} are {distance:.0f} km apart, too near for a flight; ask the "
            "user whether both places are right, or offer a rental car"
        )


def _option(query: FlightQuery, origin: Airport, destination: Airport, letter: str) -> FlightOption | None:
    """Make the option of one letter; None when there is no such flight or no way back in time."""
    outbound = _journey(origin, destination, query.date, letter)
    inbound = _journey(destination, origin, query.return_date, letter) if query.return_date else None
    if outbound is None or (query.return_date and inbound is None):
        return None
    if inbound and inbound.departure.astimezone(UTC) < outbound.arrival.astimezone(UTC) + _TURNAROUND:
        return None
    fare, _ = _PLANS[letter]
    days = (query.date, query.return_date) if query.return_date else (query.date,)
    last = f"{query.cabin[0].upper()}{query.travellers}{letter}"
    each = _price_each(query, (outbound, inbound), distance_km(origin, destination), letter)
    starts, ends = outbound.departure.date(), (inbound or outbound).departure.date()
    trip = f"{starts} to {ends}" if inbound else f"{starts} one way"
    cabin, people = query.cabin.replace("_", " "), counted(query.travellers, "traveller")
    back = (f"back {inbound}",) if inbound else ()
    return FlightOption(
        kind="flight",
        option_id=option_ids.encode(KIND, origin.code, destination.code, *days, last),
        headline=f"flight {origin} → {destination}, {trip}, {cabin}, {people}",
        facts=(f"out {outbound}", *back, f"{fare.name} fare, {money(each)} each; {fare.baggage}"),
        starts=starts,
        ends=ends,
        names_needed=(query.travellers, query.travellers),
        price=float(query.travellers * each),
        terms=fare.terms,
        outbound=outbound,
        inbound=inbound,
    )


def _journey(origin: Airport, destination: Airport, day: date, letter: str) -> Journey | None:
    route = _route(origin, destination, letter)
    if route is None:
        return None
    _, (first_hour, last_hour) = _PLANS[letter]
    key = (origin.code, destination.code, day, letter)
    hour, minute = between(first_hour, last_hour, "hour", *key), 5 * between(0, 11, "minute", *key)
    departure = datetime.combine(day, time(hour, minute), origin.zone)
    return Journey(tuple(_segments(route, departure, key)))


def _route(origin: Airport, destination: Airport, letter: str) -> Route | None:
    """Choose the route of a letter: nonstop for A and B, connections for the others when they make sense."""
    known = routes(origin, destination)
    nonstop = [route for route in known if len(route) == 2]
    connections = [route for route in known if len(route) > 2]
    if nonstop and (not connections or distance_km(origin, destination) < _SHORT_HAUL_KM):
        return nonstop[0] if letter != "D" else None
    # Without a nonstop flight the same connections leave at several times of the day.
    choice = [*nonstop, *nonstop, *connections] if nonstop else connections * len(_PLANS)
    place = list(_PLANS).index(letter)
    return choice[place] if place < len(choice) else None


def _segments(route: Route, departure: datetime, key: tuple[object, ...]) -> Iterable[Segment]:
    carrier = pick(_CARRIERS, "carrier", *key)
    for start, end in pairwise(route):
        # Adding to a local time ignores a change to or from summer time on the way; UTC does not.
        arrival = (departure.astimezone(UTC) + flight_time(start, end)).astimezone(end.zone)
        number = between(100, 989, "number", start.code, end.code, *key)
        yield Segment(f"{carrier} {number}", start.code, end.code, departure, arrival)
        wait = timedelta(minutes=5 * between(14, 33, "wait", end.code, *key))
        departure = (arrival.astimezone(UTC) + wait).astimezone(end.zone)


def flight_time(start: Airport, end: Airport) -> timedelta:
    """Return the time from take-off to landing: half an hour, and 840 km an hour, in steps of five minutes."""
    return timedelta(minutes=5 * round((30 + distance_km(start, end) / 14) / 5))


def _price_each(query: FlightQuery, ways: Iterable[Journey | None], distance: float, letter: str) -> int:
    """Price the journeys for one traveller in whole USD; all draws leave the cabin out, so a better one costs more."""
    fare, _ = _PLANS[letter]
    price = 0.0
    for way in ways:
        if way is None:
            continue
        day = way.departure.date()
        busy = 1.1 if day.weekday() in (4, 6) else 1.0
        luck = 0.9 + 0.2 * draw("price", way.segments[0].origin, way.segments[-1].destination, day, letter)
        detour = 0.86 if way.stops else 1.0
        price += (30 + 1.7 * distance**0.6) * calendar.season(day) * busy * luck * detour
    return round(price * fare.factor * _CABIN_FACTOR[query.cabin])


def _none(query: FlightQuery, origin: Airport, destination: Airport) -> TravelError:
    arrivals = [journey.arrival for letter in _PLANS if (journey := _journey(origin, destination, query.date, letter))]
    if arrivals:
        return TravelError(
            f"no way back on {query.return_date}: the flights of {query.date} arrive in {destination} on "
            f"{min(arrivals):%Y-%m-%d at %H:%M}; ask the user for a later `return_date`"
        )
    return TravelError(
        f"the sandbox has no route from {where(origin)} to {where(destination)}; "
        "ask the user for a bigger airport near by"
    )
