"""Tools of the travel concierge."""

# No `from __future__ import annotations` here: langgraph finds the injected runtime by the annotation itself.

import inspect
from collections.abc import Callable
from datetime import date, datetime
from typing import Annotated, Any

from langchain_core.tools import BaseTool, StructuredTool
from langgraph.prebuilt import ToolRuntime
from langgraph.store.base import BaseStore
from langgraph.types import interrupt

from everthread.agents.travel import bookings
from everthread.agents.travel.approval import Approval, approval_request, read_approval
from everthread.agents.travel.errors import TravelError
from everthread.agents.travel.options import LABEL, Cabin, Option
from everthread.agents.travel.queries import CarQuery, FlightQuery, HotelQuery, InsuranceQuery, Offers
from everthread.agents.travel.sandbox import cars, flights, hotels, insurance
from everthread.agents.travel.sandbox import option as option_named
from everthread.plain import counted
from everthread.tools.runtime import thread_of, user_of

Runtime = ToolRuntime[Any, Any]

LONGEST_NAME = 80
"""Characters of one traveller's name."""

LONGEST_NOTE = 300
"""Characters of the note of a booking."""


def travel_tools(*, today: Callable[[], date] = date.today) -> tuple[BaseTool, ...]:
    """Make the tools: searches, insurance, booking with approval, list of bookings.

    Args:
        today: the day for searches and bookings; the clock of the machine by default.
    """
    desk = TravelDesk(today)
    calls = (
        desk.search_flights,
        desk.search_hotels,
        desk.search_rental_cars,
        desk.insurance_options,
        desk.book,
        desk.list_bookings,
    )
    # `getdoc` takes the indentation away, which Python itself does only from 3.13 on.
    return tuple(
        StructuredTool.from_function(
            call, description=inspect.getdoc(call), handle_tool_error=lambda error: f"Error: {error}."
        )
        for call in calls
    )


class TravelDesk:
    """The tools as methods; their docstrings are what the model reads."""

    def __init__(self, today: Callable[[], date]) -> None:
        self._today = today

    def search_flights(
        self,
        origin: Annotated[str, "City or IATA code of departure, such as 'San Francisco' or 'SFO'."],
        destination: Annotated[str, "City or IATA code of arrival."],
        date: Annotated[str, "Day of departure, YYYY-MM-DD."],
        return_date: Annotated[str | None, "Day of the way back, YYYY-MM-DD; leave out for one way."] = None,
        cabin: Annotated[Cabin, "Cabin for all flights."] = "economy",
        travellers: Annotated[int, "How many people fly, 1 to 9."] = 1,
    ) -> str:
        """Search flights. Times are local; prices are totals for all travellers. The only source of flight prices."""
        back = _day(return_date, "return_date") if return_date else None
        query = FlightQuery(origin, destination, _day(date, "date"), back, cabin, travellers)
        return _listing(flights.search(query, self._today()), "flight")

    def search_hotels(
        self,
        city: Annotated[str, "City, such as 'Paris'."],
        check_in: Annotated[str, "Day of arrival, YYYY-MM-DD."],
        check_out: Annotated[str, "Day of departure, YYYY-MM-DD."],
        guests: Annotated[int, "How many people stay, 1 to 8; two share a room."] = 1,
        max_price: Annotated[float | None, "Most in USD for a room and night; leave out for no limit."] = None,
    ) -> str:
        """Search hotels. Prices are totals for the stay and all rooms. The only source of hotel prices."""
        query = HotelQuery(city, _day(check_in, "check_in"), _day(check_out, "check_out"), guests, max_price)
        return _listing(hotels.search(query, self._today()), "hotel")

    def search_rental_cars(
        self,
        city: Annotated[str, "City or IATA code where the car is picked up and returned."],
        pick_up: Annotated[str, "Day of pick-up, YYYY-MM-DD."],
        drop_off: Annotated[str, "Day of return, YYYY-MM-DD."],
        category: Annotated[str | None, "economy, compact, midsize, suv, van or premium; leave out for all."] = None,
    ) -> str:
        """Search rental cars, with what the waiver covers. Prices are totals. The only source of car prices."""
        query = CarQuery(city, _day(pick_up, "pick_up"), _day(drop_off, "drop_off"), category)
        return _listing(cars.search(query, self._today()), "rental car")

    def insurance_options(
        self,
        destination: Annotated[str, "City of the trip."],
        start: Annotated[str, "First day of the trip, YYYY-MM-DD."],
        end: Annotated[str, "Last day of the trip, YYYY-MM-DD."],
        trip_cost: Annotated[float, "What the whole trip costs in USD."],
    ) -> str:
        """Compare travel insurance for a trip. Look first whether the user already has cover."""
        query = InsuranceQuery(destination, _day(start, "start"), _day(end, "end"), trip_cost)
        return _listing(insurance.search(query, self._today()), "insurance plan")

    def book(
        self,
        option_id: Annotated[str, "Id of the option, copied exactly from a search result."],
        travellers: Annotated[list[str], "Full name of each traveller; never document numbers."],
        runtime: Runtime,
        note: Annotated[str | None, "Wish for the provider, such as 'aisle seat, vegetarian meal'."] = None,
    ) -> str:
        """Book one option. The user is shown every detail and must approve before anything is booked.

        Call it once for each option, only after the user chose that option; each call is approved on its own.
        """
        store, user_id, thread_id = _store(runtime), user_of(runtime), thread_of(runtime)
        key = bookings.booking_key(thread_id, str(runtime.tool_call_id), option_id)
        booking = bookings.find(store, user_id, key)
        if booking:
            # The call ran again after the booking was stored, for example because the process died.
            return _confirmation(booking)
        option = option_named(option_id, self._today())
        names, wish = _names(option, travellers), _wish(note)
        approval = read_approval(interrupt(approval_request(option, names, wish)))
        if not approval.approved:
            return _refusal(approval)
        booking = bookings.book(
            store,
            user_id,
            key,
            option,
            travellers=names,
            booked_on=self._today(),
            note=wish,
            comment=approval.comment,
            thread_id=thread_id,
        )
        return _confirmation(booking)

    def list_bookings(self, runtime: Runtime) -> str:
        """List the user's bookings with all details, the earliest first."""
        found = bookings.all_bookings(_store(runtime), user_of(runtime))
        if not found:
            return "There are no bookings for this user."
        today = self._today()
        lines = [f"{counted(len(found), 'booking')}, today is {today}:"]
        for number, booking in enumerate(found, 1):
            lines.append(f"{number}. {'past' if booking.ends < today else 'upcoming'} · {booking.describe()}")
        return "\n".join(lines)


