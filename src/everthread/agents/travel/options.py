"""What can be booked: typed options that describe themselves."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import ClassVar, Literal

Cabin = Literal["economy", "premium_economy", "business", "first"]
"""Cabins, the cheapest first."""

Kind = Literal["flight", "hotel", "car", "insurance"]


@dataclass(frozen=True, kw_only=True)
class Option(ABC):
    """Something that can be booked under its id."""

    kind: ClassVar[Kind]

    option_id: str
    price: float
    """Total for everyone and for the whole time, in `currency`."""
    currency: str
    """ISO 4217 code."""
    terms: str
    """What changing and cancelling costs."""
    source: str
    """Where the option comes from, such as `sandbox inventory, not a real offer`."""

    @property
    @abstractmethod
    def headline(self) -> str:
        """What and where, in one line."""

    @property
    @abstractmethod
    def starts(self) -> date:
        """First day, local."""

    @property
    @abstractmethod
    def ends(self) -> date:
        """Last day, local."""

    @property
    @abstractmethod
    def facts(self) -> tuple[str, ...]:
        """What distinguishes the option, one fact a line."""

    @property
    @abstractmethod
    def names_needed(self) -> tuple[int, int]:
        """Fewest and most travellers that a booking may name."""

    @property
    def total(self) -> str:
        """The price with its currency, such as `USD 1,234.00`."""
        return money(self.price, self.currency)

    def describe(self) -> str:
        """Describe the option for a list of results."""
        return "\n   ".join((f"`{self.option_id}` · {self.headline} · {self.total}", *self.facts, self.terms))


@dataclass(frozen=True)
class Segment:
    """One flight of a journey."""

    flight: str
    """Carrier and number."""
    origin: str
    """IATA code."""
    destination: str
    """IATA code."""
    departure: datetime
    """With the time zone of `origin`."""
    arrival: datetime
    """With the time zone of `destination`."""

    def __str__(self) -> str:
        return f"{self.flight} {self.origin} {self.departure:%Y-%m-%d %H:%M} → {self.destination} {_clock(self)}"


@dataclass(frozen=True)
class Journey:
    """Flights in one direction."""

    segments: tuple[Segment, ...]

    @property
    def departure(self) -> datetime:
        """Local time of the first take-off."""
        return self.segments[0].departure

    @property
    def arrival(self) -> datetime:
        """Local time of the last landing."""
        return self.segments[-1].arrival

    @property
    def duration(self) -> timedelta:
        """Time from the first take-off to the last landing, connections included."""
        # Two times with one `tzinfo` object would be subtracted as clock times, whatever the offsets.
        return timedelta(seconds=self.arrival.timestamp() - self.departure.timestamp())

    @property
    def stops(self) -> tuple[str, ...]:
        """IATA codes of the airports where one changes."""
        return tuple(segment.destination for segment in self.segments[:-1])

    def __str__(self) -> str:
        hours, minutes = divmod(int(self.duration.total_seconds()) // 60, 60)
        stops = f"{len(self.stops)} stop{'s' * (len(self.stops) > 1)} ({', '.join(self.stops)})"
        flights = "; ".join(str(segment) for segment in self.segments)
        return f"{hours} h {minutes:02d} min, {stops if self.stops else 'nonstop'}: {flights}"


@dataclass(frozen=True, kw_only=True)
class FlightOption(Option):
    """A journey, with the way back when one was asked for, for all travellers."""

    kind: ClassVar[Kind] = "flight"

    origin: str
    """City and code, such as `Paris (CDG)`."""
    destination: str
    outbound: Journey
    inbound: Journey | None
    cabin: Cabin
    fare: str
    baggage: str
    travellers: int

    @property
    def headline(self) -> str:
        """Route, dates and cabin."""
        trip = f"{self.starts} one way" if self.inbound is None else f"{self.starts} to {self.ends}"
        cabin = self.cabin.replace("_", " ")
        return f"flight {self.origin} → {self.destination}, {trip}, {cabin}, {counted(self.travellers, 'traveller')}"

    @property
    def starts(self) -> date:
        """Day of departure, local."""
        return self.outbound.departure.date()

    @property
    def ends(self) -> date:
        """Day of the last departure: the way back if there is one."""
        return (self.inbound or self.outbound).departure.date()

    @property
    def facts(self) -> tuple[str, ...]:
        """Both journeys, price for each traveller, fare and bags."""
        back = (f"back {self.inbound}",) if self.inbound else ()
        each = money(self.price / self.travellers, self.currency)
        return f"out {self.outbound}", *back, f"{self.fare} fare, {each} each; {self.baggage}"

    @property
    def names_needed(self) -> tuple[int, int]:
        """One name for each seat."""
        return self.travellers, self.travellers


@dataclass(frozen=True, kw_only=True)
class HotelOption(Option):
    """Rooms in a hotel for a stay."""

    kind: ClassVar[Kind] = "hotel"

    hotel: str
    city: str
    area: str
    stars: int
    """From 1 to 5."""
    features: tuple[str, ...]
    check_in: date
    check_out: date
    guests: int
    rooms: int
    nightly_rate: float
    """For one room, in `currency`."""

    @property
    def headline(self) -> str:
        """Hotel, city and dates."""
        return (
            f"{self.hotel}, {self.city}, {self.check_in} to {self.check_out} "
            f"({counted(self.nights, 'night')}), {counted(self.guests, 'guest')}"
        )

    @property
    def nights(self) -> int:
        """Length of the stay."""
        return (self.check_out - self.check_in).days

    @property
    def starts(self) -> date:
        """Day of arrival."""
        return self.check_in

    @property
    def ends(self) -> date:
        """Day of departure."""
        return self.check_out

    @property
    def facts(self) -> tuple[str, ...]:
        """Class, area, features and rate."""
        rate = money(self.nightly_rate, self.currency)
        return (
            f"{self.stars} stars, {self.area}; {', '.join(self.features)}",
            f"{counted(self.rooms, 'room')}, {rate} a night and room",
        )

    @property
    def names_needed(self) -> tuple[int, int]:
        """At least the guest who checks in."""
        return 1, self.guests


@dataclass(frozen=True, kw_only=True)
class CarOption(Option):
    """A rental car."""

    kind: ClassVar[Kind] = "car"

    supplier: str
    location: str
    category: str
    seats: int
    bags: int
    transmission: str
    collision_waiver: str
    """What is covered when the car is damaged, so that it can be compared with the traveller's own cover."""
    pick_up: date
    drop_off: date
    daily_rate: float

    @property
    def headline(self) -> str:
        """Category, supplier, place and dates."""
        return f"rental car ({self.category}), {self.supplier}, {self.location}, {self.pick_up} to {self.drop_off}"

    @property
    def starts(self) -> date:
        """Day of pick-up."""
        return self.pick_up

    @property
    def ends(self) -> date:
        """Day of return."""
        return self.drop_off

    @property
    def facts(self) -> tuple[str, ...]:
        """Size, rate and cover."""
        rate = money(self.daily_rate, self.currency)
        return (
            f"{self.seats} seats, {counted(self.bags, 'bag')}, {self.transmission}; {rate} a day, unlimited mileage",
            f"collision waiver: {self.collision_waiver}",
        )

    @property
    def names_needed(self) -> tuple[int, int]:
        """The driver, and further drivers up to the seats."""
        return 1, self.seats


