"""Find the airport that a traveller means by a code, a city or an airport's name."""

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib.resources import files

from everthread.agents.travel.errors import TravelError
from everthread.agents.travel.sandbox.airports import Airport, airports, cities, city_by_airport, fold

_CODE = re.compile(r"[A-Z]{3}")

_NOT_FOR_TRAVELLERS = re.compile(
    r"\b(?:afb|air|army|base|field|heliport|heli|helipad|military|municipal|naval|raf|seaplane|skyports|station|strip)\b"
)
"""Words in the names of airports that hardly sell tickets."""

_GENERIC = frozenset(["airport", "intl", "international", "city", "metropolitan", "all", "airports"])

SHOWN = 5
"""How many candidates an error names."""


@dataclass(frozen=True)
class Place:
    """What a text was read as."""

    airport: Airport
    others: tuple[Airport, ...] = ()
    """Airports elsewhere that the same text could mean, the likeliest first."""


def resolve(text: str, role: str = "place") -> Place:
    """Find the airport for a IATA code, city, or airport name, optionally with state or country.

    Args:
        role: name of the argument, for the error.

    Raises:
        TravelError: nothing matches, or the text is a whole country; candidates are named.
    """
    if not text.strip():
        raise TravelError(f"`{role}` is empty; ask the user which city or airport")
    code = _code_in(text)
    if code:
        return Place(code)
    found = _by_name(text)
    if not found and _is_region(text):
        raise TravelError(_too_wide(text, role))
    found = found or _by_words(text)
    if not found:
        raise TravelError(_unknown(text, role))
    best = found[0]
    if best.code in cities():
        # A well-known city needs no question; others of the same name matter only if well known too.
        return Place(best, tuple(other for other in found[1:] if other.code in cities())[:SHOWN])
    return Place(best, tuple(_elsewhere(best, found))[:SHOWN])


def reading(text: str, place: Place) -> tuple[str, ...]:
    """Say how a text was read when it could mean several places; empty when it could not."""
    if not place.others:
        return ()
    return (f"{text!r} was read as {where(place.airport)}; it could also mean {_listed(place.others)}",)


def city_airport(airport: Airport) -> Airport:
    """Return the main airport of an airport's city, which stands for the city as a whole."""
    city = city_by_airport().get(airport.code)
    return airports()[city.code] if city else airport


def where(airport: Airport) -> str:
    """Name an airport so that no other can be meant, such as `Paris, France (CDG)`."""
    state = f", {airport.subdivision}" if airport.country in {"US", "CA", "AU"} and airport.subdivision else ""
    return f"{airport.city}{state}, {country_name(airport.country)} ({airport.code})"


def country_name(code: str) -> str:
    """Return the English name of a country; its code when we have none."""
    return _regions().get(code, (code,))[0]


@cache
def _regions() -> dict[str, tuple[str, ...]]:
    """Return names by country code (`FR`) or country and state (`US-TX`)."""
    table = (files(__package__) / "regions.csv").read_text(encoding="utf-8").splitlines()
    return {row["code"]: tuple(row["names"].split("|")) for row in csv.DictReader(table)}


@cache
def _region_codes() -> dict[str, frozenset[str]]:
    """Return the codes that a folded region name can mean; `georgia` is a country and a state."""
    found: dict[str, set[str]] = {}
    for code, names in _regions().items():
        for name in (*names, code.split("-")[-1]):
            found.setdefault(fold(name), set()).add(code)
    return {name: frozenset(codes) for name, codes in found.items()}


@cache
def _known_cities() -> dict[str, tuple[str, ...]]:
    """Return codes of main airports by folded city name, in the order of the table."""
    found: dict[str, list[str]] = {}
    for city in cities().values():
        for name in city.names:
            found.setdefault(fold(name), []).append(city.code)
    return {name: tuple(dict.fromkeys(codes)) for name, codes in found.items()}


@cache
def _metros() -> dict[str, str]:
    return {city.metro: city.code for city in cities().values() if city.metro}


@cache
def _city_names() -> dict[str, tuple[Airport, ...]]:
    """Return airports by folded city name, the likeliest first."""
    found: dict[str, list[Airport]] = {}
    for airport in airports().values():
        # The table writes `Yogyakarta, Java Island` and `Toulouse/Blagnac`.
        for name in {fold(part) for part in (airport.city, *re.split(r"[,/]", airport.city))} - {""}:
            found.setdefault(name, []).append(airport)
    # A city of just this name comes before one that shares its name with another.
    return {
        name: tuple(sorted(group, key=lambda airport: (fold(airport.city) != name, *_unlikeliness(airport))))
        for name, group in found.items()
    }


