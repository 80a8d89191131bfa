"""The conversations that a newcomer has with the offline model, through the real graph and the real tools."""

import re
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from typing import Any

import pytest

from everthread import Agent, Context, build_graph, open_storage
from everthread.agents import support, travel
from everthread.agents.offline import OfflineModel
from everthread.cli.conversation import Conversation, Turn
from everthread.state import namespaces
from everthread.storage.open import Storage

FLIGHT = "Find me a flight to Paris on 2027-03-12."
PROFILE = {"name": "Ada Lovelace", "home_city": "Oslo", "seat_preference": "aisle"}


@pytest.fixture
def storage() -> Iterator[Storage]:
    with open_storage("sqlite://") as opened:
        opened.store.put(namespaces.profile("ada"), "profile", PROFILE, index=False)
        yield opened


Say = Callable[[str], Turn]


def talk(storage: Storage, agent: Agent, user: str, *, approve: bool = True) -> Say:
    graph = build_graph(agent, model=OfflineModel(), storage=storage)
    return Conversation(graph, "t", Context(user_id=user, window=16_000), lambda asked: approve).say


@pytest.fixture
def concierge(storage: Storage) -> Say:
    return talk(storage, travel, "ada")


@pytest.fixture
def desk(storage: Storage) -> Say:
    return talk(storage, support, "bob")


def calls(turn: Turn) -> list[tuple[str, dict[str, Any]]]:
    return [(call.name, call.arguments) for call in turn.calls.values()]


def only_call(turn: Turn) -> tuple[str, dict[str, Any]]:
    (call,) = calls(turn)
    return call


# Travel


def test_a_weekend_is_a_stay_of_both_days(concierge: Say) -> None:
    name, args = only_call(concierge("Find me a hotel in Berlin this weekend."))
    check_in, check_out = (date.fromisoformat(args[name]) for name in ("check_in", "check_out"))

    assert (name, check_in.weekday(), check_out - check_in) == ("search_hotels", 5, timedelta(days=1))


def test_next_month_is_searched_in_its_middle_and_said(concierge: Say) -> None:
    turn = concierge("Book me a flight to Paris next month.")

    name, args = only_call(turn)
    assert (name, args["origin"], args["destination"], args["date"][-3:]) == ("search_flights", "Oslo", "Paris", "-15")
    assert "You said “next month”, so I took" in turn.reply
    assert "I book nothing before you say so" in turn.reply


@pytest.mark.parametrize(
    ("text", "tool", "args"),
    [
        (
            "Fly me from lisbon to porto on 2027-05-03 for 2 people in business class",
            "search_flights",
            {"origin": "Lisbon", "destination": "Porto", "travellers": 2, "cabin": "business"},
        ),
        ("Flight to Rome from 3 to 7 May", "search_flights", {"destination": "Rome", "origin": "Oslo"}),
        ("Find a hotel in Rome from 3 May 2027 for 3 nights", "search_hotels", {"check_out": "2027-05-06"}),
        ("Find a hotel in Rome from 3 to 7 May under 400", "search_hotels", {"city": "Rome", "max_price": 400.0}),
        ("Rent an SUV in Nice from 3 May to 7 May", "search_rental_cars", {"city": "Nice", "category": "suv"}),
        (
            "Insurance for Nice from 3 May to 7 May, it costs 900 dollars",
            "insurance_options",
            {"destination": "Nice", "trip_cost": 900.0},
        ),
        ("Show my bookings", "list_bookings", {}),
        ("what have I booked?", "list_bookings", {}),
    ],
)
def test_a_request_calls_the_tool_for_it(concierge: Say, text: str, tool: str, args: dict[str, Any]) -> None:
    turn = concierge(text)

    name, given = only_call(turn)
    assert name == tool
    assert args.items() <= given.items()
    assert "did not work" not in turn.reply


