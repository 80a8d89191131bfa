"""Origins, destinations and cities in English sentences."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everthread.agents.offline.places import HOME, city_in, named_alone, route_in


@pytest.mark.parametrize(
    ("text", "origin", "destination"),
    [
        ("Book me a flight to Paris ; .", None, "Paris"),
        ("Fly from San Francisco to New York", "San Francisco", "New York"),
        ("a flight to Rome from Berlin, please", "Berlin", "Rome"),
        ("flight Berlin to Rome", "Berlin", "Rome"),
        ("SFO-CDG ;", "SFO", "CDG"),
        ("SFO → JFK", "SFO", "JFK"),
        ("I want to go to São Paulo", None, "São Paulo"),
        ("to Rio de Janeiro and a hotel", None, "Rio de Janeiro"),
        ("to St. John's with two bags", None, "St. John's"),
        ("flight to chicago", None, "chicago"),
        ("flights from lisbon to porto", "lisbon", "porto"),
        ("fly home from Madrid", "Madrid", HOME),
        ("take me to 東京", None, "東京"),
        ("I want to visit Kyoto", None, "Kyoto"),
        ("I really want to sleep", None, None),
        ("From now on I want to be early", None, None),
        ("Book me a flight", None, None),
        ("", None, None),
    ],
)
def test_routes_are_read(text: str, origin: str | None, destination: str | None) -> None:
    route = route_in(text)

    assert (route.origin, route.destination) == (origin, destination)


def test_home_is_left_to_the_profile() -> None:
    assert route_in("take me to my home").destination == HOME


@pytest.mark.parametrize(
    ("text", "city"),
    [
        ("in Rome ; to ;", "Rome"),
        ("near Lake Como", "Lake Como"),
        ("in rome under 200", "rome"),
        ("Barcelona for 2 people", "Barcelona"),
        ("in a quiet area", None),
        ("the cheapest one", None),
    ],
)
def test_cities_are_read(text: str, city: str | None) -> None:
    assert city_in(text) == city


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("Berlin", "Berlin"),
        ("berlin", "berlin"),
        ("from Lisbon, please", "Lisbon"),
        ("I fly from Oakland", "Oakland"),
        ("oh, and before I forget, what is it that you do know about my tastes", None),
    ],
)
def test_a_short_answer_is_read_as_a_place(text: str, place: str | None) -> None:
    assert named_alone(text) == place


@given(st.text(max_size=300))
def test_any_text_is_read_without_an_error(text: str) -> None:
    places = (*vars(route_in(text)).values(), city_in(text), named_alone(text))

    assert all(place is None or place for place in places)
