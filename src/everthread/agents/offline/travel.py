"""What the offline model does for the travel concierge."""

import re

from everthread.agents.offline.booking import BOOK, booking_step, flight_wish
from everthread.agents.offline.dates import period_in
from everthread.agents.offline.failures import told_to_the_user
from everthread.agents.offline.memories import SAVE, confirmed, is_memory_question, known, memory_steps, preferences
from everthread.agents.offline.options import present
from everthread.agents.offline.reading import Reading, Result, visible
from everthread.agents.offline.reply import Call, Say, Step, failure, plain
from everthread.agents.offline.statements import is_wish_to_forget
from everthread.agents.offline.trips import SEARCHES, amended, answered_request, is_trip_request, trip_steps

ABILITIES = (
    "I can search flights, hotels, rental cars and travel insurance, book an option after you approve it, list your "
    "bookings, and remember what you prefer. For example: “Find me a flight to Lisbon on 12 May.”"
)

_BOOKINGS = re.compile(
    r"\b(?:list|show|see|what|which|do i have|check|view)\b.{0,30}\b(?:bookings|reservations|booked|booking status)\b"
    r"|^my (?:bookings|trips)\b|\bwhat (?:have|did|do) (?:i|you|we) (?:already )?(?:booked|book|have booked)\b",
    re.IGNORECASE,
)
_CANCEL = re.compile(r"\bcancel\b", re.IGNORECASE)


def plan(reading: Reading) -> list[Step]:
    """Plan what to do about the user's message; nothing when it is not understood."""
    notes, rest = memory_steps(reading)
    if notes and not rest and is_wish_to_forget(reading.text):
        return notes
    if is_memory_question(rest):
        return [*notes, Say(known(reading))]
    if _BOOKINGS.search(rest):
        return [*notes, Call("list_bookings")]
    if _CANCEL.search(rest):
        return [*notes, Say("I cannot cancel bookings here; I can list them, so that you have the references at hand.")]
    if booking := booking_step(reading):
        return [*notes, booking]
    if is_trip_request(rest) and not _only_answers(reading):
        return [*notes, *trip_steps(rest, reading)]
    if (asked := answered_request(reading)) and not _repeats(steps := trip_steps(asked, reading), reading):
        return [*notes, *steps]
    if not notes and (change := amended(reading)):
        return [change]
    return [*notes]


def tell(reading: Reading, result: Result, remark: str) -> str:
    """Put a tool's answer into words; all figures come from the tool."""
    if result.tool == SAVE:
        return confirmed(reading, result)
    if result.failed:
        return failure(result)
    if result.tool in SEARCHES:
        wish = flight_wish(reading) if result.tool == "search_flights" else ""
        # What is asked for now counts before what is known from earlier.
        tastes = [reading.text, answered_request(reading) or "", *preferences(reading)]
        return "\n\n".join(part for part in (remark, present(result.text, tastes, wish)) if part)
    if result.tool == BOOK:
        return _booked(result)
    if result.tool == "list_bookings" and result.text.startswith("There are no bookings"):
        return "You have no bookings."
    return visible(result.text) or f"`{plain(result.tool)}` answered nothing."


def _booked(result: Result) -> str:
    """Report what became of a booking; a refusal's advice is meant for the model and stays out."""
    if result.text.startswith("Nothing was booked"):
        return f"{visible(told_to_the_user(result.text), 400)} What shall I change?"
    text = re.sub(r"^The user added: ", "You added: ", result.text, flags=re.MULTILINE)
    text = text.replace("after the user's approval", "after your approval", 1)
    return f"{visible(text)}\n\nIs there anything else for this trip, such as a hotel, a car or insurance?"


def _only_answers(reading: Reading) -> bool:
    """Tell whether a message such as "I fly from Oakland" answers our question instead of asking anew."""
    if answered_request(reading) is None:
        return False
    return not re.search(
        r"\b(?:to|hotels?|cars?|insurance)\b", period_in(reading.text, reading.today).rest, re.IGNORECASE
    )


def _repeats(steps: list[Step], reading: Reading) -> bool:
    """Tell whether a plan only asks again what was asked last, so that the message was no answer."""
    return not any(isinstance(step, Call) or step.text not in reading.last_answer for step in steps)
