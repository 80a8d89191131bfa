"""Places: codes, names, ambiguity, and errors that name candidates."""

import pytest

from everthread.agents.travel.errors import TravelError
from everthread.agents.travel.sandbox.airports import airports, cities, distance_km, fold
from everthread.agents.travel.sandbox.places import city_airport, country_name, resolve, where


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("CDG", "CDG"),
        ("lgw", "LGW"),
        ("Paris", "CDG"),
        ("paris, france", "CDG"),
        ("Paris, Texas", "PRX"),
        ("Paris (ORY)", "ORY"),
        ("Paris CDG", "CDG"),
        ("NYC", "JFK"),
        ("NEW YORK", "JFK"),
        ("New York, NY", "JFK"),
        ("London, Ontario", "YXU"),
        ("Heathrow", "LHR"),
        ("Charles de Gaulle airport", "CDG"),
        ("São Paulo", "GRU"),
        ("München", "MUC"),
        ("St. Louis", "STL"),
        ("Saint Louis", "STL"),
        ("Portland, ME", "PWM"),
        ("Washington, DC", "IAD"),
        ("東京", "HND"),
        ("Goa", "GOI"),
        ("GOA", "GOA"),
        ("Dubai, UAE", "DXB"),
        ("Nantucket", "ACK"),
    ],
)
def test_a_place_is_found_by_code_or_name(text: str, code: str) -> None:
    assert resolve(text).airport.code == code


def test_every_known_city_is_found_under_its_own_name() -> None:
    missed = {city.code for city in cities().values() if resolve(city.names[0]).airport.code != city.code}

    # San José in Costa Rica has a bigger namesake in California.
    assert missed == {"SJO"}
    assert resolve("San Jose, Costa Rica").airport.code == "SJO"


def test_every_code_in_the_table_of_cities_is_a_real_airport() -> None:
    codes = {code for city in cities().values() for code in (city.code, *city.others)}

    assert codes <= set(airports())


def test_a_code_of_a_whole_city_never_hides_an_airport() -> None:
    assert not {city.metro for city in cities().values() if city.metro} & set(airports())


def test_every_country_has_a_name() -> None:
    assert [airport.code for airport in airports().values() if country_name(airport.country) == airport.country] == []


def test_a_name_of_two_known_cities_gives_the_likelier_one_and_names_the_other() -> None:
    place = resolve("San Jose")

    assert place.airport.code == "SJC"
    assert [other.code for other in place.others] == ["SJO"]


def test_a_small_namesake_of_a_big_city_raises_no_question() -> None:
    assert resolve("Paris").others == ()


def test_an_ambiguous_small_place_names_the_others() -> None:
    place = resolve("Springfield")

    assert {"Missouri", "Illinois"} <= {airport.subdivision for airport in (place.airport, *place.others)}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "`origin` is empty"),
        ("Xyzzy", "ask the user"),
        ("Lissabon", "Lisbon, Portugal (LIS)"),
        ("Vancouver, Texas", "Vancouver, British Columbia, Canada (YVR)"),
        ("Japan", "is a region, not a city; ask the user which city, for example Tokyo"),
        ("USA", "is a region"),
        ("Georgia", "Tbilisi"),
    ],
)
def test_an_unknown_place_says_what_to_ask(text: str, said: str) -> None:
    with pytest.raises(TravelError) as caught:
        resolve(text, "origin")

    assert said in str(caught.value)


def test_a_second_airport_stands_for_its_city() -> None:
    assert city_airport(airports()["LGW"]).code == "LHR"
    assert city_airport(airports()["ACK"]).code == "ACK"


def test_an_airport_is_named_so_that_no_other_is_meant() -> None:
    assert where(airports()["PWM"]) == "Portland, Maine, United States (PWM)"


def test_distances_are_those_of_the_great_circle() -> None:
    known_km = {("LHR", "JFK"): 5_540, ("SFO", "CDG"): 8_965, ("SYD", "SCL"): 11_340}

    for (start, end), expected in known_km.items():
        assert distance_km(airports()[start], airports()[end]) == pytest.approx(expected, rel=0.01)


def test_folding_ignores_accents_case_and_punctuation() -> None:
    assert fold("Tromsø") == "tromso"
    assert fold("St. John's") == fold("Saint Johns")