def _unlikeliness(airport: Airport) -> tuple[object, ...]:
    """Sort key: the table has no passenger numbers, so rank, name and codes must tell big from small."""
    name = fold(airport.name)
    return (
        ("hub", "main", "small").index(airport.rank),
        _NOT_FOR_TRAVELLERS.search(name) is not None,
        "international" not in name.split(),
        not airport.is_listed,
        airport.code,
    )


def _code_in(text: str) -> Airport | None:
    """Return the airport whose code the text is, or holds as in `Paris (CDG)` or `Paris CDG`."""
    plain = text.strip()
    if _CODE.fullmatch(plain):
        found = airports().get(_metros().get(plain, plain))
        # `USA` is an airfield in North Carolina, but nobody means that.
        return None if found and found.rank == "small" and _is_region(plain) else found
    if plain.upper() == plain:
        # In capitals every word of three letters looks like a code: `NEW YORK` is not New Orleans Lakefront.
        return None
    held = [airports()[code] for code in re.findall(r"\b[A-Z]{3}\b", plain) if code in airports()]
    words = set(fold(plain).split())
    return next((found for found in held if words & set(fold(f"{found.city} {found.name}").split())), None)


def _by_name(text: str) -> list[Airport]:
    """Return the airports of a city, the likeliest first; regions after a comma must fit."""
    name, regions = _parts(text)
    known = [airports()[code] for code in _known_cities().get(name, ())]
    found = [*known, *(other for other in _city_names().get(name, ()) if other not in known)]
    return [airport for airport in found if all(_lies_in(airport, region) for region in regions)]


def _by_words(text: str) -> list[Airport]:
    """Return airports whose city and name together hold all words, such as `heathrow`; then a code in any case."""
    name, regions = _parts(text)
    words = set(name.split())
    hits = [
        airport
        for airport in (airports().values() if max(map(len, words), default=0) > 3 else ())
        if words <= set(fold(f"{airport.city} {airport.name}").split())
        and all(_lies_in(airport, region) for region in regions)
    ]
    code = text.strip().upper()
    by_code = airports().get(_metros().get(code, code)) if not hits else None
    return [by_code] if by_code else sorted(hits, key=_unlikeliness)


def _parts(text: str) -> tuple[str, list[str]]:
    """Split `Portland Airport, Maine` into the folded name and the folded regions."""
    head, *regions = (fold(part) for part in text.replace("(", ",").replace(")", "").split(","))
    if head in _known_cities():
        return head, regions
    return " ".join(word for word in head.split() if word not in _GENERIC) or head, regions


def _is_region(text: str) -> bool:
    """Tell whether a text is the name of a country or state, and not just its code."""
    return any(fold(text) == fold(name) for code in _region_codes().get(fold(text), ()) for name in _regions()[code])


def _lies_in(airport: Airport, region: str) -> bool:
    codes = _region_codes().get(region)
    # What is no country or state we know cannot rule anything out.
    if codes is None or region == fold(airport.subdivision):
        return True
    return any(
        code == airport.country
        or (code.startswith(f"{airport.country}-") and fold(airport.subdivision) == fold(_regions()[code][0]))
        for code in codes
    )


def _elsewhere(best: Airport, found: list[Airport]) -> list[Airport]:
    """Return the candidates that are in another region than the best one, one for each region."""
    seen = {(best.country, best.subdivision)}
    others = []
    for airport in found:
        region = (airport.country, airport.subdivision)
        if region not in seen:
            seen.add(region)
            others.append(airport)
    return others


def _too_wide(text: str, role: str) -> str:
    """Return the message for a whole country or state."""
    main = sorted((airports()[code] for code in cities()), key=lambda airport: airport.rank != "hub")
    inside = [airport for airport in main if _lies_in(airport, fold(text))][:SHOWN]
    example = f", for example {_listed(inside)}" if inside else ""
    return f"`{role}` {text!r} is a region, not a city; ask the user which city{example}"


def _unknown(text: str, role: str) -> str:
    """Return the message for a text that names no airport: what it may have meant, and what to ask."""
    head = fold(text.split(",")[0])
    same_name = [airports()[code] for code in _known_cities().get(head, ())] or list(_city_names().get(head, ()))
    close = get_close_matches(head, [*_known_cities(), *_city_names()], n=SHOWN, cutoff=0.75)
    similar = [
        airports()[_known_cities()[match][0]] if match in _known_cities() else _city_names()[match][0]
        for match in dict.fromkeys(close)
    ]
    candidates = list(dict.fromkeys(same_name or similar))[:SHOWN]
    hint = f"candidates: {_listed(candidates)}; ask the user which one" if candidates else "ask the user"
    return f"no airport or city matches `{role}` {text[:60]!r}; {hint}, or pass the IATA code of an airport"


def _listed(found: Sequence[Airport]) -> str:
    return "; ".join(where(airport) for airport in found)
