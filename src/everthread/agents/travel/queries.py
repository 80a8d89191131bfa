"""What can be searched for, and what a search gives."""

import datetime
from dataclasses import dataclass

from everthread.agents.travel.options import Cabin, Option


@dataclass(frozen=True)
class FlightQuery:
    """Flights asked for; places are IATA codes or names of cities."""

    origin: str
    destination: str
    date: datetime.date
    return_date: datetime.date | None = None
    cabin: Cabin = "economy"
    travellers: int = 1


@dataclass(frozen=True)
class HotelQuery:
    """Rooms asked for."""

    city: str
    check_in: datetime.date
    check_out: datetime.date
    guests: int = 1
    max_price: float | None = None
    """Most that a night may cost for a room, in USD."""


@dataclass(frozen=True)
class CarQuery:
    """Rental cars asked for."""

    city: str
    pick_up: datetime.date
    drop_off: datetime.date
    category: str | None = None


@dataclass(frozen=True)
class InsuranceQuery:
    """Insurance asked for."""

    destination: str
    start: datetime.date
    end: datetime.date
    trip_cost: float
    """In USD."""


@dataclass(frozen=True)
class Offers:
    """What a search found."""

    options: tuple[Option, ...]
    notes: tuple[str, ...] = ()
    """How the query was read, where it could be read in several ways."""
