"""The sandbox inventory: the same query gives the same options, with sane times, prices and errors."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any, get_args
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everthread.agents.travel.errors import TravelError
from everthread.agents.travel.options import LABEL, Cabin, Journey, Option, Segment
from everthread.agents.travel.queries import CarQuery, FlightQuery, HotelQuery, InsuranceQuery
from everthread.agents.travel.sandbox import cars, flights, hotels, insurance, option_ids
from everthread.agents.travel.sandbox import option as option_named
from everthread.agents.travel.sandbox.airports import airports, cities
from everthread.agents.travel.sandbox.flights import flight_time

TODAY = date(2026, 11, 21)
OUT, BACK = date(2026, 12, 4), date(2026, 12, 11)
ROUND_TRIP = FlightQuery("San Francisco", "Paris", OUT, BACK)


def search(query: Any) -> Any:
    product = {FlightQuery: flights, HotelQuery: hotels, CarQuery: cars, InsuranceQuery: insurance}[type(query)]
    return product.search(query, TODAY)


def every_kind() -> list[Option]:
    return [
        *search(ROUND_TRIP).options,
        *search(HotelQuery("Paris", OUT, BACK, guests=3)).options,
        *search(CarQuery("Lisbon", OUT, BACK)).options,
        *search(InsuranceQuery("Tokyo", OUT, BACK, 2500)).options,
    ]


def test_every_process_gives_the_same_options() -> None:
    # Python's own hash has another seed in each process that runs this.
    assert [(one.option_id, one.total) for one in every_kind() if one.option_id[-6:-5] == "A"] == [
        ("FLT-SFO-CDG-20261204-20261211-E1A-7WET", "USD 1,072.00"),
        ("HTL-CDG-20261204-20261211-3A-F25U", "USD 4,004.00"),
        ("CAR-LIS-20261204-20261211-A-FQYN", "USD 329.00"),
        ("INS-HND-20261204-20261211-2500-A-CSWC", "USD 97.10"),
    ]
    assert search(ROUND_TRIP).options[0].facts[:2] == (
        "out 11 h 10 min, nonstop: Northwind 103 SFO 2026-12-04 07:55 → CDG 2026-12-05 04:05",
        "back 11 h 10 min, nonstop: Lumen Air 497 CDG 2026-12-11 07:30 → SFO 09:40",
    )


def test_a_later_day_does_not_change_an_option() -> None:
    option = search(ROUND_TRIP).options[0]

    assert option_named(option.option_id, OUT) == option


def test_every_option_is_rebuilt_from_its_id_alone() -> None:
    for option in every_kind():
        assert option_named(option.option_id, TODAY) == option


def test_every_option_says_that_it_is_from_the_sandbox() -> None:
    assert {option.source for option in every_kind()} == {LABEL}


def test_an_id_survives_lower_case_and_backticks() -> None:
    option = search(ROUND_TRIP).options[0]

    assert option_named(f" `{option.option_id.lower()}` ", TODAY) == option


@pytest.mark.parametrize(
    "tamper",
    [
        lambda option_id: option_id.replace("-E1A-", "-F1A-"),
        lambda option_id: option_id.replace("-E1A-", "-E2A-"),
        lambda option_id: option_id.replace("20261204", "20261205"),
        lambda option_id: option_id.replace("CDG", "ORY"),
        lambda option_id: option_id[:-4] + "AAAA",
        lambda option_id: option_id[:-5],
        lambda option_id: "the cheap one",
        lambda option_id: "",
    ],
)
def test_a_changed_id_is_refused(tamper: Callable[[str], str]) -> None:
    option_id = search(ROUND_TRIP).options[0].option_id

    with pytest.raises(TravelError, match="no search returned"):
        option_named(tamper(option_id), TODAY)


@pytest.mark.parametrize(
    ("kind", "parts"),
    [
        ("FLT", ("QQQ", "CDG", OUT, "E1A")),
        ("FLT", ("SFO", "CDG", OUT, "X1A")),
        ("FLT", ("SFO", "CDG", OUT, "E1Z")),
        ("FLT", ("SFO", "CDG")),
        ("HTL", ("LGW", OUT, BACK, "2A")),
        ("HTL", ("CDG", OUT, BACK, "2Z")),
        ("CAR", ("CDG", "soon", BACK, "A")),
        ("INS", ("CDG", OUT, BACK, "1e3", "A")),
        ("TRN", ("CDG", OUT)),
    ],
)
def test_a_made_up_query_with_the_right_check_letters_is_refused(kind: str, parts: tuple[object, ...]) -> None:
    with pytest.raises(TravelError, match="no search returned"):
        option_named(option_ids.encode(kind, *parts), TODAY)


def test_an_option_whose_day_has_passed_is_refused() -> None:
    option = search(ROUND_TRIP).options[0]

    with pytest.raises(TravelError, match="in the past"):
        option_named(option.option_id, OUT + timedelta(days=1))


def test_times_are_local_and_the_flight_takes_as_long_as_the_distance_needs() -> None:
    flight = search(FlightQuery("SFO", "CDG", OUT)).options[0].outbound.segments[0]

    assert flight.departure.tzinfo == ZoneInfo("America/Los_Angeles")
    assert flight.arrival.utcoffset() == timedelta(hours=1)
    elapsed = flight.arrival.astimezone(UTC) - flight.departure.astimezone(UTC)
    assert elapsed == flight_time(airports()["SFO"], airports()["CDG"])
    assert timedelta(hours=10) < elapsed < timedelta(hours=12)


def test_a_change_to_summer_time_during_a_flight_does_not_change_its_length() -> None:
    evening = search(FlightQuery("LAX", "LHR", date(2027, 3, 13))).options[1].outbound

    # The clock in Los Angeles jumps from 2 to 3 while this flight is in the air.
    assert evening.departure.hour >= 16
    assert evening.duration == flight_time(airports()["LAX"], airports()["LHR"])


def test_the_duration_counts_real_hours_within_one_zone() -> None:
    zone = ZoneInfo("America/New_York")
    night = datetime(2027, 3, 14, 0, 30, tzinfo=zone), datetime(2027, 3, 14, 6, 30, tzinfo=zone)

    # The clock jumps from 2 to 3 in this night.
    assert Journey((Segment("Halcyon 1", "JFK", "MIA", *night),)).duration == timedelta(hours=5)


def test_the_date_line_is_crossed_by_the_calendar_of_each_place() -> None:
    flight = search(FlightQuery("Auckland", "Los Angeles", OUT)).options[0].outbound

    assert flight.arrival.date() == OUT
    assert flight.arrival.hour < flight.departure.hour


@pytest.mark.parametrize("route", [("SFO", "CDG"), ("Paris", "Barcelona"), ("Springfield", "Nantucket")])
def test_the_price_grows_with_the_cabin(route: tuple[str, str]) -> None:
    by_cabin = [search(FlightQuery(*route, OUT, BACK, cabin)).options for cabin in get_args(Cabin)]

    for cheaper, dearer in pairwise(by_cabin):
        assert all(less.price < more.price for less, more in zip(cheaper, dearer, strict=True))


def test_the_price_is_for_all_travellers() -> None:
    alone, four = (search(FlightQuery("SFO", "CDG", OUT, travellers=count)).options for count in (1, 4))

    assert [option.price * 4 for option in alone] == [option.price for option in four]


def test_a_farther_flight_costs_more() -> None:
    prices = [search(FlightQuery("LHR", end, OUT)).options[0].price for end in ("CDG", "IST", "SIN")]

    assert prices == sorted(prices)
    assert prices[0] * 2 < prices[2]


def test_long_routes_offer_a_cheaper_connection_through_a_hub() -> None:
    nonstop, _, connection, *_ = search(ROUND_TRIP).options

    assert nonstop.outbound.stops == ()
    assert len(connection.outbound.stops) == 1
    assert connection.price < nonstop.price


def test_beyond_the_reach_of_an_aircraft_every_journey_has_a_stop() -> None:
    options = search(FlightQuery("Sydney", "London", OUT)).options

    assert all(option.outbound.stops for option in options)


codes = st.sampled_from([*sorted(cities()), "ACK", "PWM", "YXU", "IPC", "TOM"])


@settings(max_examples=60, deadline=None)
@given(codes, codes, st.integers(0, 60), st.none() | st.integers(0, 30), st.integers(1, 9))
def test_any_search_gives_consistent_options_or_a_clear_error(
    origin: str, destination: str, ahead: int, stay: int | None, travellers: int
) -> None:
    out = TODAY + timedelta(days=ahead)
    back = None if stay is None else out + timedelta(days=stay)
    try:
        found = search(FlightQuery(origin, destination, out, back, "economy", travellers)).options
    except TravelError:
        return
    for option in found:
        assert option.outbound.departure.date() == out
        assert (option.inbound is None) == (back is None)
        for journey in filter(None, (option.outbound, option.inbound)):
            times = [moment for part in journey.segments for moment in (part.departure, part.arrival)]
            instants = [moment.astimezone(UTC) for moment in times]
            assert instants == sorted(instants)
        if option.inbound:
            assert option.inbound.departure.astimezone(UTC) > option.outbound.arrival.astimezone(UTC)
        assert option_named(option.option_id, TODAY) == option


@pytest.mark.parametrize(
    ("query", "said"),
    [
        (FlightQuery("SFO", "CDG", date(2026, 11, 20)), "2026-11-20 is in the past (today is 2026-11-21)"),
        (FlightQuery("SFO", "CDG", BACK, OUT), "`return_date` 2026-12-04 is before `date` 2026-12-11"),
        (FlightQuery("SFO", "CDG", date(2028, 1, 1)), "at most 365 days ahead"),
        (FlightQuery("SFO", "CDG", OUT, travellers=10), "from 1 to 9"),
        (FlightQuery("SFO", "CDG", OUT, travellers=0), "from 1 to 9"),
        (FlightQuery("LHR", "LGW", OUT), "too near for a flight"),
        (FlightQuery("LHR", "SYD", OUT, OUT), "ask the user for a later `return_date`"),
        (FlightQuery("Xyzzy", "CDG", OUT), "`origin` 'Xyzzy'"),
        (FlightQuery("SFO", "", OUT), "`destination` is empty"),
    ],
)
def test_a_flight_search_that_cannot_be_answered_says_what_to_ask(query: FlightQuery, said: str) -> None:
    with pytest.raises(TravelError) as caught:
        search(query)

    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        (HotelQuery("Paris", OUT, OUT), "on the same day as"),
        (HotelQuery("Paris", date(2026, 1, 1), OUT), "in the past"),
        (HotelQuery("Paris", OUT, OUT + timedelta(days=61)), "at most 60"),
        (HotelQuery("Paris", OUT, BACK, guests=9), "from 1 to 8"),
        (HotelQuery("Paris", OUT, BACK, max_price=5), "the cheapest is USD"),
        (HotelQuery("Paris", OUT, BACK, max_price=float("nan")), "must be above 0"),
    ],
)
def test_a_hotel_search_that_cannot_be_answered_says_what_to_ask(query: HotelQuery, said: str) -> None:
    with pytest.raises(TravelError) as caught:
        search(query)

    assert said in str(caught.value)


def test_a_price_limit_keeps_only_rooms_under_it() -> None:
    rooms = search(HotelQuery("Paris", OUT, BACK)).options
    limit = rooms[2].nightly_rate

    under = search(HotelQuery("Paris", OUT, BACK, max_price=limit)).options

    assert under == tuple(room for room in rooms if room.nightly_rate <= limit)
    assert 0 < len(under) < len(rooms)


def test_hotels_of_a_city_are_the_same_from_each_of_its_airports() -> None:
    by_airport = [search(HotelQuery(name, OUT, BACK)).options for name in ("London", "LGW", "LHR")]

    assert by_airport[0] == by_airport[1] == by_airport[2]


def test_two_guests_share_a_room_and_a_third_needs_another() -> None:
    rooms = [search(HotelQuery("Oslo", OUT, BACK, guests=count)).options[0] for count in (2, 3)]

    assert [room.facts[1].partition(",")[0] for room in rooms] == ["1 room", "2 rooms"]
    assert rooms[1].price == rooms[0].price * 2


def test_a_class_of_car_can_be_asked_for() -> None:
    (car,) = search(CarQuery("LIS", OUT, BACK, "SUV")).options

    assert car.headline.startswith("rental car (suv)")
    with pytest.raises(TravelError, match="choose one of economy, compact"):
        search(CarQuery("LIS", OUT, BACK, "tank"))


def test_insurance_costs_more_for_a_dearer_trip_and_a_better_plan() -> None:
    cheap, dear = (search(InsuranceQuery("Tokyo", OUT, BACK, cost)).options for cost in (1000, 5000))

    assert all(less.price < more.price for less, more in zip(cheap, dear, strict=True))
    assert [plan.price for plan in cheap] == sorted(plan.price for plan in cheap)


@pytest.mark.parametrize("cost", [0, -5, 1e9, float("nan")])
def test_a_trip_cost_that_nobody_insures_is_refused(cost: float) -> None:
    with pytest.raises(TravelError, match="`trip_cost`"):
        search(InsuranceQuery("Tokyo", OUT, BACK, cost))


def test_an_ambiguous_place_is_noted_with_the_options() -> None:
    notes = search(FlightQuery("San Jose", "Denver", OUT)).notes

    assert notes == (
        "'San Jose' was read as San Jose, California, United States (SJC); "
        "it could also mean San Jose, Costa Rica (SJO)",
    )
