"""Sandbox rental cars."""

from dataclasses import dataclass
from datetime import date

from everthread.agents.travel.errors import TravelError
from everthread.agents.travel.options import Option, money
from everthread.agents.travel.queries import CarQuery, Offers
from everthread.agents.travel.sandbox import calendar, option_ids
from everthread.agents.travel.sandbox.airports import Airport, airports, city_by_airport
from everthread.agents.travel.sandbox.dice import draw, pick
from everthread.agents.travel.sandbox.places import reading, resolve
from everthread.plain import counted

KIND = "CAR"

LONGEST_RENTAL_DAYS = 90

_SUPPLIERS = ("Acorn Cars", "Bluebird Rental", "Compass Drive", "Waypoint Rentals")
"""Invented, like everything here but the airport."""

_TERMS = "free cancellation until 24 h before pick-up, then one day is charged"


@dataclass(frozen=True)
class _Class:
    name: str
    daily_rate: int
    seats: int
    bags: int
    transmission: str


_CLASSES = {
    "A": _Class("economy", 38, 4, 1, "manual"),
    "B": _Class("compact", 44, 5, 2, "manual"),
    "C": _Class("midsize", 56, 5, 3, "automatic"),
    "D": _Class("suv", 79, 5, 4, "automatic"),
    "E": _Class("van", 98, 8, 5, "automatic"),
    "F": _Class("premium", 112, 5, 3, "automatic"),
}
"""Classes of car by the letter that ends an option id."""


def search(query: CarQuery, today: date) -> Offers:
    """Find rental cars, the cheapest first.

    Raises:
        TravelError: city, dates or category are not usable; the message says what to ask.
    """
    place = resolve(query.city, "city")
    _check(query, today)
    wanted = query.category.strip().casefold() if query.category else None
    names = [known.name for known in _CLASSES.values()]
    if wanted and wanted not in names:
        raise TravelError(f"`category` is {query.category!r}; choose one of {', '.join(names)}, or leave it out")
    letters = [letter for letter, known in _CLASSES.items() if wanted in (None, known.name)]
    options = sorted((_option(query, place.airport, letter) for letter in letters), key=lambda option: option.price)
    return Offers(tuple(options), reading(query.city, place))


def rebuild(parts: list[str], today: date) -> Option | None:
    """Make the option of a decoded id again; None when there is none.

    Raises:
        TravelError: its day is past by now.
    """
    code, pick_up, drop_off, letter = parts
    query = CarQuery(code, option_ids.day(pick_up), option_ids.day(drop_off))
    _check(query, today)
    return _option(query, airports()[code], letter) if letter in _CLASSES else None


def _check(query: CarQuery, today: date) -> None:
    calendar.check_start(query.pick_up, "pick_up", today)
    roles = ("pick_up", "drop_off")
    calendar.check_end(query.pick_up, query.drop_off, roles, least=0, most=LONGEST_RENTAL_DAYS)


def _option(query: CarQuery, airport: Airport, letter: str) -> Option:
    car = _CLASSES[letter]
    known = city_by_airport().get(airport.code)
    # Cars vary less with the place than rooms do.
    level = min(1.4, max(0.75, (known.nightly_rate if known else 110) / 140))
    luck = 0.92 + 0.16 * draw("car", airport.code, query.pick_up, letter)
    rate = round(car.daily_rate * level * luck * calendar.season(query.pick_up))
    days = max(1, (query.drop_off - query.pick_up).days)
    covered = draw("waiver", airport.code, letter) < 0.35
    cover = "included, excess USD 500" if covered else "not included, USD 18 a day at the desk"
    supplier = pick(_SUPPLIERS, "supplier", airport.code, letter)
    size = f"{car.seats} seats, {counted(car.bags, 'bag')}, {car.transmission}"
    return Option(
        kind="car",
        option_id=option_ids.encode(KIND, airport.code, query.pick_up, query.drop_off, letter),
        headline=f"rental car ({car.name}), {supplier}, {airport} airport, {query.pick_up} to {query.drop_off}",
        facts=(f"{size}; {money(rate)} a day, unlimited mileage", f"collision waiver: {cover}"),
        starts=query.pick_up,
        ends=query.drop_off,
        # The driver, and further drivers up to the seats.
        names_needed=(1, car.seats),
        price=float(rate * days),
        terms=_TERMS,
    )