def test_a_flight_is_asked_for_in_three_messages(concierge: Say) -> None:
    assert "Where do you want to go?" in concierge("Book me a flight").reply
    assert "On which day" in concierge("from Paris to Tokyo").reply

    _, args = only_call(concierge("on 2027-05-03"))

    assert (args["origin"], args["destination"], args["date"]) == ("Paris", "Tokyo", "2027-05-03")


def test_a_date_with_two_readings_is_asked_for_until_it_is_clear(concierge: Say) -> None:
    assert "Please write it as YYYY-MM-DD" in concierge("Find me a flight to Madrid on 3/4").reply
    assert not concierge("ok").calls

    concierge("Find me a flight to Madrid on 3/4")
    assert only_call(concierge("2027-04-03"))[1]["date"] == "2027-04-03"


def test_where_the_user_lives_is_taken_from_the_same_message(storage: Storage) -> None:
    turn = talk(storage, travel, "eve")("I live in Lisbon. Book me a flight to rome on 2027-05-03")

    assert [name for name, _ in calls(turn)] == ["save_memory_note", "search_flights"]
    assert calls(turn)[1][1]["origin"] == "Lisbon"


def test_without_a_home_the_place_of_departure_is_asked_for(storage: Storage) -> None:
    say = talk(storage, travel, "eve")

    assert "Where do you fly from?" in say(FLIGHT).reply
    assert only_call(say("San Francisco"))[1]["origin"] == "San Francisco"


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("What about 20 March 2027 instead?", {"date": "2027-03-20"}),
        ("And in business class?", {"cabin": "business"}),
        ("make it from Bergen", {"origin": "Bergen"}),
    ],
)
def test_a_change_repeats_the_search(concierge: Say, text: str, changes: dict[str, Any]) -> None:
    _, first = only_call(concierge(FLIGHT))

    assert only_call(concierge(text)) == ("search_flights", {**first, **changes})


def test_a_hotel_takes_place_and_days_from_the_last_search(concierge: Say) -> None:
    concierge("Fly me to Paris from 3 to 7 May")

    turn = concierge("And a hotel there")

    name, args = only_call(turn)
    assert (name, args["city"], args["check_in"][-5:], args["check_out"][-5:]) == (
        *("search_hotels", "Paris"),
        *("05-03", "05-07"),
    )
    assert "the days of your last search" in turn.reply


@pytest.mark.parametrize("text", ["yes", "book option 1", "I'll take the first one", "1", "the recommended: book it"])
def test_a_choice_is_booked_once_the_user_approves(concierge: Say, text: str) -> None:
    concierge(FLIGHT)

    turn = concierge(text)

    name, args = only_call(turn)
    assert (name, args["travellers"], args["note"]) == ("book", ["Ada Lovelace"], "aisle seat")
    assert len(turn.asked) == 1
    assert turn.reply.startswith("Booked after your approval:")
    assert "SBX-" in concierge("list my bookings").reply


def test_the_cheapest_is_found_in_the_list(concierge: Say) -> None:
    shown = concierge(FLIGHT).reply

    _, args = only_call(concierge("book the cheapest for Jean Martin"))

    cheapest = re.findall(r"`(FLT-[^`]+)`", shown.split("(cheapest)")[0])[-1]
    assert (args["option_id"], args["travellers"]) == (cheapest, ["Jean Martin"])


def test_a_declined_booking_is_reported_as_such(storage: Storage) -> None:
    say = talk(storage, travel, "ada", approve=False)
    say(FLIGHT)

    assert say("yes").reply == "Nothing was booked: you declined. What shall I change?"
    assert say("list my bookings").reply == "You have no bookings."


@pytest.mark.parametrize("text", ["great, thanks", "no", "hmm", "what is the weather", "thanks, bye"])
def test_anything_but_a_choice_books_nothing(concierge: Say, text: str) -> None:
    concierge(FLIGHT)

    turn = concierge(text)

    assert not turn.calls
    assert turn.reply


