"""What the offline model does for the travel concierge: search, compare, book, list."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import date, timedelta
from functools import cache
from typing import Any

from everthread.agents.offline.memory import preferences
from everthread.agents.offline.offers import offers_in, present, shown_in
from everthread.agents.offline.prompt import Prompt, Result
from everthread.agents.offline.replies import Call, Say, Step, for_user, plain, visible
from everthread.agents.travel.sandbox.airports import cities
from everthread.memory.text.consent import agrees, answer_of
from everthread.memory.text.constraints import keeps_approval
from everthread.memory.text.dates import MONTHS, count_of, dates_in
from everthread.memory.text.sentences import sentences

ABILITIES = (
    "I can search flights, hotels, rental cars and travel insurance, book an option after you approve it, list your "
    "bookings, and remember what you prefer. For example: “Find me a flight to Lisbon on 12 May.”"
)

_ASK = {
    "origin": "Where do you fly from?",
    "destination": "Where do you want to go?",
    "city": "In which city?",
    "date": "On which day do you want to fly?",
    "days": "From which day to which day?",
    "trip_cost": "What does the trip cost in total?",
}
_EXACT_DAY = "Which date do you mean? Please write it as YYYY-MM-DD."

# What a message speaks of, the tool that searches for it, and how that tool calls place, first and last day.
_SEARCHES: Mapping[str, tuple[str, tuple[str, str, str]]] = {
    "search_hotels": (r"hotels?|hostels?|accommodation|place to stay|rooms?", ("city", "check_in", "check_out")),
    "search_rental_cars": (r"rental|rent|cars?", ("city", "pick_up", "drop_off")),
    "insurance_options": (r"insur(?:ance|ed?|ing)", ("destination", "start", "end")),
    "search_flights": (r"flights?|fly|flying|plane|tickets?|travel|trip", ("destination", "date", "return_date")),
}
_CABINS = {"premium_economy": r"premium[ -]economy", "business": r"business(?: class)?", "first": r"first[ -]class"}
_CATEGORIES = "economy|compact|midsize|premium|luxury|suv|minivan|van"

_NAME = r"[A-ZÀ-Þ][\w'’.-]{0,60}(?: (?:(?:de|da|do|del|la|el|of|den) )?[A-ZÀ-Þ][\w'’.-]{0,60}){0,3}"
_NOT_PLACES = {*MONTHS, *(month[:3] for month in MONTHS), "I"}
_DAYS_OF_ONE_MONTH = re.compile(
    rf"\b(\d{{1,2}})\s*(?:-|–|to|until|and)\s*(\d{{1,2}})(?:st|nd|rd|th)? (?:of )?({'|'.join(MONTHS)})\b", re.IGNORECASE
)
_NIGHTS = re.compile(r"\bfor (\w+) (night|day|week)s?\b", re.IGNORECASE)
_PEOPLE = re.compile(r"\b(?:for )?(\w+) (?:people|persons?|adults?|travell?ers?|passengers?|guests?)\b", re.IGNORECASE)
_PRICE_LIMIT = re.compile(r"\b(?:under|below|up to|at most|max(?:imum)?)\s+[€$£]?(\d[\d,]*)", re.IGNORECASE)
_COST = re.compile(
    r"[€$£]\s?(\d[\d,]{0,15})|\b(\d[\d,]{0,15})\s?(?:USD|EUR|dollars|euros)\b|\bcosts? \D{0,10}(\d[\d,]{0,15})", re.I
)
_AMENDING = re.compile(r"\b(?:instead|what about|how about|make (?:it|that)|change|rather)\b", re.IGNORECASE)

_BOOKINGS = re.compile(
    r"\b(?:list|show|see|what|which|my)\b.{0,30}\b(?:bookings|reservations)\b"
    r"|\bwhat (?:have|did) (?:i|we) .{0,10}\bbook",
    re.IGNORECASE,
)
_PROPOSED = re.compile(r"Shall I book `([^`\s]+)`")
_WHO_TRAVELS = re.compile(r"Who travels on `([^`\s]+)`\?")
_CHOOSING = re.compile(r"\b(?:book|reserve|take|choose|pick|go (?:with|for))\b", re.IGNORECASE)
_ORDINALS = {"first": 1, "1st": 1, "second": 2, "2nd": 2, "third": 3, "3rd": 3}
_NUMBER = re.compile(r"\b(?:option|number) #?(\d)\b|^\W*(\d)\W*$|\b(first|1st|second|2nd|third|3rd)\b(?! class)", re.I)
_ID = re.compile(r"\b[A-Z]{3}-[A-Z]{3}-[A-Z0-9-]{2,60}\b", re.IGNORECASE)
_TRAVELLERS = re.compile(rf"\bfor ({_NAME}(?:(?:,| and|, and) {_NAME}){{0,8}})")


@dataclass(frozen=True)
class Trip:
    """What a message says about a trip; None for what it does not say."""

    tool: str | None = None
    origin: str | None = None
    destination: str | None = None
    place: str | None = None
    """A place that stands for itself, as in an answer."""
    days: tuple[date, ...] | None = None
    vague: str | None = None
    """The phrase that a day was chosen for, such as `next month`."""
    is_ambiguous: bool | None = None
    """Whether a date has two readings."""
    people: int | None = None
    cabin: str | None = None
    category: str | None = None
    max_price: float | None = None
    cost: float | None = None

    def or_else(self, earlier: "Trip") -> "Trip":
        """Fill in what only an earlier message said; a day settles an earlier doubt about the date."""
        values = {one.name: value for one in fields(self) if (value := getattr(self, one.name))}
        return replace(earlier, **values | ({"is_ambiguous": None} if self.days else {}))


def plan(prompt: Prompt, text: str) -> list[Step]:
    """Plan what to do about a message; nothing when it is not understood.

    Args:
        text: the message without what was noted.
    """
    # `Never book without asking me` chooses nothing, whatever is said beside it.
    text = " ".join(sentence for sentence in sentences(text) if not keeps_approval(sentence))
    if not text:
        return []
    if _BOOKINGS.search(text):
        return [Call("list_bookings")]
    if re.search(r"\bcancel\b", text, re.IGNORECASE):
        return [Say("I cannot cancel bookings here; I can list them, so that you have the references at hand.")]
    trip = trip_in(text, prompt.today)
    if step := _booking(prompt, text, trip):
        return [step]
    if step := _search(prompt, text, trip):
        return [step]
    return []


def describe(prompt: Prompt, result: Result, remark: str) -> str:
    """Put a tool's answer into words; all figures come from the tool."""
    if result.tool in _SEARCHES:
        wish = _wish(prompt) if result.tool == "search_flights" else ""
        # What is asked for now counts before what is known from earlier.
        return "\n\n".join(filter(None, (remark, present(result.text, [prompt.text, *preferences(prompt)], wish))))
    if result.tool == "book" and result.text.startswith("Nothing was booked"):
        return f"{for_user(result.text)} What shall I change?"
    if result.tool == "book":
        text = result.text.replace("The user added: ", "You added: ").replace("the user's approval", "your approval", 1)
        return f"{visible(text)}\n\nIs there anything else for this trip, such as a hotel, a car or insurance?"
    if result.text.startswith("There are no bookings"):
        return "You have no bookings."
    return visible(result.text) or f"`{plain(result.tool)}` answered nothing."


