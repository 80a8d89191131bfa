"""What the offline model does as a travel concierge."""

from datetime import date
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import BaseTool

from everthread.agents.offline.booking import booking_step
from everthread.agents.offline.conversation import answer
from everthread.agents.offline.options import Likes, likes_of, options_in, present, shortlist, shown_in
from everthread.agents.offline.patterns import word_set
from everthread.agents.offline.reading import read
from everthread.agents.offline.reply import Call
from everthread.agents.travel.tools import travel_tools
from everthread.memory.rendering import render_notes, render_profile
from everthread.state.notes import Note

NAMES = word_set(
    "search_flights search_hotels search_rental_cars insurance_options book list_bookings save_memory_note"
)
PROFILE: dict[str, Any] = {
    "customer_id": "C-77",
    "name": "Ada Lovelace",
    "home_city": "Oslo",
    "seat_preference": "aisle",
}

FLIGHTS = """2 flights (sandbox inventory, not a real offer):
1. `FLT-OSL-CDG-1A` · flight Oslo (OSL) → Paris (CDG), 2026-12-15 one way, economy · USD 300.00
   out 2 h 20 min, nonstop: Northwind 1 OSL 2026-12-15 22:10 → CDG 2026-12-16 00:30
   Standard fare, USD 300.00 each; 1 checked bag
2. `FLT-OSL-CDG-1B` · flight Oslo (OSL) → Paris (CDG), 2026-12-15 one way, economy · USD 290.00
   out 5 h 05 min, 1 stop (AMS): Halcyon 2 OSL 2026-12-15 09:10 → AMS 11:00; Halcyon 3 AMS 12:30 → CDG 14:15
   Light fare, USD 290.00 each; cabin bag only
Note: Paris was read as CDG."""


class Talk:
    """A conversation with the model in which the test plays the user and the tools."""

    def __init__(self, profile: dict[str, Any] | None = None, notes: list[str] | None = None) -> None:
        known = [Note(id=f"n-{text}", text=text, date="2025-04-02") for text in notes or []]
        blocks = ("You help.", "Today is 2026-11-21.", render_profile(profile), render_notes("Long-term notes", known))
        self.messages: list[BaseMessage] = [SystemMessage("\n\n".join(block for block in blocks if block))]

    def ask(self, text: str, *results: str) -> str:
        """Say something, answer the calls with these results, and return what the model says."""
        self.messages.append(HumanMessage(text, id=str(len(self.messages))))
        calls = self.calls()
        if results:
            self._answer(calls, results)
        reply = answer(read(self.messages, NAMES))
        assert not reply.calls, f"unanswered calls: {reply.calls}"
        self.messages.append(AIMessage(reply.text))
        return reply.text

    def call(self, text: str) -> Call:
        """Say something and return the only call that it leads to, without an answer to it."""
        self.messages.append(HumanMessage(text, id=str(len(self.messages))))
        (call,) = self.calls()
        self.messages.pop()
        return call

    def calls(self) -> list[Call]:
        """Return the calls that the model makes now."""
        return list(answer(read(self.messages, NAMES)).calls)

    def _answer(self, calls: list[Call], results: tuple[str, ...]) -> None:
        named = [
            {"name": call.tool, "args": dict(call.args), "id": f"c{at}-{len(self.messages)}"}
            for at, call in enumerate(calls)
        ]
        self.messages.append(AIMessage("", tool_calls=named))
        for one, result in zip(named, results, strict=True):
            self.messages.append(ToolMessage(result, tool_call_id=str(one["id"])))


def ada(*notes: str) -> Talk:
    return Talk(PROFILE, list(notes))


def test_next_month_is_searched_in_its_middle_and_said() -> None:
    talk = ada()
    expected = {"origin": "Oslo", "destination": "Paris", "date": "2026-12-15", "cabin": "economy", "travellers": 1}

    assert talk.call("Book me a flight to Paris next month.") == Call(
        "search_flights",
        expected,
        "You said “next month”, so I took Tuesday 15 December 2026; name another day and I search again.",
    )
    assert "You said “next month”" in talk.ask("Book me a flight to Paris next month.", FLIGHTS)


