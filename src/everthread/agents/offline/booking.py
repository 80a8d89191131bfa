"""Find out which of the options on the table the user wants to book, and for whom."""

import re

from everthread.agents.offline.dates import period_in
from everthread.agents.offline.memories import preferences
from everthread.agents.offline.options import Option, options_in, shown_in
from everthread.agents.offline.patterns import pattern, words
from everthread.agents.offline.places import route_in
from everthread.agents.offline.reading import Reading
from everthread.agents.offline.reply import Call, Say, Step
from everthread.agents.offline.trips import SEARCHES, is_trip_request
from everthread.memory.text.constraints import keeps_approval

BOOK = "book"

_PROPOSED = re.compile(r"Shall I book `([^`\s]+)`")
_NAMES_ASKED = re.compile(r"Who travels on `([^`\s]+)`\?")
_YES = pattern(
    r"^(?:(?:yes|yep|yeah|sure|please do|please book|go ahead|go for it|do it|book it|confirm(?:ed)?)\b"
    r"|(?:ok(?:ay)?|great|perfect|sounds good|that works|agreed)\b(?!.*\bthank))"
    r"(?!.*\b(?:but|instead|different|change|wait)\b)"
)
_NO = pattern(r"^(?:no|nope|not yet|don['’]?t|do not|stop|wait|never ?mind|none|neither)\b")
_CHOOSING = pattern(
    words("book|reserve|take|choose|confirm|pick|buy|select|go (?:with|for)"),
    r"\bi(?:['’]ll| will) (?:take|have)\b",
)
_BARE = pattern(r"^\W*(?:the )?(?:option |number |no\.? ?|#)?(?:\d{1,2}|\w+)(?: one| option)?(?:,? please)?\W*$")
_ID = re.compile(r"`([^`\s]{2,80})`|\b([A-Z]{2,4}-(?=[A-Z0-9-]*\d)[A-Z0-9-]{3,60})\b")
_NUMBERED = pattern(r"\b(?:option|number|choice)\s*#?(\d{1,2})\b", r"#(\d{1,2})\b", r"^\W*(\d{1,2})\W*$")
_ORDINALS = {
    "first": 1, "1st": 1, "one": 1, "second": 2, "2nd": 2, "two": 2, "third": 3, "3rd": 3, "three": 3,
}  # fmt: skip
_ORDINAL = pattern(r"\b(first|second|third|1st|2nd|3rd)\b(?! class)", r"\b(?:option|number)\s+(one|two|three)\b")
_SUPERLATIVE = pattern(r"\b(cheapest|fastest|quickest|last|recommended|your recommendation)\b")
_NAMES = re.compile(r"\b(?:for|travell?ers?(?: are|:)?|names?(?: are| is|:)?)\s+(?=[A-ZÀ-Þ])(.+)$")
_NAME = re.compile(r"[^\W\d_a-z][\w'’.-]*(?:\s+(?:(?:de|da|van|von|der|la|le|bin|al)\s+)*[^\W\d_a-z][\w'’.-]*){0,4}")


_OWN_NAME = rf"({_NAME.pattern})(?=\s*(?:[.,!;]|$|\band\b|\bfrom\b))"
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_CALLED = re.compile(rf"\b(?:[Mm]y (?:full )?name is|[Cc]all me)\s+{_OWN_NAME}")
_INTRODUCED = re.compile(rf"(?:^|[.!,]\s+)(?:[Aa]nd )?(?:I['’]m|I am|[Tt]his is)\s+{_OWN_NAME}")


def booking_step(reading: Reading) -> Step | None:
    """Plan a booking when the user chooses or confirms an option; None when the message is about something else."""
    # `Never book without asking me` chooses nothing, whatever is said beside it.
    text = " ".join(one for one in _SENTENCE.split(reading.text.strip()) if not keeps_approval(one))
    if not text:
        return None
    named = _NAMES_ASKED.search(reading.last_answer)
    if named and (names := _names(f"for {text}")):
        return _book(named[1], reading, names)
    proposed = _PROPOSED.findall(reading.last_answer)
    if proposed and _NO.match(text):
        return Say("All right, I book nothing. What shall I change: the day, the place, the price or the class?")
    shown = _on_the_table(reading)
    choosing = _CHOOSING.search(text) is not None or (bool(proposed) and _BARE.match(text) is not None)
    chosen = _identified(text, shown)
    if chosen is None and _names_a_journey(reading):
        return None
    if chosen is None and choosing:
        chosen = _chosen(text, shown, reading)
    if chosen is None and proposed and _YES.match(text):
        chosen = proposed[-1]
    if chosen:
        return _book(chosen, reading, _names(text))
    if choosing and _refers_to_an_option(text) and (shown or not is_trip_request(text)):
        return Say(
            "I do not see that option any more. Give me its id, such as the one in backquotes in the list, "
            "or tell me what to search and I list the options again."
        )
    return None


def _refers_to_an_option(text: str) -> bool:
    return any(pattern.search(text) for pattern in (_NUMBERED, _ORDINAL, _SUPERLATIVE)) or bool(
        re.search(r"\b(?:it|that one|this one|that|option)\W*$", text, re.IGNORECASE)
    )


def _on_the_table(reading: Reading) -> dict[int, str]:
    """Return the options that the newest list of ours numbered."""
    lists = (shown_in(turn.assistant) for turn in reversed(reading.turns))
    return next((shown for shown in lists if shown), {})