def trip_in(text: str, today: date) -> Trip:
    """Read what a message says about a trip."""
    text = _DAYS_OF_ONE_MONTH.sub(r"\1 \3 to \2 \3", text)
    days, vague, is_ambiguous = _days(text, today)
    for mention in reversed(dates_in(text, today, prefer="future")):
        text = f"{text[: mention.start]} , {text[mention.end :]}"
    tool = next((name for name, (nouns, _) in _SEARCHES.items() if re.search(rf"(?i)\b(?:{nouns})\b", text)), None)
    origin, destination = _place_after("from", text), _place_after("to|towards|visit|visiting", text)
    city = _place_after("in|at|near|for", text)
    if tool is None and destination and re.search(r"(?i)\b(?:book|get|take|bring|go|going|want|need)\b", text):
        tool = "search_flights"
    if origin is None and (pair := re.search(rf"({_NAME}) (?:to|->|→|-) {_NAME}", text)):
        origin = pair[1] if _city_names().fullmatch(pair[1]) else None
    people = _PEOPLE.search(text)
    cabin = next((name for name, words in _CABINS.items() if re.search(rf"(?i)\b{words}\b", text)), None)
    category = re.search(rf"(?i)\b({_CATEGORIES})\b", text)
    limit, cost = _PRICE_LIMIT.search(text), _COST.search(text)
    return Trip(
        tool=tool,
        origin=origin,
        destination=destination or city,
        place=_place(text.strip(" .!,?")),
        days=days or None,
        vague=vague,
        is_ambiguous=is_ambiguous or None,
        people=count_of(people[1].lower()) if people else None,
        cabin=cabin,
        category=category[1].lower() if category else None,
        max_price=_amount(limit[1]) if limit else None,
        cost=_amount(next(filter(None, cost.groups()))) if cost else None,
    )