@pytest.mark.parametrize(
    ("text", "args"),
    [
        (
            "Find a flight from Rome to Lima on 2027-03-04",
            {"origin": "Rome", "destination": "Lima", "date": "2027-03-04"},
        ),
        ("I need to fly to Lima on 4 March, back on 11 March", {"date": "2027-03-04", "return_date": "2027-03-11"}),
        ("Business class to Lima tomorrow for 2 people", {"cabin": "business", "travellers": 2, "date": "2026-11-22"}),
        ("Get me a flight to Lima next Friday in premium economy", {"cabin": "premium_economy", "date": "2026-11-27"}),
        ("fly me home from Lima tomorrow", {"origin": "Lima", "destination": "Oslo"}),
        (
            "a flight to Lima for me and my wife in April, returning after 10 days",
            {"travellers": 2, "return_date": "2027-04-25"},
        ),
    ],
)
def test_the_words_of_a_flight_request_become_arguments(text: str, args: dict[str, Any]) -> None:
    call = ada().call(text if "fly" in text.lower() or "flight" in text.lower() else f"Book a flight, {text}")

    assert call.tool == "search_flights"
    assert {name: call.args.get(name) for name in args} == args


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("Book me a flight", "Where do you want to go?"),
        ("Book me a flight to Paris", "On which day do you want to fly?"),
        ("Book me a flight to Paris next month", "Where do you fly from?"),
        ("Book me a flight to Paris on 2020-01-01", "is in the past"),
        ("Book me a flight to Paris on 4/5/2027", "4 May or 5 April"),
        ("Find a hotel in Rome", "On which days do you check in and out?"),
        ("Find me a hotel from 3 to 7 May", "In which city?"),
        ("Rent a car in Nice", "pick the car up and return it?"),
        ("I need insurance for Rome from 3 to 7 May", "What does the trip cost in total?"),
    ],
)
def test_one_question_is_asked_for_what_is_missing(text: str, question: str) -> None:
    told = Talk().ask(text)

    assert question in told
    assert told.count("?") == 1


def test_answers_complete_the_request_one_after_the_other() -> None:
    talk = Talk()
    talk.ask("Book me a business class flight")
    talk.ask("to Paris")
    talk.ask("next month")

    call = talk.call("Berlin")

    assert call.args["origin"] == "Berlin"
    assert (call.args["destination"], call.args["date"], call.args["cabin"]) == ("Paris", "2026-12-15", "business")


def test_an_answer_about_home_is_also_worth_a_note() -> None:
    talk = Talk()
    talk.ask("Book me a flight to Paris on 12 May")
    talk.messages.append(HumanMessage("I usually fly from Oakland"))

    note, search = talk.calls()

    assert (note.args["text"], search.args["origin"]) == ("Usually flies from Oakland.", "Oakland")


def test_a_new_request_leaves_an_open_question_behind() -> None:
    talk = Talk()
    talk.ask("Book me a flight to Paris next month")
    talk.ask("Find me a hotel in Rome")

    call = talk.call("3 to 7 May")

    assert call == Call(
        "search_hotels", {"city": "Rome", "check_in": "2027-05-03", "check_out": "2027-05-07", "guests": 1}
    )


def test_small_talk_is_not_taken_for_an_answer() -> None:
    talk = Talk()
    talk.ask("Find a hotel in Rome")

    assert talk.ask("thanks") == "You are welcome. Is there anything else?"


def test_options_come_with_trade_offs_one_recommendation_and_one_question() -> None:
    told = ada().ask("Book me a flight to Paris next month.", FLIGHTS)

    assert "sandbox inventory, not a real offer" in told
    assert "Paris was read as CDG" in told
    assert shown_in(told) == {1: "FLT-OSL-CDG-1A", 2: "FLT-OSL-CDG-1B"}
    assert "(fastest, leaves at night)" in told
    assert "Shall I book `FLT-OSL-CDG-1A`" in told
    assert "aisle seat" in told


