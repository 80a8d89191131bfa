"""Turn a request for flights, hotels, cars or insurance into a tool call, or into the question that is missing."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from everthread.agents.offline.dates import Day, Period, number_of, period_in, spoken
from everthread.agents.offline.memories import session_notes
from everthread.agents.offline.patterns import pattern, words
from everthread.agents.offline.places import HOME, city_in, named_alone, route_in
from everthread.agents.offline.reading import NoteLine, Reading, Result
from everthread.agents.offline.reply import Call, Say, Step, plain

ASK_ORIGIN = "Where do you fly from?"
ASK_DESTINATION = "Where do you want to go?"
ASK_DAY = "On which day do you want to fly?"
ASK_STAY = "On which days do you check in and out?"
ASK_RENTAL = "On which days do you pick the car up and return it?"
ASK_INSURED = "From which day to which day shall the insurance run?"
ASK_CITY = "In which city?"
ASK_COST = "What does the trip cost in total?"
ASK_WHICH_DAY = "Which date do you mean?"
ASK_ISO = "Please write it as YYYY-MM-DD."

_DATE_QUESTIONS = (ASK_DAY, ASK_STAY, ASK_RENTAL, ASK_INSURED, ASK_WHICH_DAY, ASK_ISO)
_QUESTIONS = (*_DATE_QUESTIONS, ASK_ORIGIN, ASK_DESTINATION, ASK_CITY, ASK_COST)

_FLIGHT = pattern(words("flights?|fly|flying|plane tickets?|air ?fares?|air tickets?"))
_JOURNEY = pattern(
    words("book|get|take|bring|send|need|want|plan|planning|travel|go|going|trip|tickets?|visit|visiting|heading|off")
)
_HOTEL = pattern(words("hotels?|hostels?|accommodation|place to stay|somewhere to stay|rooms?|apartments?"))
_CAR = pattern(
    words(r"rental (?:car|van)s?|rent(?:ing|al)?\b.{0,20}\b(?:car|van|suv)s?|car (?:rental|hire)|hire (?:a )?car|cars?")
)
_INSURANCE = re.compile(r"\binsur(?:ance|ed?|ing)\b", re.IGNORECASE)
_CABINS = (
    ("premium_economy", r"\bpremium[ -]economy\b"),
    ("business", r"\bbusiness(?:[ -]class)?\b(?! trip| travel| meeting)"),
    ("first", r"\bfirst[ -]class\b|\bin first\b"),
    ("economy", r"\beconomy(?:[ -]class)?\b|\bcoach\b"),
)
_PEOPLE = pattern(
    r"\b(\d{1,2}|one|two|three|four|five|six|seven|eight|nine)"
    r" (?:people|persons?|adults?|travell?ers?|passengers?|guests?|of us)\b",
    r"\bfor (\d|two|three|four|five|six)\b(?! *(?:nights?|days?|weeks?|hours?|months?))",
)
_COUPLE = pattern(
    r"\bmy (?:wife|husband|partner|girlfriend|boyfriend|son|daughter|mother|father|friend)(?: and (?:me|i))?\b"
)
_AMOUNT = r"(\d[\d,]{0,15}(?:\.\d{1,4})?)"
_CURRENCY = r"(?:[€$£]|\b(?:USD|EUR|GBP)\s?)"
_MAXIMUM = pattern(
    rf"\b(?:under|below|max(?:imum)?|up to|at most|less than|no more than|not over)\s+(?:of )?{_CURRENCY}?{_AMOUNT}"
)
_COST = pattern(rf"{_CURRENCY}{_AMOUNT}", rf"\b{_AMOUNT}\s?(?:USD|EUR|GBP|dollars|euros?|pounds|[€$£])")
_PLAIN_COST = pattern(rf"\bcosts?\b\D{{0,20}}{_AMOUNT}()")
_CATEGORY = pattern(
    r"\b(economy|compact|mid-?size|intermediate|standard|full-?size|premium|luxury|suv|minivan|van|convertible|electric)\b"
)
_RETURNING = pattern(words("return flight|round[- ]trip|return ticket|and back|there and back"))
_AMENDING = pattern(
    words("instead|what about|how about|make (?:it|that)|change|rather|try|move|switch|different|same|also check"),
    r"\bsearch again\b",
)
_LIVES = pattern(r"\b(?:lives in|moved to|flies from|home (?:city|airport)(?: is|:)|based in) ([^.,;()]+)")


@dataclass(frozen=True)
class Fields:
    """How a search calls its first and last day, its place and its people."""

    start: str
    end: str
    place: str
    people: str | None = None


SEARCHES: Mapping[str, Fields] = {
    "search_flights": Fields("date", "return_date", "destination", "travellers"),
    "search_hotels": Fields("check_in", "check_out", "city", "guests"),
    "search_rental_cars": Fields("pick_up", "drop_off", "city"),
    "insurance_options": Fields("start", "end", "destination"),
}


def trip_steps(text: str, reading: Reading) -> list[Step]:
    """Plan the searches that a message asks for; none when it asks for none."""
    steps: list[Step] = []
    hotel, car, insurance = (noun.search(text) is not None for noun in (_HOTEL, _CAR, _INSURANCE))
    journey = _JOURNEY.search(text) and route_in(period_in(text, reading.today).rest).destination
    if _FLIGHT.search(text) or (journey and not (hotel or car or insurance)):
        steps.append(_flight(text, reading))
    steps += [_hotel(text, reading)] if hotel else []
    steps += [_car(text, reading)] if car else []
    steps += [_insurance(text, reading)] if insurance else []
    calls: list[Step] = [step for step in steps if isinstance(step, Call)]
    if calls and len(calls) < len(steps):
        # One focused question at a time, and none while a search can already begin.
        return [*calls, Say("The rest of your request is still open: ask for it again with its place and its days.")]
    return calls or steps[:1]


def is_trip_request(text: str) -> bool:
    """Tell whether a message asks for a search by itself, whatever was said before."""
    return any(noun.search(text) for noun in (_FLIGHT, _HOTEL, _CAR, _INSURANCE)) or (
        _JOURNEY.search(text) is not None and route_in(text).destination is not None
    )


def answered_request(reading: Reading) -> str | None:
    """Put an answer to our last question together with the request that it completes.

    Returns:
        One sentence that holds all that was said; None when nothing of ours is open.
    """
    answers = [reading.text]
    asked: list[str] = []
    for turn in reversed(reading.turns):
        question = next((question for question in _QUESTIONS if question in turn.assistant), None)
        if question is None:
            break
        asked.append(question)
        answers.append(turn.user)
        if is_trip_request(turn.user):
            break
    text = answers.pop()
    for question in reversed(asked):
        text = _completed(text, question, answers.pop(), reading.today)
    return text if asked else None


def amended(reading: Reading) -> Step | None:
    """Repeat the last search with what the user changes in it; None when the message changes nothing."""
    last = reading.latest(*SEARCHES)
    if last is None or not (_AMENDING.search(reading.text) or len(reading.text.split()) <= 6):
        return None
    period = period_in(reading.text, reading.today)
    if period.start and period.start.problem:
        return Say(period.start.problem)
    changes = {**_changed_days(last, period), **_changed_details(last.tool, reading.text, period.rest)}
    args = {**last.args, **changes}
    if not changes or args == dict(last.args):
        return None
    return Call(last.tool, args, _assumed(period.start) if period.start else "")


def home_of(reading: Reading) -> str | None:
    """Return where the user lives or flies from, by what is remembered."""
    named = reading.profile.get("home_airport") or reading.profile.get("home_city")
    told, noted = (_home_in(notes) for notes in (session_notes(reading), reading.long_term))
    return told or (str(named) if named else noted)


def _home_in(notes: Iterable[NoteLine]) -> str | None:
    found = (_LIVES.search(note.text) for note in notes)
    return next((match[1].strip() for match in found if match), None)


def _completed(text: str, question: str, answer: str, today: date) -> str:
    answer = answer.strip().rstrip(".!")
    if question in _DATE_QUESTIONS:
        return f"{period_in(text, today).rest} {answer}"
    if question == ASK_COST:
        return f"{text} cost {answer}"
    route = route_in(period_in(answer, today).rest)
    if question != ASK_CITY and (route.origin or route.destination):
        # "from Paris to Tokyo, tomorrow" says more than was asked for.
        return f"{text.rstrip('.!?')} {answer}"
    place = named_alone(period_in(answer, today).rest) or answer
    word = {ASK_ORIGIN: "from", ASK_CITY: "in"}.get(question, "to")
    return f"{text.rstrip('.!?')} {word} {place}"


def _flight(text: str, reading: Reading) -> Step:
    period = period_in(text, reading.today)
    route = route_in(period.rest)
    home = home_of(reading)
    origin, destination = (_resolved(place, home) for place in (route.origin or HOME, route.destination))
    if destination is None:
        return Say(ASK_DESTINATION)
    if question := _day_question(period.start, reading.today, ASK_DAY):
        return Say(question)
    if origin is None:
        return Say(ASK_ORIGIN)
    if origin.lower() == destination.lower():
        return Say(f"You are in {destination} already, as far as I know. {ASK_ORIGIN}")
    args: dict[str, Any] = {"origin": origin, "destination": destination, "date": _iso(period.start)}
    if period.end and period.end.day:
        args["return_date"] = _iso(period.end)
    args |= {"cabin": _cabin(text) or "economy", "travellers": _people(period.rest) or 1}
    remarks = [_assumed(day) for day in (period.start, period.end) if day]
    remarks.append(_passport(reading, period.end or period.start))
    if "return_date" not in args and _RETURNING.search(text):
        remarks.append("I searched one way; tell me the day of return and I search the way back as well.")
    return Call("search_flights", args, _joined(*remarks))


def _hotel(text: str, reading: Reading) -> Step:
    period = period_in(text, reading.today)
    step = _stay("search_hotels", text, period, reading, ASK_STAY)
    if isinstance(step, Say):
        return step
    extra: dict[str, Any] = {"guests": _people(period.rest) or _known(reading, "travellers") or 1}
    if maximum := _MAXIMUM.search(period.rest):
        extra["max_price"] = _amount(maximum[1])
    return Call(step.tool, {**step.args, **extra}, step.remark)


def _car(text: str, reading: Reading) -> Step:
    period = period_in(text, reading.today)
    step = _stay("search_rental_cars", text, period, reading, ASK_RENTAL)
    if isinstance(step, Say):
        return step
    category = _CATEGORY.search(period.rest)
    extra = {"category": category[1].lower()} if category else {}
    return Call(step.tool, {**step.args, **extra}, _joined(step.remark, _covered(reading, "rental_car_coverage")))


def _stay(tool: str, text: str, period: Period, reading: Reading, question: str) -> Call | Say:
    """Plan a search for a city and two days; what the message leaves out comes from the last search in view."""
    fields = SEARCHES[tool]
    city = _resolved(city_in(_without_nouns(period.rest)), home_of(reading)) or _known_place(reading)
    if city is None:
        return Say(ASK_CITY)
    days = _both_days(period, reading)
    if isinstance(days, str):
        return Say(days or question)
    remarks = [_assumed(day) for day in (period.start, period.end) if day]
    if period.start is None:
        remarks.append(f"I took {city} and the days of your last search, {days[0]} to {days[1]}.")
    args = {fields.place: city, fields.start: days[0], fields.end: days[1]}
    return Call(tool, args, _joined(*remarks))


def _insurance(text: str, reading: Reading) -> Step:
    period = period_in(text, reading.today)
    named = route_in(period.rest).destination or city_in(_without_nouns(period.rest))
    place = _resolved(named, home_of(reading)) or _known_place(reading)
    if place is None:
        return Say(ASK_DESTINATION)
    days = _both_days(period, reading)
    if isinstance(days, str):
        return Say(days or ASK_INSURED)
    cost = _COST.search(period.rest) or _PLAIN_COST.search(period.rest)
    if cost is None:
        return Say(ASK_COST)
    args = {"destination": place, "start": days[0], "end": days[1], "trip_cost": _amount(cost[1] or cost[2])}
    remarks = [_assumed(day) for day in (period.start, period.end) if day]
    return Call("insurance_options", args, _joined(*remarks, _covered(reading, "insurance_coverage")))


def _both_days(period: Period, reading: Reading) -> tuple[str, str] | str:
    """Return the first and last day, or the question to ask; an empty one means the usual question."""
    for day in (period.start, period.end):
        if day and (question := _day_question(day, reading.today, "")):
            return question
    if period.start and period.start.day and period.end and period.end.day:
        return _iso(period.start), _iso(period.end)
    last = reading.latest(*SEARCHES)
    if period.start is None and last is not None:
        fields = SEARCHES[last.tool]
        known = last.args.get(fields.start), last.args.get(fields.end)
        if all(known):
            return str(known[0]), str(known[1])
    return ""


def _day_question(day: Day | None, today: date, question: str) -> str:
    """Return what to ask about a day; empty when it can be used."""
    if day is None:
        return question
    if day.day is None:
        return day.problem or question
    if day.day < today:
        return f"{spoken(day.day)} is in the past; today is {spoken(today)}. {question or ASK_WHICH_DAY}"
    return ""


def _assumed(day: Day) -> str:
    if not day.vague or day.day is None:
        return ""
    return f"You said “{day.phrase}”, so I took {spoken(day.day)}; name another day and I search again."


def _joined(*remarks: str) -> str:
    return " ".join(remark for remark in remarks if remark)


def _covered(reading: Reading, name: str) -> str:
    """Say which cover the traveller already has, by the profile."""
    cover = reading.profile.get(name)
    return f"By your profile you already have: {plain(str(cover))}." if cover else ""


def _passport(reading: Reading, last: Day | None) -> str:
    """Warn of a passport that expires before the trip is over."""
    expiry = reading.profile.get("passport_expiry")
    if not isinstance(expiry, date) or last is None or last.day is None or expiry > last.day:
        return ""
    return f"Mind that by your profile your passport expires on {spoken(expiry)}."


def _iso(day: Day | None) -> str:
    return day.day.isoformat() if day and day.day else ""


def _resolved(place: str | None, home: str | None) -> str | None:
    return home if place == HOME else place


def _cabin(text: str) -> str | None:
    return next((cabin for cabin, named in _CABINS if re.search(named, text, re.IGNORECASE)), None)


def _people(text: str) -> int | None:
    if _COUPLE.search(text):
        return 2
    match = _PEOPLE.search(text)
    return number_of(match[1] or match[2]) if match else None


def _amount(text: str) -> float:
    return float(text.replace(",", ""))


def _without_nouns(text: str) -> str:
    """Take the words out that are no places although they may stand where a place does."""
    for noun in (_HOTEL, _CAR, _INSURANCE, _CATEGORY, _COST):
        text = noun.sub(" ; ", text)
    return text


def _known(reading: Reading, name: str) -> int | None:
    last = reading.latest(*SEARCHES)
    value = last.args.get(name) if last else None
    return value if isinstance(value, int) else None


def _known_place(reading: Reading) -> str | None:
    last = reading.latest(*SEARCHES)
    value = last.args.get(SEARCHES[last.tool].place) if last else None
    return str(value) if value else None


def _changed_days(last: Result, period: Period) -> dict[str, str]:
    """Move a search to other days; one new day keeps the length of the stay."""
    fields = SEARCHES[last.tool]
    if period.start is None or period.start.day is None:
        return {fields.end: _iso(period.end)} if period.end and period.end.day else {}
    changed = {fields.start: _iso(period.start)}
    if period.end and period.end.day:
        return {**changed, fields.end: _iso(period.end)}
    try:
        length = date.fromisoformat(str(last.args[fields.end])) - date.fromisoformat(str(last.args[fields.start]))
    except (KeyError, ValueError):
        return changed
    return {**changed, fields.end: (period.start.day + length).isoformat()}


def _changed_details(tool: str, text: str, rest: str) -> dict[str, Any]:
    fields = SEARCHES[tool]
    changes: dict[str, Any] = {}
    if fields.people and (people := _people(rest)):
        changes[fields.people] = people
    if tool == "search_flights":
        route = route_in(rest)
        named = {"origin": route.origin, "destination": route.destination, "cabin": _cabin(text)}
        changes |= {name: value for name, value in named.items() if value and value != HOME}
    if tool == "search_hotels" and (maximum := _MAXIMUM.search(rest)):
        changes["max_price"] = _amount(maximum[1])
    if tool == "search_rental_cars" and (category := _CATEGORY.search(rest)):
        changes["category"] = category[1].lower()
    return changes