def _days(text: str, today: date) -> tuple[tuple[date, ...], str | None, bool]:
    """Return the days that a text names, the phrase that is not a day, and whether a date has two readings."""
    days: list[date] = []
    vague = None
    for mention in dates_in(text, today, prefer="future"):
        if mention.span is None:
            return (), None, True
        day = mention.span.first
        if mention.unit in ("month", "year"):
            # The middle of a month stands for it; the reply says so.
            day, vague = day.replace(day=15), mention.phrase
        elif mention.unit in ("week", "weekend"):
            vague = mention.phrase
        days.append(day)
    stay = _NIGHTS.search(text)
    if len(days) == 1 and stay and (count := count_of(stay[1].lower())):
        days.append(days[0] + timedelta(days=count * (7 if stay[2].lower() == "week" else 1)))
    return tuple(days[:2]), vague, False


@cache
def _city_names() -> re.Pattern[str]:
    names = sorted((name for city in cities().values() for name in city.names), key=len, reverse=True)
    return re.compile(rf"(?:{'|'.join(map(re.escape, names))})\b", re.IGNORECASE)


def _place_after(words: str, text: str) -> str | None:
    """Return the place after one of these words: a name with capitals, or a well-known city however it is written."""
    for match in re.finditer(rf"(?i)\b(?:{words})\s+(?:the )?", text):
        if place := _place(text[match.end() :]):
            return place
    return None


def _place(text: str) -> str | None:
    """Return the place that a text begins with."""
    match = _city_names().match(text) or re.match(_NAME, text)
    if match is None or match.group() in _NOT_PLACES:
        return "home" if re.match(r"(?i)home\b", text) else None
    return match.group() if match.group()[0].isupper() else match.group().title()