def test_remembered_tastes_decide_the_recommendation() -> None:
    told = ada("Hates red-eyes.").ask("Book me a flight to Paris next month.", FLIGHTS)

    assert "Shall I book `FLT-OSL-CDG-1B`" in told
    assert "not overnight" in told
    assert "Hates red-eyes" not in told


def test_tastes_of_the_same_message_count_already() -> None:
    told = ada().ask("I never take red-eyes. Fly me to Paris next month.", "Saved and kept: x", FLIGHTS)

    assert "Shall I book `FLT-OSL-CDG-1B`" in told


def test_every_price_shown_is_the_tool_s() -> None:
    told = ada().ask("Book me a flight to Paris next month.", FLIGHTS)

    prices = {option.price for option in options_in(told)[0]}
    assert prices == {300.0, 290.0}


def test_an_answer_without_options_is_quoted() -> None:
    told = ada().ask("Fly me to Paris tomorrow", "No flights on that day; try 2026-11-23.")

    assert "No flights on that day; try 2026-11-23." in told


@pytest.mark.parametrize(
    ("text", "option"),
    [
        ("yes", "FLT-OSL-CDG-1A"),
        ("Yes, please book it.", "FLT-OSL-CDG-1A"),
        ("yes, book the first one", "FLT-OSL-CDG-1A"),
        ("book option 2", "FLT-OSL-CDG-1B"),
        ("2", "FLT-OSL-CDG-1B"),
        ("I'll take the second one", "FLT-OSL-CDG-1B"),
        ("the cheapest, please", "FLT-OSL-CDG-1B"),
        ("book the fastest", "FLT-OSL-CDG-1A"),
        ("book flt-osl-cdg-1b", "FLT-OSL-CDG-1B"),
        ("please reserve FLT-XXX-YYY-9Z", "FLT-XXX-YYY-9Z"),
    ],
)
def test_a_choice_becomes_a_booking(text: str, option: str) -> None:
    talk = ada()
    talk.ask("Book me a flight to Paris next month.", FLIGHTS)

    call = talk.call(text)

    assert call.tool == "book"
    assert (call.args["option_id"], call.args["travellers"]) == (option, ["Ada Lovelace"])


@pytest.mark.parametrize("text", ["great, thanks", "no", "not yet", "hmm", "what is the weather", "thanks, bye"])
def test_anything_but_a_choice_books_nothing(text: str) -> None:
    talk = ada()
    talk.ask("Book me a flight to Paris next month.", FLIGHTS)

    assert talk.ask(text)


def test_a_choice_without_options_in_view_asks_for_the_id() -> None:
    assert "Give me its id" in ada().ask("book option 2")


def test_a_booking_carries_the_seat_of_this_trip_and_the_meal() -> None:
    talk = ada("Is vegetarian.")
    talk.ask("This time I want a window seat.", "Saved for this session only: x")
    talk.ask("Book me a flight to Paris next month.", FLIGHTS)

    assert talk.call("yes").args["note"] == "window seat, vegetarian meal"


def test_a_taste_that_has_passed_is_not_asked_for() -> None:
    talk = ada("Is no longer vegetarian.", "Is vegetarian.")
    talk.ask("Book me a flight to Paris next month.", FLIGHTS)

    assert talk.call("yes").args["note"] == "aisle seat"


def test_names_are_asked_for_when_several_travel() -> None:
    talk = ada()
    talk.ask("Fly 2 people to Paris next month.", FLIGHTS)
    assert "I need 2 full names" in talk.ask("book option 1")

    call = talk.call("Ada Lovelace and Jean de la Fontaine")

    assert call.args["travellers"] == ["Ada Lovelace", "Jean de la Fontaine"]


def test_without_a_profile_the_traveller_has_no_name() -> None:
    talk = Talk()
    talk.ask("Fly me from Oslo to Paris next month.", FLIGHTS)

    assert talk.call("yes").args["travellers"] == ["traveller"]


def test_a_booking_is_reported_in_the_tool_s_words() -> None:
    talk = ada()
    talk.ask("Book me a flight to Paris next month.", FLIGHTS)

    assert "SBX-1 · Paris" in talk.ask("yes", "Booked after the user's approval:\nSBX-1 · Paris · USD 300.00")