@dataclass(frozen=True, kw_only=True)
class InsuranceOption(Option):
    """Travel insurance for one trip."""

    kind: ClassVar[Kind] = "insurance"

    plan: str
    destination: str
    start: date
    end: date
    covered_cost: float
    """Cost of the trip that is insured, in `currency`."""
    covers: tuple[str, ...]

    @property
    def headline(self) -> str:
        """Plan, destination and dates."""
        return f"{self.plan} travel insurance, {self.destination}, {self.start} to {self.end}"

    @property
    def starts(self) -> date:
        """First insured day."""
        return self.start

    @property
    def ends(self) -> date:
        """Last insured day."""
        return self.end

    @property
    def facts(self) -> tuple[str, ...]:
        """What is covered and up to how much."""
        return f"trip cost {money(self.covered_cost, self.currency)}", "; ".join(self.covers)

    @property
    def names_needed(self) -> tuple[int, int]:
        """Everyone who is insured."""
        return 1, 9


def money(amount: float, currency: str) -> str:
    """Write an amount, such as `USD 1,234.00`."""
    return f"{currency} {amount:,.2f}"


def counted(count: int, noun: str) -> str:
    """Write a count with its noun, such as `2 guests`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _clock(segment: Segment) -> str:
    """Write the arrival; the date only when it is another one."""
    same_day = segment.arrival.date() == segment.departure.date()
    return f"{segment.arrival:%H:%M}" if same_day else f"{segment.arrival:%Y-%m-%d %H:%M}"
