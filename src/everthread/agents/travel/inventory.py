"""What a source of offers must do; pass your own to `travel_tools`."""

import datetime
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from everthread.agents.travel.options import Cabin, FlightOption, HotelOption, Option

OptionT_co = TypeVar("OptionT_co", bound=Option, covariant=True)


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
    """Most that a night may cost for a room, in the inventory's currency."""


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
    """In the inventory's currency."""


@dataclass(frozen=True)
class Offers(Generic[OptionT_co]):
    """What a search found."""

    options: tuple[OptionT_co, ...]
    notes: tuple[str, ...] = ()
    """How the query was read, where it could be read in several ways."""


class Inventory(Protocol):
    """A source of offers.

    Every method raises `TravelError` when a query cannot be answered, with a message that tells the
    model what to ask or change. Methods are called from several threads.
    """

    def flights(self, query: FlightQuery) -> Offers[FlightOption]:
        """Find flights."""

    def hotels(self, query: HotelQuery) -> Offers[HotelOption]:
        """Find rooms."""

    def cars(self, query: CarQuery) -> Offers[Option]:
        """Find rental cars."""

    def insurance(self, query: InsuranceQuery) -> Offers[Option]:
        """Find insurance."""

    def option(self, option_id: str) -> Option:
        """Look an option up again, with its present price; what a model says about it is never trusted."""