def test_a_declined_booking_is_reported_as_such() -> None:
    talk = ada()
    talk.ask("Book me a flight to Paris next month.", FLIGHTS)

    told = talk.ask("yes", "Nothing was booked: the user declined. Find out what the user wants changed.")
    assert told == "Nothing was booked: you declined. What shall I change?"


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("What about 20 December instead?", {"date": "2026-12-20"}),
        ("And in business class?", {"cabin": "business"}),
        ("yes, but for 3 people", {"travellers": 3}),
        ("make it from Bergen", {"origin": "Bergen"}),
    ],
)
def test_a_change_repeats_the_search(text: str, changes: dict[str, Any]) -> None:
    talk = ada()
    first = talk.call("Book me a flight to Paris next month.")
    talk.ask("Book me a flight to Paris next month.", FLIGHTS)

    assert dict(talk.call(text).args) == {**first.args, **changes}


def test_a_hotel_takes_place_and_days_from_the_last_search() -> None:
    talk = ada()
    talk.ask("Fly me to Paris from 3 to 7 May for 2 people", FLIGHTS)

    call = talk.call("And a hotel there under $200 a night")

    assert dict(call.args) == {
        "city": "Paris",
        "check_in": "2027-05-03",
        "check_out": "2027-05-07",
        "guests": 2,
        "max_price": 200.0,
    }
    assert "the days of your last search" in call.remark


def test_cars_and_insurance_mention_the_cover_that_the_profile_names() -> None:
    talk = Talk({**PROFILE, "rental_car_coverage": "primary waiver", "insurance_coverage": "medical abroad"})

    car = talk.call("Rent a compact car in Nice from 3 May to 7 May")
    plan = talk.call("Insurance for Nice from 3 May to 7 May, it costs $1,400")

    assert (car.args["category"], plan.args["trip_cost"]) == ("compact", 1400.0)
    assert "primary waiver" in car.remark
    assert "medical abroad" in plan.remark


def test_a_passport_that_expires_first_is_mentioned() -> None:
    talk = Talk({**PROFILE, "passport_expiry": date(2026, 12, 1)})

    assert "expires on Tuesday 1 December 2026" in talk.call("Fly me to Paris next month").remark
    assert "passport" not in talk.call("Fly me to Paris tomorrow").remark


def test_what_is_known_is_listed_by_source_and_without_numbers() -> None:
    talk = ada("Prefers high floors.")
    talk.ask("Remember that I am vegetarian.", "Saved and kept after this session: Is vegetarian.")

    told = talk.ask("Do you know my preferences?")

    assert "From your profile:\n- Name: Ada Lovelace\n- Home city: Oslo\n- Seat preference: aisle" in told
    assert "From earlier conversations:\n- Prefers high floors. (2025-04-02)" in told
    assert "From this conversation:\n- Is vegetarian." in told
    assert "C-77" not in told


def test_nothing_known_is_said_plainly() -> None:
    assert "no profile and no notes" in Talk().ask("What do you know about me?")


def test_a_lasting_preference_is_saved_and_confirmed() -> None:
    talk = ada()
    args = {"text": "Is vegetarian.", "keywords": ["vegetarian", "meal"], "scope": "durable"}

    assert talk.call("Remember that I am vegetarian.") == Call("save_memory_note", args)
    told = talk.ask("Remember that I am vegetarian.", "Saved and kept after this session: Is vegetarian.")
    assert told.startswith("Noted for the future: is vegetarian.")


def test_a_wish_for_this_time_leaves_the_usual_preference() -> None:
    wish = "This time, I like to have a window seat. I really want to sleep."

    told = ada().ask(wish, "Saved for this session only: x")

    assert "Noted for this time only: prefers a window seat (wants to sleep)." in told
    assert "stays as it is (seat preference: aisle)" in told


def test_the_usual_preference_may_come_from_a_note() -> None:
    told = Talk(None, ["Prefers aisle seats."]).ask("This time I want a window seat", "Saved for this session only: x")

    assert "stays as it is (prefers aisle seats)" in told


