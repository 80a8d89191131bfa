"""Which flights could exist: nonstop between big or near airports, otherwise through hubs."""

from functools import lru_cache
from itertools import pairwise

from everthread.agents.travel.sandbox.airports import Airport, distance_km, hubs

Route = tuple[Airport, ...]
"""Airports from the first to the last; two of them make a nonstop flight."""

SHORTEST_KM = 100
"""Below this nobody sells a flight."""

_REACH_KM = {
    ("hub", "hub"): 15_500,
    ("hub", "main"): 11_000,
    ("main", "main"): 3_500,
    ("hub", "small"): 4_000,
    ("main", "small"): 1_500,
    ("small", "small"): 400,
}
"""Longest nonstop flight by rank of both ends. The longest scheduled one, New York to Singapore, is about 15,300 km."""

_DETOUR = 1.5
"""Longest way through hubs, as a multiple of the direct distance."""

_DETOUR_KM = 500
"""Extra kilometres on top, without which short routes would have no connection."""


def is_served(start: Airport, end: Airport) -> bool:
    """Tell whether a nonstop flight is plausible."""
    first, second = sorted((start.rank, end.rank), key=("hub", "main", "small").index)
    return SHORTEST_KM <= distance_km(start, end) <= _REACH_KM[first, second]


def length_km(route: Route) -> float:
    """Return the distance along a route."""
    return sum(distance_km(start, end) for start, end in pairwise(route))


@lru_cache(maxsize=256)
def routes(origin: Airport, destination: Airport) -> tuple[Route, ...]:
    """Return the nonstop route if there is one, then up to three connections, the shortest first."""
    direct = ((origin, destination),) if is_served(origin, destination) else ()
    limit = _DETOUR * distance_km(origin, destination) + _DETOUR_KM
    # Two changes only when one does not do: nobody takes them otherwise.
    connections = _with_one_stop(origin, destination) or ([] if direct else _with_two_stops(origin, destination))
    sane = sorted((length_km(route), tuple(stop.code for stop in route), route) for route in connections)
    kept = [route for length, _, route in sane if length <= limit or not direct]
    return (*direct, *kept[:3])


def _with_one_stop(origin: Airport, destination: Airport) -> list[Route]:
    return [(origin, hub, destination) for hub in hubs() if is_served(origin, hub) and is_served(hub, destination)]


def _with_two_stops(origin: Airport, destination: Airport) -> list[Route]:
    near = [hub for hub in hubs() if is_served(origin, hub)]
    far = [hub for hub in hubs() if is_served(hub, destination)]
    return [(origin, first, second, destination) for first in near for second in far if is_served(first, second)]
