"""The travel agent and its search tools as the model sees them."""

from datetime import date
from typing import Any

import pytest
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from everthread.agents.travel import TravelProfile, travel, travel_tools
from everthread.agents.travel.sandbox import option

TODAY = date(2026, 11, 21)


def tool(name: str) -> BaseTool:
    return next(known for known in travel_tools(today=lambda: TODAY) if known.name == name)


def ask(name: str, **arguments: Any) -> Any:
    return tool(name).invoke({"name": name, "args": arguments, "id": "call-1", "type": "tool_call"})


def test_the_agent_has_the_tools_that_its_instructions_name() -> None:
    names = {known.name for known in travel.tools}

    assert names == {
        "search_flights",
        "search_hotels",
        "search_rental_cars",
        "insurance_options",
        "book",
        "list_bookings",
        "save_memory_note",
    }
    assert (travel.name, travel.profile, len(travel.summary_sections)) == ("travel", TravelProfile, 7)
    assert {name for name in names if f"`{name}`" in travel.instructions} == {
        "book",
        "list_bookings",
        "save_memory_note",
    }


def test_the_instructions_are_between_400_and_700_words() -> None:
    assert 400 <= len(travel.instructions.split()) <= 700


def test_the_schemas_hide_what_is_injected_and_describe_the_rest() -> None:
    for known in travel_tools():
        schema = convert_to_openai_tool(known)["function"]
        assert "runtime" not in schema["parameters"]["properties"]
        assert all("description" in field for field in schema["parameters"]["properties"].values())
        assert "  " not in schema["description"]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        (
            "search_flights",
            {"origin": "SFO", "destination": "Paris", "date": "2026-12-04", "return_date": "2026-12-11"},
        ),
        ("search_hotels", {"city": "Paris", "check_in": "2026-12-04", "check_out": "2026-12-11", "guests": 2}),
        ("search_rental_cars", {"city": "Paris", "pick_up": "2026-12-04", "drop_off": "2026-12-11"}),
        ("insurance_options", {"destination": "Paris", "start": "2026-12-04", "end": "2026-12-11", "trip_cost": 900}),
    ],
)
def test_a_search_shows_label_and_ids_that_can_be_looked_up(name: str, arguments: dict[str, Any]) -> None:
    text = ask(name, **arguments).text

    assert "(sandbox inventory, not a real offer)" in text.splitlines()[0]
    ids = text.split("`")[1::2]
    assert ids
    assert all(option(option_id, TODAY).total in text for option_id in ids)


@pytest.mark.parametrize("day", ["next Friday", "04.12.2026", "2026-13-01", "2026-W49-5", "20261204", ""])
def test_a_date_in_another_form_is_an_error_for_the_model(day: str) -> None:
    answer = ask("search_flights", origin="SFO", destination="CDG", date=day)

    assert answer.status == "error"
    assert "must be a date as YYYY-MM-DD" in answer.text


def test_an_impossible_search_answers_the_call_with_the_reason() -> None:
    answer = ask("search_hotels", city="Xyzzy", check_in="2026-12-04", check_out="2026-12-11")

    assert answer.status == "error"
    assert answer.text.startswith("Error: no airport or city matches `city` 'Xyzzy'")


def test_how_an_ambiguous_place_was_read_is_told() -> None:
    text = ask("search_flights", origin="San Jose", destination="Denver", date="2026-12-04").text

    assert "Note: 'San Jose' was read as San Jose, California" in text
