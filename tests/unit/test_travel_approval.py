"""Approval: every detail is restated, and only a clear yes is a yes."""

import json
from datetime import date

import pytest

from everthread.agents.travel.approval import approval_request, read_approval
from everthread.agents.travel.queries import FlightQuery
from everthread.agents.travel.sandbox import flights

TODAY = date(2026, 11, 21)


@pytest.mark.parametrize(
    "answer",
    [
        True,
        "yes",
        "Yes.",
        "  YES!  ",
        "y",
        "yes please",
        "yes, please",
        "yes go ahead",
        "book it",
        "please do",
        "Please go ahead",
        "of course",
        "yes, do it",
        "Yes, please book it",
        "approve",
        "approved",
        "Approve this booking",
        "I confirm",
        "go ahead",
        "OK, go ahead",
        "please book it for me",
        {"approved": True},
        {"approved": True, "comment": "thanks"},
        {"approved": "yes"},
    ],
)
def test_a_clear_yes_is_an_approval(answer: object) -> None:
    assert read_approval(answer).approved


@pytest.mark.parametrize(
    "answer",
    [
        False,
        None,
        1,
        1.0,
        "",
        "no",
        "No, do not book it",
        "don't book it",
        "do not approve",
        "not yet",
        "yes but change the date",
        "yes, if it is refundable",
        "yes?",
        "is it approved?",
        "ok",
        "sure",
        "maybe",
        "course",
        "please do not",
        "true",
        "approve the other one",
        "disapprove",
        "yesterday",
        "thanks",
        [True],
        {},
        {"approved": False},
        {"approved": 1},
        {"approved": "false"},
        {"approved": None, "comment": "yes"},
        {"comment": "yes"},
        {"approve": True},
    ],
)
def test_anything_else_is_no_approval(answer: object) -> None:
    assert not read_approval(answer).approved


def test_a_plain_no_is_told_from_an_unclear_answer() -> None:
    assert read_approval("no thanks").is_clear
    assert read_approval({"approved": False}).is_clear
    assert not read_approval("hmm, the later one").is_clear


def test_the_comment_is_kept_on_one_line() -> None:
    assert read_approval({"approved": False, "comment": "too\n dear"}).comment == "too dear"


def test_the_request_restates_every_detail_and_is_json() -> None:
    query = FlightQuery("SFO", "CDG", date(2026, 12, 4), date(2026, 12, 11), travellers=2)
    option = flights.search(query, TODAY).options[0]

    request = json.loads(json.dumps(approval_request(option, ["Ada Lovelace", "Alan Turing"], "aisle seats")))

    assert (request["type"], request["action"]) == ("approval", "book")
    told = [option.headline, *option.facts, option.total, option.terms, option.source, option.option_id]
    for detail in [*told, "2026-12-04", "2026-12-11", "Ada Lovelace", "Alan Turing", "aisle seats"]:
        assert detail in request["summary"]
    assert request["details"]["price"] == option.price
    assert request["details"]["travellers"] == ["Ada Lovelace", "Alan Turing"]


def test_a_journey_of_one_day_names_the_day_once() -> None:
    journeys = flights.search(FlightQuery("LHR", "CDG", date(2027, 5, 12)), TODAY).options
    option = next(one for one in journeys if one.starts == one.ends)

    assert "When: 2027-05-12\n" in approval_request(option, ["Ada Lovelace"], None)["summary"]