def _day(text: str, role: str) -> date:
    try:
        return datetime.strptime(text.strip(), "%Y-%m-%d").date()
    except ValueError:
        raise TravelError(
            f"`{role}` must be a date as YYYY-MM-DD, got {text[:40]!r}; work it out from today's date, or ask the user"
        ) from None


def _listing(offers: Offers, noun: str) -> str:
    """List options for the model: where they come from first, ids in front."""
    lines = [f"{counted(len(offers.options), noun)} ({LABEL}):"]
    lines += [f"{number}. {option.describe()}" for number, option in enumerate(offers.options, 1)]
    return "\n".join((*lines, *(f"Note: {note}." for note in offers.notes)))


def _names(option: Option, travellers: list[str]) -> list[str]:
    """Clean the names and check them against what the option was priced for."""
    names = [" ".join(name.split()) for name in travellers]
    for name in names:
        if not any(sign.isalpha() for sign in name) or any(sign.isdigit() for sign in name) or len(name) > LONGEST_NAME:
            raise TravelError(
                f"`travellers` holds {name[:LONGEST_NAME]!r}, which is no name; pass full names only, without numbers, "
                "and ask the user for those you do not know"
            )
    least, most = option.names_needed
    if not least <= len(names) <= most:
        needed = str(least) if least == most else f"{least} to {most}"
        raise TravelError(
            f"`travellers` has {counted(len(names), 'name')} but this option needs {needed}; ask the user who travels, "
            "or search again for the right number of people"
        )
    return names


def _wish(note: str | None) -> str:
    wish = " ".join((note or "").split())
    if len(wish) > LONGEST_NOTE:
        raise TravelError(f"`note` has {len(wish)} characters; shorten it to {LONGEST_NOTE}")
    return wish


def _confirmation(booking: bookings.Booking) -> str:
    comment = f"\nThe user added: {booking.comment}" if booking.comment else ""
    return f"Booked after the user's approval:\n{booking.describe()}{comment}"


def _refusal(approval: Approval) -> str:
    why = "the user declined" if approval.is_clear else f"the answer {approval.said!r} is not a clear yes"
    comment = f" and added: {approval.comment}" if approval.comment else ""
    return (
        f"Nothing was booked: {why}{comment}. Find out what the user wants changed; to book after all, call `book` "
        "again, which asks again."
    )


def _store(runtime: Runtime) -> BaseStore:
    if runtime.store is None:
        raise TravelError("this conversation has no store, so bookings can be neither kept nor listed; tell the user")
    return runtime.store