def test_forgetting_is_not_pretended() -> None:
    assert "cannot erase notes" in ada("Is vegetarian.").ask("Forget that I am vegetarian.")


def test_a_refused_note_is_admitted_and_not_repeated() -> None:
    told = ada().ask("Remember that my passport is X1234567", "Not saved: the note looks like passport.")

    assert told.startswith("I did not keep that: it looks like passport.")
    assert "X1234567" not in told


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Show my bookings", "list_bookings"),
        ("what have I booked?", "list_bookings"),
    ],
)
def test_bookings_are_listed(text: str, expected: str) -> None:
    assert ada().call(text) == Call(expected)


def test_cancelling_is_not_pretended() -> None:
    assert "cannot cancel" in ada().ask("Cancel my booking")


def test_a_request_with_one_gap_searches_what_it_can() -> None:
    talk = ada()
    talk.messages.append(HumanMessage("A flight to Rome tomorrow and a hotel in Rome"))

    assert [call.tool for call in talk.calls()] == ["search_flights"]


def search_tools() -> dict[str, BaseTool]:
    return {tool.name: tool for tool in travel_tools(today=lambda: date(2026, 11, 21))}


@pytest.mark.parametrize(
    "text",
    [
        "Fly me to Paris next month for 2 people in business class",
        "Find me a hotel in Rome from 3 to 7 May under 400",
        "Rent an SUV in Nice from 3 May to 7 May",
        "Insurance for Nice from 3 May to 7 May, it costs 900 dollars",
    ],
)
def test_the_sandbox_takes_the_calls_and_its_answers_can_be_booked(text: str) -> None:
    talk = ada()
    call = talk.call(text)

    told = talk.ask(text, search_tools()[call.tool].invoke(dict(call.args)))
    talk.messages.append(HumanMessage("yes"))

    assert "sandbox inventory" in told
    step = booking_step(read(talk.messages, NAMES))
    assert isinstance(step, Call) or "2 full names" in getattr(step, "text", "")


def test_options_without_likes_are_ordered_by_price_and_a_little_by_comfort() -> None:
    options, _ = options_in(FLIGHTS)

    assert [one.id for one in shortlist(options, Likes())] == ["FLT-OSL-CDG-1A", "FLT-OSL-CDG-1B"]
    assert [one.id for one in shortlist(options, Likes(no_overnight=True))] == ["FLT-OSL-CDG-1B", "FLT-OSL-CDG-1A"]


@pytest.mark.parametrize(
    ("line", "likes"),
    [
        ("Prefers nonstop flights.", (True, False, [])),
        ("Avoids long layovers.", (True, False, [])),
        ("Never takes red-eyes.", (False, True, [])),
        ("Takes no checked bags on short trips.", (False, False, ["cabin bag only"])),
        ("Prefers central, walkable areas.", (False, False, ["central"])),
        ("Likes red wine.", (False, False, [])),
    ],
)
def test_tastes_are_read_from_notes(line: str, likes: tuple[bool, bool, list[str]]) -> None:
    found = likes_of([line])

    assert (found.nonstop, found.no_overnight, [called for _, called in found.features]) == likes


def test_at_most_three_options_are_shown() -> None:
    many = "\n".join(f"{at}. `HTL-ROM-{at}A` · hotel · USD {at}00.00" for at in range(1, 8))

    assert len(shown_in(present(many, []))) == 3


def test_a_flight_is_asked_for_in_three_messages() -> None:
    talk = ada()
    talk.ask("Book me a flight")
    assert "On which day" in talk.ask("from Paris to Tokyo")

    args = talk.call("tomorrow").args

    assert (args["origin"], args["destination"], args["date"]) == ("Paris", "Tokyo", "2026-11-22")


def test_a_wish_to_forget_searches_nothing() -> None:
    told = ada().ask("Forget that I'm allergic to nuts")

    assert told.startswith("I cannot erase notes here; `everthread notes USER` shows what is kept.")


