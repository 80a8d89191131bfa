"""What can be booked, described in words, and the journeys of a flight."""

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Literal

Cabin = Literal["economy", "premium_economy", "business", "first"]
"""Cabins, the cheapest first."""

CURRENCY = "USD"
"""All prices of the sandbox."""

LABEL = "sandbox inventory, not a real offer"
"""Shown wherever an option or a booking is."""

Kind = Literal["flight", "hotel", "car", "insurance"]


@dataclass(frozen=True, kw_only=True)
class Details:
    """What can be booked, or was, in words and figures."""

    option_id: str
    kind: Kind
    headline: str
    """What, where and when, in one line."""
    facts: tuple[str, ...]
    """What distinguishes it, one fact a line."""
    starts: date
    """First day, local."""
    ends: date
    """Last day, local; of a flight, the day of the last departure."""
    price: float
    """Total for everyone and for the whole time, in `currency`."""
    currency: str = CURRENCY
    terms: str
    """What changing and cancelling costs."""
    source: str = LABEL

    @property
    def total(self) -> str:
        """The price with its currency, such as `USD 1,234.00`."""
        return money(self.price, self.currency)


@dataclass(frozen=True, kw_only=True)
class Option(Details):
    """Something that can be booked under its id."""

    names_needed: tuple[int, int]
    """Fewest and most travellers that a booking may name."""

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

    outbound: Journey
    inbound: Journey | None


@dataclass(frozen=True, kw_only=True)
class HotelOption(Option):
    """Rooms in a hotel for a stay."""

    nightly_rate: float
    """For one room, in `currency`."""


def money(amount: float, currency: str = CURRENCY) -> str:
    """Write an amount, such as `USD 1,234.00`."""
    return f"{currency} {amount:,.2f}"


def _clock(segment: Segment) -> str:
    """Write the arrival; the date only when it is another one."""
    same_day = segment.arrival.date() == segment.departure.date()
    return f"{segment.arrival:%H:%M}" if same_day else f"{segment.arrival:%Y-%m-%d %H:%M}"
