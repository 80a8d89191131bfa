"""A sandbox of flights, hotels, cars and insurance: invented offers between real airports.

Nothing is stored and nothing is random: the same query gives the same options in any process. An option id holds its
whole query, so `option` derives price and details from the id alone.
"""

from collections.abc import Callable
from datetime import date

from everthread.agents.travel.options import Option
from everthread.agents.travel.sandbox import cars, flights, hotels, insurance, option_ids

__all__ = ["cars", "flights", "hotels", "insurance", "option"]

_REBUILD: dict[str, Callable[[list[str], date], Option | None]] = {
    flights.KIND: flights.rebuild,
    hotels.KIND: hotels.rebuild,
    cars.KIND: cars.rebuild,
    insurance.KIND: insurance.rebuild,
}


def option(option_id: str, today: date) -> Option:
    """Derive an option from its id; what a model says about it is never trusted.

    Raises:
        TravelError: no search returned the id, or its day is past by now.
    """
    kind, parts = option_ids.decode(option_id)
    try:
        found = _REBUILD[kind](parts, today)
    except (KeyError, ValueError, IndexError):
        # The check letters fit, but not to a query of ours: an id made by someone who knows the scheme.
        found = None
    if found is None or found.option_id != option_id.strip().strip("`").upper():
        raise option_ids.unknown(option_id)
    return found
