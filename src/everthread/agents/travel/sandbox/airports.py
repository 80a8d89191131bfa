"""Real airports with their place, time zone and rank; read once, when first needed."""

import csv
import unicodedata
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import asin, cos, radians, sin, sqrt
from typing import Literal
from zoneinfo import ZoneInfo

import airportsdata

EARTH_RADIUS_KM = 6371.0088
"""Mean radius. Source: IUGG."""

Rank = Literal["hub", "main", "small"]
"""`hub`: flights connect here; `main`: airport of a big or much visited city; `small`: all others."""

_ONE_LETTER = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th", "ð": "d"})


@dataclass(frozen=True)
class Airport:
    """An airport with a IATA code."""

    code: str
    """IATA code, three capital letters."""
    name: str
    city: str
    subdivision: str
    """State, province or region; may be empty."""
    country: str
    """ISO 3166-1 alpha-2 code."""
    latitude: float
    longitude: float
    time_zone: str
    """IANA name."""
    rank: Rank
    is_listed: bool
    """Whether it has an ICAO code, which airfields of little traffic often lack."""

    @property
    def zone(self) -> ZoneInfo:
        """The time zone; loaded only for airports that a search touches."""
        return ZoneInfo(self.time_zone)

    def __str__(self) -> str:
        return f"{self.city} ({self.code})"


@dataclass(frozen=True)
class City:
    """A city worth knowing by name, with its main airport."""

    code: str
    """IATA code of the main airport; also the key of the city."""
    rank: Rank
    metro: str
    """IATA code of the city when it differs from its airports', such as `LON`; may be empty."""
    others: tuple[str, ...]
    """IATA codes of its other airports."""
    nightly_rate: int
    """What a middling room costs a night in USD; an estimate that only the sandbox uses."""
    names: tuple[str, ...]
    """The name to show, then other names."""


@cache
def cities() -> dict[str, City]:
    """Return the known cities by the code of their main airport."""
    table = (files(__package__) / "cities.csv").read_text(encoding="utf-8").splitlines()
    return {row["code"]: _city(row) for row in csv.DictReader(table)}


def _city(row: dict[str, str]) -> City:
    return City(
        code=row["code"],
        rank="hub" if row["rank"] == "hub" else "main",
        metro=row["metro"],
        others=tuple(row["also"].split()),
        nightly_rate=int(row["night"]),
        names=tuple(row["names"].split("|")),
    )


@cache
def city_by_airport() -> dict[str, City]:
    """Return the known cities by the code of each of their airports."""
    return {code: city for city in cities().values() for code in (city.code, *city.others)}


@cache
def airports() -> dict[str, Airport]:
    """Return all airports by IATA code; the first call reads the table, which takes about 0.1 s."""
    known = city_by_airport()
    return {code: _airport(row, known.get(code)) for code, row in airportsdata.load("IATA").items()}


def _airport(row: airportsdata.Airport, city: City | None) -> Airport:
    is_main = city is not None and row["iata"] == city.code
    return Airport(
        code=row["iata"],
        name=row["name"],
        city=city.names[0] if city and is_main else row["city"] or row["name"],
        subdivision=row["subd"],
        country=row["country"],
        latitude=row["lat"],
        longitude=row["lon"],
        time_zone=row["tz"] or "UTC",
        # The second airport of a hub has the flights of a big city but no connections.
        rank=(city.rank if is_main else "main") if city else "small",
        is_listed=bool(row["icao"]),
    )


@cache
def hubs() -> tuple[Airport, ...]:
    """Return the airports where flights connect, by code."""
    return tuple(airports()[code] for code, city in sorted(cities().items()) if city.rank == "hub")


def distance_km(start: Airport, end: Airport) -> float:
    """Return the great-circle distance."""
    latitudes = radians(start.latitude), radians(end.latitude)
    across = radians(end.longitude - start.longitude)
    half = sin((latitudes[1] - latitudes[0]) / 2) ** 2 + cos(latitudes[0]) * cos(latitudes[1]) * sin(across / 2) ** 2
    return 2 * EARTH_RADIUS_KM * asin(min(1.0, sqrt(half)))


def fold(text: str) -> str:
    """Reduce a name to what matters for comparing: no accents, case or punctuation; `st` for `saint`."""
    plain = unicodedata.normalize("NFKD", text.casefold().translate(_ONE_LETTER))
    letters = (sign for sign in plain if sign not in ".'’" and not unicodedata.combining(sign))
    words = "".join(sign if sign.isalnum() else " " for sign in letters).split()
    return " ".join("st" if word == "saint" else word for word in words)
