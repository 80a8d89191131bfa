"""Sandbox hotels: invented houses in real cities."""

from dataclasses import dataclass
from datetime import date
from math import ceil

from everthread.agents.travel.errors import TravelError
from everthread.agents.travel.options import HotelOption, money
from everthread.agents.travel.queries import HotelQuery, Offers
from everthread.agents.travel.sandbox import calendar, option_ids
from everthread.agents.travel.sandbox.airports import Airport, airports, cities
from everthread.agents.travel.sandbox.dice import between, draw, pick
from everthread.agents.travel.sandbox.places import city_airport, country_name, reading, resolve
from everthread.plain import counted

KIND = "HTL"

MOST_GUESTS = 8

LONGEST_STAY_DAYS = 60

_USUAL_RATE = 95
"""Nightly rate in USD where no estimate for the city is known."""

_FIRST_WORDS = ("Alder", "Beacon", "Cedar", "Harbour", "Juniper", "Lantern", "Maple", "Orchard", "Saffron", "Wren")


@dataclass(frozen=True)
class _House:
    last_word: str
    stars: int
    area: str
    rate_factor: float


_HOUSES = {
    "A": _House("House", 4, "central, walkable area", 1.10),
    "B": _House("Inn", 3, "next to the main station", 0.70),
    "C": _House("Residence", 4, "quiet residential area, 15 minutes to the centre", 0.90),
    "D": _House("Palace", 5, "old town, all sights within a walk", 1.90),
    "E": _House("Lodge", 3, "near the airport, shuttle bus", 0.60),
}
"""What there is in every city, by the letter that ends an option id."""

_TERMS = (
    (1.00, "free cancellation until 2 days before arrival, then the first night is charged"),
    (1.06, "free cancellation until 18:00 on the day of arrival"),
    (0.90, "prepaid, not refundable"),
)


def search(query: HotelQuery, today: date) -> Offers:
    """Find rooms, the cheapest first.

    Raises:
        TravelError: city, dates, guests or price are not usable; the message says what to ask.
    """
    place = resolve(query.city, "city")
    _check(query, today)
    options = sorted((_option(query, place.airport, letter) for letter in _HOUSES), key=lambda option: option.price)
    if query.max_price is None:
        return Offers(tuple(options), reading(query.city, place))
    affordable = tuple(option for option in options if option.nightly_rate <= query.max_price)
    if not affordable:
        raise TravelError(
            f"no room in {place.airport.city} costs at most {money(query.max_price)} a night; the "
            f"cheapest is {money(options[0].nightly_rate)}; ask the user to raise the limit"
        )
    return Offers(affordable, reading(query.city, place))


def rebuild(parts: list[str], today: date) -> HotelOption | None:
    """Make the option of a decoded id again; None when there is none.

    Raises:
        TravelError: its day is past by now.
    """
    code, check_in, check_out, last = parts
    query = HotelQuery(code, option_ids.day(check_in), option_ids.day(check_out), int(last[:-1]))
    _check(query, today)
    return _option(query, airports()[code], last[-1]) if last[-1] in _HOUSES else None


def _check(query: HotelQuery, today: date) -> None:
    calendar.check_count(query.guests, "guest", MOST_GUESTS)
    calendar.check_start(query.check_in, "check_in", today)
    roles = ("check_in", "check_out")
    calendar.check_end(query.check_in, query.check_out, roles, least=1, most=LONGEST_STAY_DAYS)
    if query.max_price is not None and not query.max_price > 0:
        raise TravelError(f"`max_price` must be above 0, got {query.max_price!r}; leave it out for no limit")


def _option(query: HotelQuery, airport: Airport, letter: str) -> HotelOption:
    # Whichever airport was named, the hotels are those of its city.
    city = city_airport(airport)
    house = _HOUSES[letter]
    factor, terms = pick(_TERMS, "terms", city.code, letter)
    known = cities().get(city.code)
    usual = known.nightly_rate if known else _USUAL_RATE
    luck = 0.92 + 0.16 * draw("hotel", city.code, query.check_in, letter)
    rate = round(usual * house.rate_factor * factor * luck * calendar.season(query.check_in))
    rooms = ceil(query.guests / 2)
    nights = (query.check_out - query.check_in).days
    hotel = f"{pick(_FIRST_WORDS, 'name', city.code, letter)} {house.last_word}"
    stay = f"{query.check_in} to {query.check_out} ({counted(nights, 'night')})"
    return HotelOption(
        kind="hotel",
        option_id=option_ids.encode(KIND, city.code, query.check_in, query.check_out, f"{query.guests}{letter}"),
        headline=f"{hotel}, {city.city}, {country_name(city.country)}, {stay}, {counted(query.guests, 'guest')}",
        facts=(
            f"{house.stars} stars, {house.area}; {', '.join(_features(city, letter))}",
            f"{counted(rooms, 'room')}, {money(rate)} a night and room",
        ),
        starts=query.check_in,
        ends=query.check_out,
        # At least the guest who checks in.
        names_needed=(1, query.guests),
        price=float(rate * nights * rooms),
        terms=terms,
        nightly_rate=float(rate),
    )


def _features(city: Airport, letter: str) -> tuple[str, ...]:
    floors = between(3, 22, "floors", city.code, letter)
    breakfast = "breakfast included" if draw("breakfast", city.code, letter) < 0.5 else "breakfast extra"
    extra = pick(("gym", "rooftop bar", "quiet courtyard", "bicycles to borrow"), "extra", city.code, letter)
    return f"{floors} floors" + (", high floors on request" if floors > 8 else ""), breakfast, extra