def test_a_hotel_near_the_centre_is_not_one_at_the_airport() -> None:
    hotels = """3 hotels (sandbox inventory, not a real offer):
1. `HTL-CDG-1E` · Wren Lodge, Paris · USD 290.00
   3 stars, near the airport, shuttle bus
2. `HTL-CDG-1C` · Cedar Residence, Paris · USD 300.00
   4 stars, quiet residential area, 15 minutes to the centre
3. `HTL-CDG-1A` · Harbour House, Paris · USD 572.00
   4 stars, central, walkable area"""

    told = ada().ask("Hotel in Paris near the centre from 4 to 6 December", hotels)

    assert "1. `HTL-CDG-1A`" in told
    assert "I recommend option 1: central" in told


@pytest.mark.parametrize("text", ["What did I book so far?", "what have we booked?", "What have I already booked?"])
def test_what_was_booked_is_listed(text: str) -> None:
    assert ada().call(text) == Call("list_bookings")


@pytest.mark.parametrize(
    ("profile", "text", "name"),
    [
        (None, "I'm Maria", "Maria"),
        (None, "Hi, I am Maria Lopez.", "Maria Lopez"),
        (PROFILE, "Call me Maria", "Maria"),
        (PROFILE, "I'm German", "Ada Lovelace"),
    ],
)
def test_a_booking_is_made_for_who_introduced_themselves(profile: dict[str, Any] | None, text: str, name: str) -> None:
    talk = Talk(profile)
    talk.ask(text)
    talk.ask("Flight from Oslo to Paris next month", FLIGHTS)

    assert talk.call("book option 1").args["travellers"] == [name]


def test_a_name_is_greeted() -> None:
    assert Talk().ask("I'm Maria").startswith("Hello, Maria.")


def test_a_booking_whose_list_has_left_the_prompt_is_still_reported() -> None:
    talk = ada()
    talk.ask("Flight to Paris next month", FLIGHTS)
    talk.messages.append(HumanMessage("book option 1", id="h"))
    (call,) = talk.calls()
    made = {"name": call.tool, "args": dict(call.args), "id": "c"}
    talk.messages[1:-1] = []

    talk.messages += [
        AIMessage("", tool_calls=[made]),
        ToolMessage("Booked after the user's approval:\nX", tool_call_id="c"),
    ]

    told = answer(read(talk.messages, NAMES)).text
    assert told.startswith("Booked after your approval:")
    assert "do not see that option" not in told


def test_instructions_to_the_model_do_not_reach_the_user() -> None:
    refused = "Error: `return_date` 2026-12-01 is before `date` 2026-12-10; ask the user for the right dates."

    told = ada().ask("Fly to Rome on 2026-12-10, back 2026-12-01", refused)

    assert "did not work: return date 2026-12-01 is before date 2026-12-10." in told
    assert "the user" not in told


def test_a_refused_note_is_told_without_the_advice_to_the_model() -> None:
    refused = "Not saved: the note looks like card, which is never stored. Tell the user so and carry on without it."

    told = ada().ask("Remember that my card is 4111", refused)

    assert told.startswith("I did not keep that: it looks like card, which is never stored.\n")


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        ("What do you know about me?", "Here is what I know"),
        ("Do you know my preferences?", "Yes, here is what I know"),
    ],
)
def test_only_a_yes_or_no_question_gets_a_yes(text: str, begins: str) -> None:
    talk = ada()
    talk.ask("hello")

    assert talk.ask(text).startswith(begins)


def test_a_task_is_no_note() -> None:
    assert ada().ask("Remember to call my mom tomorrow").startswith("I keep what you prefer, not a to-do list")


def test_a_preference_that_gave_way_is_not_asked_for() -> None:
    talk = ada("Prefers window seats (no longer aisle seats).")
    talk.messages[0] = SystemMessage(str(talk.messages[0].content).replace("seat_preference: aisle\n", ""))

    talk.ask("Flight to Paris next month", FLIGHTS)

    assert talk.call("book option 1").args["note"] == "window seat"


@pytest.mark.parametrize(
    "text", ["Never book without asking me first.", "Hello. Please don’t book it without asking me first. Thanks!"]
)
def test_a_rule_about_booking_chooses_no_option(text: str) -> None:
    told = ada().ask(text, "Saved and kept after this session: a rule.")

    assert "do not see that option" not in told
