"""The sandbox behind the `Inventory` protocol."""

from collections.abc import Callable
from datetime import date

from everthread.agents.travel.inventory import CarQuery, FlightQuery, HotelQuery, InsuranceQuery, Offers
from everthread.agents.travel.options import FlightOption, HotelOption, Option
from everthread.agents.travel.sandbox import cars, flights, hotels, insurance, option_ids

_REBUILD: dict[str, Callable[[list[str], date], Option | None]] = {
    flights.KIND: flights.rebuild,
    hotels.KIND: hotels.rebuild,
    cars.KIND: cars.rebuild,
    insurance.KIND: insurance.rebuild,
}


class SandboxInventory:
    """Invented offers between real airports: the same query gives the same options in any process.

    Nothing is stored and nothing is random. An option id holds its whole query, so `option` derives
    price and details from the id alone.
    """

    def __init__(self, today: Callable[[], date] = date.today) -> None:
        self._today = today

    def flights(self, query: FlightQuery) -> Offers[FlightOption]:
        """Find flights."""
        return flights.search(query, self._today())

    def hotels(self, query: HotelQuery) -> Offers[HotelOption]:
        """Find rooms."""
        return hotels.search(query, self._today())

    def cars(self, query: CarQuery) -> Offers[Option]:
        """Find rental cars."""
        return cars.search(query, self._today())

    def insurance(self, query: InsuranceQuery) -> Offers[Option]:
        """Find insurance."""
        return insurance.search(query, self._today())

    def option(self, option_id: str) -> Option:
        """Derive an option from its id.

        Raises:
            TravelError: no search returned the id, or its day is past by now.
        """
        kind, parts = option_ids.decode(option_id)
        try:
            found = _REBUILD[kind](parts, self._today())
        except (KeyError, ValueError, IndexError):
            # The check letters fit, but not to a query of ours: an id made by someone who knows the scheme.
            found = None
        if found is None or found.option_id != option_id.strip().strip("`").upper():
            raise option_ids.unknown(option_id)
        return found