def test_names_are_asked_for_when_several_travel(concierge: Say) -> None:
    concierge("Fly 2 people to Paris on 2027-03-12")
    assert "I need 2 full names" in concierge("book option 1").reply

    assert only_call(concierge("Ada Lovelace and Jean Martin"))[1]["travellers"] == ["Ada Lovelace", "Jean Martin"]


def test_a_rule_about_booking_is_noted_and_chooses_no_option(concierge: Say) -> None:
    concierge(FLIGHT)

    turn = concierge("Never book without asking me first.")

    assert [name for name, _ in calls(turn)] == ["save_memory_note"]
    assert "Noted for the future" in turn.reply


def test_what_is_not_there_is_not_pretended(concierge: Say) -> None:
    assert "do not see that option" in concierge("book option 2").reply
    assert "cannot cancel" in concierge("Cancel my booking").reply
    assert "cannot erase notes" in concierge("Forget that I am vegetarian").reply


def test_a_failed_search_is_explained_without_advice_to_the_model(concierge: Say) -> None:
    reply = concierge("Fly to Rome on 2027-12-10, back 2027-12-01").reply

    assert "That did not work:" in reply
    assert "the user" not in reply


def test_tastes_decide_between_options(concierge: Say) -> None:
    concierge("I only fly nonstop flights.")

    assert "I recommend option 1: nonstop" in concierge(FLIGHT).reply


# Memory


def test_a_lasting_preference_is_saved_and_recalled(concierge: Say) -> None:
    saved = concierge("Remember that I am vegetarian.")
    reply = concierge("Do you know my preferences?").reply

    assert only_call(saved)[1] == {"text": "Is vegetarian.", "keywords": ["vegetarian"], "scope": "durable"}
    assert saved.reply.startswith("Noted for the future: is vegetarian.")
    assert "From your profile:\n- Name: Ada Lovelace\n- Home city: Oslo" in reply
    assert "From this conversation:\n- Is vegetarian." in reply


def test_a_wish_for_this_time_leaves_the_usual_preference(concierge: Say) -> None:
    turn = concierge("This time, I like to have a window seat. I really want to sleep.")

    assert only_call(turn)[1]["scope"] == "session"
    assert "Noted for this time only" in turn.reply
    assert "stays as it is (seat preference: aisle)" in turn.reply


def test_a_statement_and_a_request_are_both_taken(concierge: Say) -> None:
    turn = concierge("I never take red-eyes. Fly me to Paris on 2027-03-12.")

    assert [name for name, _ in calls(turn)] == ["save_memory_note", "search_flights"]
    assert turn.reply.index("never takes red-eyes") < turn.reply.index("I recommend option 1")


def test_a_refused_note_is_admitted_and_not_repeated(concierge: Say) -> None:
    reply = concierge("Remember that my card is 4111 1111 1111 1111").reply

    assert reply.startswith("I did not keep that")
    assert "4111" not in reply


def test_nothing_known_is_said_plainly(storage: Storage) -> None:
    assert "no profile and no notes" in talk(storage, travel, "eve")("What do you know about me?").reply


@pytest.mark.parametrize(
    "text", ["I like the first one", "I love it, thanks!", "Do you remember that I am vegetarian?", "yes", "hello"]
)
def test_requests_questions_and_choices_are_no_notes(concierge: Say, text: str) -> None:
    assert not [name for name, _ in calls(concierge(text)) if name == "save_memory_note"]


# Support


def test_a_support_case_from_the_first_article_to_the_closed_ticket(desk: Say) -> None:
    first = desk("My VPN fails with error 809.")
    assert only_call(first)[0] == "search_knowledge_base"
    assert "The closest match is article KB-1001" in first.reply
    assert "1. " in first.reply
    assert "Shall I open a ticket for this?" in desk("It did not help").reply

    opened = desk("yes please")
    assert only_call(opened)[1]["title"] == "My VPN fails with error 809"
    assert "Articles given to the user: KB-1001." in only_call(opened)[1]["description"]

    assert "Shall I close ticket INC-" in desk("It works now").reply
    assert only_call(desk("yes"))[1]["status"] == "closed"