def _search(prompt: Prompt, text: str, trip: Trip) -> Step | None:
    """Plan a search, or ask for what is missing; None when the message asks for no search."""
    asked = [name for name, question in _ASK.items() if question in prompt.last_answer]
    asked += ["days"] if _EXACT_DAY in prompt.last_answer else []
    last = prompt.latest(*_SEARCHES)
    if trip.tool is None and asked:
        trip = _completed(prompt, trip, text, asked[0])
    elif trip.tool is None and last and (_AMENDING.search(text) or len(text.split()) <= 6):
        return _amended(trip, last)
    if trip.tool is None:
        return None
    _, (place_name, first_name, last_name) = _SEARCHES[trip.tool]
    home = _home(prompt)
    place = _resolved(trip.destination, home)
    remark = ""
    days = trip.days or ()
    if trip.tool != "search_flights" and last and not days:
        _, (last_place, last_first, last_last) = _SEARCHES[last.tool]
        place = place or last.args.get(last_place)
        known = [last.args.get(last_first), last.args.get(last_last)]
        days = tuple(date.fromisoformat(str(day)) for day in known if day)
        remark = f"I took the days of your last search, {' to '.join(map(str, days))}." if len(days) == 2 else ""
    if place is None:
        return Say(_ASK[place_name])
    if trip.is_ambiguous:
        return Say(_EXACT_DAY)
    is_flight = trip.tool == "search_flights"
    if not is_flight and len(days) == 1 and "weekend" in (trip.vague or ""):
        days = (days[0], days[0] + timedelta(days=1))
    if len(days) < (1 if is_flight else 2):
        return Say(_ASK["date" if is_flight else "days"])
    args: dict[str, Any] = {place_name: place, first_name: days[0].isoformat()}
    if len(days) > 1:
        args[last_name] = days[1].isoformat()
    if trip.vague:
        remark = f"You said “{trip.vague}”, so I took {_spoken(days[0])}; name another day and I search again."
    if is_flight:
        origin = _resolved(trip.origin, home) or home
        if origin is None or origin.lower() == place.lower():
            return Say(_ASK["origin"])
        args = {"origin": origin, **args, "cabin": trip.cabin or "economy", "travellers": trip.people or 1}
    elif trip.tool == "search_hotels":
        args["guests"] = trip.people or 1
        args |= {"max_price": trip.max_price} if trip.max_price else {}
    elif trip.tool == "search_rental_cars":
        args |= {"category": trip.category} if trip.category else {}
        remark = f"{remark} {_covered(prompt, 'rental_car_coverage')}".strip()
    else:
        if not trip.cost:
            return Say(_ASK["trip_cost"])
        args["trip_cost"] = trip.cost
        remark = f"{remark} {_covered(prompt, 'insurance_coverage')}".strip()
    return Call(trip.tool, args, remark)


def _completed(prompt: Prompt, answer: Trip, text: str, asked: str) -> Trip:
    """Put an answer to our question together with the request that it completes."""
    # A place that no list has is taken as it is written.
    other = text.strip(" .!?") if len(text.split()) <= 3 and not answer_of(text)[0] else None
    if asked == "origin" and not answer.origin:
        answer = replace(answer, origin=answer.place or answer.destination or other, destination=None)
    elif asked in ("destination", "city") and not answer.destination:
        answer = replace(answer, destination=answer.place or other)
    elif asked == "trip_cost" and (amount := re.search(r"\d[\d,]*", text)):
        answer = replace(answer, cost=_amount(amount.group()))
    answer = replace(answer, place=None)
    if answer == Trip():
        return answer
    for turn in reversed(prompt.turns):
        answer = answer.or_else(trip_in(turn.user, prompt.today))
        if answer.tool:
            break
        if "?" not in turn.assistant:
            return Trip()
    return answer


def _amended(trip: Trip, last: Result) -> Step | None:
    """Repeat the last search with what the user changes in it; None when the message changes nothing."""
    _, (place_name, first_name, last_name) = _SEARCHES[last.tool]
    changes: dict[str, Any] = {}
    if trip.days:
        changes[first_name] = trip.days[0].isoformat()
        changes |= {last_name: trip.days[1].isoformat()} if len(trip.days) > 1 else {}
    if trip.destination:
        changes[place_name] = trip.destination
    named: dict[str, Any] = {}
    if last.tool == "search_flights":
        named = {"origin": trip.origin, "cabin": trip.cabin, "travellers": trip.people}
    elif last.tool == "search_hotels":
        named = {"guests": trip.people, "max_price": trip.max_price}
    changes |= {name: value for name, value in named.items() if value}
    args = {**last.args, **changes}
    return Call(last.tool, args) if args != dict(last.args) else None