def _names_a_journey(reading: Reading) -> bool:
    """Tell whether a message such as "Book the first flight to Rome" asks for a search."""
    period = period_in(reading.text, reading.today)
    return period.start is not None or route_in(period.rest).destination is not None


def _identified(text: str, shown: dict[int, str]) -> str | None:
    """Return the id that the message holds, in the spelling of the list."""
    known = next((name for name in shown.values() if name.lower() in text.lower()), None)
    match = _ID.search(text)
    return known or (match[1] or match[2] if match else None)


def _chosen(text: str, shown: dict[int, str], reading: Reading) -> str | None:
    if match := _NUMBERED.search(text):
        return shown.get(int(next(filter(None, match.groups()))))
    if match := _SUPERLATIVE.search(text):
        return _superlative(match[1].lower(), shown, reading)
    if match := _ORDINAL.search(text):
        return shown.get(_ORDINALS[(match[1] or match[2]).lower()])
    if re.search(r"\b(?:it|that one|this one|that)\b", text, re.IGNORECASE):
        return shown.get(1)
    return None


def _superlative(word: str, shown: dict[int, str], reading: Reading) -> str | None:
    if word == "last" and shown:
        return shown[max(shown)]
    if "recommend" in word:
        return shown.get(1)
    last = reading.latest(*SEARCHES)
    options = [option for option in options_in(last.text)[0] if option.id in shown.values()] if last else []
    measured = [option for option in options if _measure(option, word) is not None]
    best = min(measured, key=lambda option: _measure(option, word) or 0, default=None)
    return best.id if best else None


def _measure(option: Option, word: str) -> float | None:
    return option.price if word == "cheapest" else option.minutes


def _book(option_id: str, reading: Reading, names: list[str]) -> Step:
    wanted = _travellers(reading, option_id)
    if not names:
        names = [_name_of_the_user(reading) or "traveller"]
    if len(names) < wanted:
        return Say(f"Who travels on `{option_id}`? I need {wanted} full names.")
    args: dict[str, object] = {"option_id": option_id, "travellers": names}
    if _is_flight(reading, option_id) and (wish := flight_wish(reading)):
        args["note"] = wish
    return Call(BOOK, args)


def introduced_in(text: str) -> str:
    """Return the name that somebody gives as their own in a message of one sentence; empty when they give none."""
    match = _CALLED.search(text) or _INTRODUCED.search(text)
    return match[1].rstrip(".") if match and len(text.split()) <= len(match[1].split()) + 5 else ""


def _name_of_the_user(reading: Reading) -> str:
    """Return how the user is called: what they said themselves, else the profile."""
    said = [*(turn.user for turn in reading.turns), reading.text]
    named = (match[1].rstrip(".") for text in reversed(said) if (match := _CALLED.search(text)))
    introduced = (match[1].rstrip(".") for text in reversed(said) if (match := _INTRODUCED.search(text)))
    noted = (match[1] for line in preferences(reading) if (match := re.search(r"^Name is ([^.;]+)", line)))
    # "I'm German" is no name, so it counts only where nothing better is known.
    return next(named, "") or str(reading.profile.get("name") or "") or next(noted, "") or next(introduced, "")


def flight_wish(reading: Reading) -> str:
    """Return what to ask the airline for, such as "aisle seat, vegetarian meal"; empty when nothing is known."""
    lines = preferences(reading)
    seat, meal = _first(lines, r"\b(aisle|window)\b"), _first(lines, r"\b(vegetarian|vegan|halal|kosher|gluten-free)\b")
    return ", ".join([*([f"{seat} seat"] if seat else []), *([f"{meal} meal"] if meal else [])])


def _travellers(reading: Reading, option_id: str) -> int:
    """Return for how many people the flight was searched; other bookings need one name."""
    for turn in reversed(reading.turns):
        for result in turn.results:
            if result.tool == "search_flights" and option_id in result.text:
                count = result.args.get("travellers", 1)
                return count if isinstance(count, int) else 1
    return 1


def _is_flight(reading: Reading, option_id: str) -> bool:
    searched = (result for turn in reading.turns for result in turn.results if result.tool == "search_flights")
    return any(option_id in result.text for result in searched)


def _first(lines: list[str], named: str) -> str:
    """Return the first wish of a kind; what was said in this conversation comes first, and "no longer …" ends one."""
    over: set[str] = set()
    for line in lines:
        if given_up := re.search(r"\(no longer ([^)]*)\)", line, re.IGNORECASE):
            over |= {word.lower() for word in re.findall(named, given_up[1], re.IGNORECASE)}
            line = line.replace(given_up.group(), "")
        found = re.search(named, line, re.IGNORECASE)
        if found is None:
            continue
        if re.search(r"\b(?:no|not|never|avoids?|hates?|dislikes?)\b", line, re.IGNORECASE):
            over.add(found[1].lower())
        elif found[1].lower() not in over:
            return found[1].lower()
    return ""


def _names(text: str) -> list[str]:
    """Read the travellers' names after "for"; a number or a common word is none."""
    match = _NAMES.search(text.strip())
    if match is None:
        return []
    parts = re.split(r",\s*(?:and\s+)?|\s+and\s+|\s*&\s*", match[1].rstrip(". !"))
    return [found.group() for part in parts if (found := _NAME.fullmatch(part.strip()))]