@pytest.mark.parametrize(
    ("text", "tool", "args"),
    [
        ("Is the VPN down?", "service_status", {"service": "vpn"}),
        ("service status", "service_status", {}),
        ("Any outages with Teams?", "service_status", {"service": "teams"}),
        ("ping files.corp.example", "run_diagnostic", {"check": "ping", "target": "files.corp.example"}),
        ("check dns for mail.corp.example", "run_diagnostic", {"check": "dns", "target": "mail.corp.example"}),
        ("How do I reset my password?", "search_knowledge_base", {"query": "How do I reset my password?"}),
        ("I always get error 809 on the VPN", "search_knowledge_base", {"query": "I always get error 809 on the VPN"}),
        ("list my tickets", "list_tickets", {}),
        ("show my open tickets", "list_tickets", {"status": "open"}),
        (
            "Open an urgent ticket: nobody can print",
            "open_ticket",
            {"title": "Nobody can print", "description": "Reported: nobody can print", "priority": "urgent"},
        ),
        ("Remember that I work on Linux.", "save_memory_note", {"text": "Works on Linux.", "scope": "durable"}),
    ],
)
def test_a_question_to_the_desk_calls_the_tool_for_it(desk: Say, text: str, tool: str, args: dict[str, Any]) -> None:
    turn = desk(text)

    name, given = only_call(turn)
    assert name == tool
    assert args.items() <= given.items()
    assert "did not work" not in turn.reply


def test_a_statement_about_a_problem_is_noted_and_searched(desk: Say) -> None:
    names = [name for name, _ in calls(desk("I use Linux and the VPN drops every hour"))]

    assert names == ["save_memory_note", "search_knowledge_base"]


def test_a_bare_code_is_searched_together_with_the_problem_before(desk: Say) -> None:
    desk("My VPN fails")

    assert only_call(desk("The error is 0x80072746"))[1]["query"] == "My VPN fails The error is 0x80072746"


def test_what_is_missing_is_asked_for(desk: Say) -> None:
    assert "Which host" in desk("run a dns check").reply
    assert only_call(desk("mail.corp.example"))[1] == {"check": "dns", "target": "mail.corp.example"}
    assert "What is the ticket about?" in desk("open a ticket").reply or "dns" in desk("open a ticket").reply


@pytest.mark.parametrize(
    ("text", "args"),
    [
        ("close the ticket", {"status": "closed"}),
        ("raise priority to high on my ticket", {"priority": "high"}),
        ("Add a comment to the ticket: rebooted, same error", {"comment": "rebooted, same error"}),
    ],
)
def test_the_ticket_in_view_is_changed(desk: Say, text: str, args: dict[str, str]) -> None:
    desk("Open a ticket: the dock is dead")

    name, given = only_call(desk(text))

    assert name == "update_ticket"
    assert args.items() <= given.items()


def test_a_ticket_is_named_by_its_subject_or_asked_for(desk: Say) -> None:
    desk("Open a ticket: Outlook is slow")
    desk("Open a ticket: mouse broken")
    desk("list my tickets")

    assert only_call(desk("close the mouse ticket"))[1]["status"] == "closed"
    desk("list my tickets")
    assert "Which ticket do you mean?" in desk("close the keyboard ticket").reply


def test_a_password_reaches_no_tool(desk: Say) -> None:
    turn = desk("My password is hunter22 and the VPN fails")

    assert "hunter22" not in str(calls(turn))
    assert "Please do not send me passwords" in turn.reply


def test_a_password_alone_is_answered_with_a_warning(desk: Say) -> None:
    assert "Please do not send me passwords" in desk("my password is hunter22, can you log in?").reply