def _booking(prompt: Prompt, text: str, trip: Trip) -> Step | None:
    """Plan a booking when the user chooses or confirms an option; None when the message is about something else."""
    if who := _WHO_TRAVELS.search(prompt.last_answer):
        return _book(prompt, who[1], re.findall(_NAME, text))
    proposed = _PROPOSED.search(prompt.last_answer)
    if proposed and answer_of(text)[0] == "no" and len(text.split()) <= 6:
        return Say("All right, I book nothing. What shall I change: the day, the place, the price or the class?")
    lists = (shown_in(turn.assistant) for turn in reversed(prompt.turns))
    shown = next((options for options in lists if options), {})
    chosen = next((name for name in shown.values() if name.lower() in text.lower()), None)
    if chosen is None and (match := _ID.search(text)):
        chosen = match.group().upper()
    if chosen is None and (trip.days or (trip.tool and trip.destination)):
        return None
    is_choosing = _CHOOSING.search(text) is not None
    number = _NUMBER.search(text)
    if chosen is None and number and (is_choosing or proposed):
        chosen = shown.get(int(number[1] or number[2] or _ORDINALS[number[3].lower()]))
    if chosen is None and (wanted := re.search(r"(?i)\b(cheapest|fastest)\b", text)):
        chosen = _superlative(prompt, wanted[1].lower(), shown.values())
    if (
        chosen is None
        and proposed
        and (agrees(text) or (is_choosing and re.search(r"(?i)\b(?:it|that one|this one)\b", text)))
    ):
        chosen = proposed[1]
    if chosen:
        names = _TRAVELLERS.search(text)
        return _book(prompt, chosen, re.split(r", and |, | and ", names[1].rstrip(".")) if names else [])
    if is_choosing and number:
        return Say("I do not see that option any more. Give me its id, or tell me what to search and I list it again.")
    return None


def _superlative(prompt: Prompt, word: str, shown: Any) -> str | None:
    last = prompt.latest(*_SEARCHES)
    offers = [offer for offer in offers_in(last.text)[0] if offer.id in shown] if last else []
    best = min(offers, key=lambda offer: offer.price if word == "cheapest" else offer.minutes, default=None)
    return best.id if best else None


def _book(prompt: Prompt, option_id: str, names: Sequence[str]) -> Step:
    results = [result for turn in prompt.turns for result in turn.results]
    flight = next((one for one in results if one.tool == "search_flights" and option_id in one.text), None)
    needed = int(flight.args.get("travellers", 1)) if flight else 1
    names = list(names) or [str(prompt.profile.get("name") or "traveller")]
    if len(names) < needed:
        return Say(f"Who travels on `{option_id}`? I need {needed} full names.")
    args: dict[str, Any] = {"option_id": option_id, "travellers": names}
    if flight and (wish := _wish(prompt)):
        args["note"] = wish
    return Call("book", args)


def _wish(prompt: Prompt) -> str:
    """Return what to ask the airline for, such as "aisle seat, vegetarian meal"; empty when nothing is known."""
    lines = [line.lower() for line in preferences(prompt)]
    lines = [line for line in lines if not re.search(r"\b(?:no|not|never|no longer|avoids?|hates?)\b", line)]
    wishes = []
    for thing, kinds in (("seat", "aisle|window"), ("meal", "vegetarian|vegan|halal|kosher|gluten-free")):
        found = (match[1] for line in lines if (match := re.search(rf"\b({kinds})\b", line)))
        wishes += [f"{kind} {thing}" for kind in list(found)[:1]]
    return ", ".join(wishes)


def _home(prompt: Prompt) -> str | None:
    """Return where the user lives or flies from, by what is remembered."""
    named = prompt.profile.get("home_airport") or prompt.profile.get("home_city")
    lines = (
        re.search(r"\b(?:[Ll]ives? in|[Mm]oved to|[Hh]ome (?:city|airport)(?: is|:)) ([^.,;()]+)", line)
        for line in (prompt.text, *preferences(prompt))
    )
    return str(named) if named else next((match[1].strip() for match in lines if match), None)


def _resolved(place: str | None, home: str | None) -> str | None:
    return home if place == "home" else place


def _covered(prompt: Prompt, name: str) -> str:
    cover = prompt.profile.get(name)
    return f"By your profile you already have: {plain(str(cover))}." if cover else ""


def _amount(text: str) -> float:
    return float(text.replace(",", ""))


def _spoken(day: date) -> str:
    return f"{day:%A} {day.day} {day:%B %Y}"
