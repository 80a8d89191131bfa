"""Read from where to where somebody wants to go."""

import re
from dataclasses import dataclass

from everthread.agents.offline.patterns import word_set

HOME = "home"
"""What `origin` or `destination` says when somebody flies from or to where they live."""

_TOKEN = re.compile(r"St\.|[^\W\d_](?:[\w'’-]|\.(?=\w))*|\S")
_CODES = re.compile(r"\b([A-Z]{3})\s*(?:->|→|–|-|>|/)\s*([A-Z]{3})\b")

# Words that never begin a name; lower-case ones also end a name that is written without capitals.
_NO_PLACE = word_set(
    """i i'm i'd a an the my your our me us you it this that these those there here next last from to on in at for with
    without and or but via by under over around about before after now then please thanks hi hello hey ok okay
    yes no not be is are was will would could should can may do does book find get make see know have go going
    fly flying travel travelling traveling visit visiting return returning round one two three four five six ten
    economy business first premium class cabin flight flights ticket tickets trip hotel hotels room rooms car
    cars rental insurance booking bookings sleep work use take stay add change cancel check compare show search
    look save remember option options prefer like want need love hate avoid airport city nonstop non-stop direct
    cheap cheapest fast fastest some any somewhere anywhere everyone everybody myself night morning evening noon
    afternoon today tomorrow tonight time january february march april june july august september october
    november december monday tuesday wednesday thursday friday saturday sunday"""
)
_PARTICLES = word_set("de da do del della di du des la las le los el al am an der den of sur upon und y")
_MOVING = word_set("flight flights fly flying trip travel travelling traveling go going ticket tickets me us")
_HOMEWARD = re.compile(
    r"\b(?:fly|flying|go|going|get|take|travel|back|return|flight)\s+(?:me\s+|us\s+)?home\b", re.IGNORECASE
)
_LONGEST = 4


@dataclass(frozen=True)
class Route:
    """From where to where; None for what the text does not say."""

    origin: str | None = None
    destination: str | None = None


def route_in(text: str) -> Route:
    """Read origin and destination of a journey.

    Args:
        text: without its dates, see `Period.rest`.
    """
    tokens = _tokens(_CODES.sub(r"from \1 to \2", text))
    origin = _following(tokens, {"from"}, loose=_is_lowercase(tokens))
    # "from lisbon to porto" is clear without capitals: the "to" follows the place of departure.
    after = _MOVING | {origin.split()[-1].lower()} if origin else _MOVING
    destination = _following(tokens, {"to", "towards"}, after=after) or _following(tokens, {"visit", "visiting"})
    if destination is None and _HOMEWARD.search(text):
        destination = HOME
    if origin is None and destination is not None:
        origin = _preceding(tokens, "to")
    return Route(origin, destination)


def city_in(text: str) -> str | None:
    """Read the city of a stay, a rental car or a single-word answer; dates must be out of the text."""
    tokens = _tokens(text)
    named = _following(tokens, {"in", "at", "near"}, loose=_is_lowercase(tokens)) or _following(tokens, {"to", "for"})
    return named or next((name for at in range(len(tokens)) if (name := _name(tokens, at))), None)


def named_alone(text: str) -> str | None:
    """Read an answer that is little more than a place, such as "Berlin" or "from lisbon, please"."""
    found = route_in(text)
    if place := found.origin or found.destination:
        return place
    words = [token for token in _tokens(text) if token[0].isalpha()]
    if len(words) > _LONGEST + 2:
        return None
    starts = range(len(words))
    return next((name for at in starts if (name := _name(words, at))), None) or next(
        (name for at in starts if (name := _name(words, at, loose=True))), None
    )


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(text)


def _is_lowercase(tokens: list[str]) -> bool:
    """Tell whether somebody writes without capitals, so that they say nothing about names."""
    return not any(token[0].isupper() and token not in ("I", "I'm", "I'd", "I've") for token in tokens[1:])


def _following(
    tokens: list[str], markers: set[str], *, loose: bool = False, after: frozenset[str] = frozenset()
) -> str | None:
    """Return the name after a marker word; one without capitals only where the sentence speaks of moving."""
    for place, token in enumerate(tokens[:-1]):
        if token.lower() in markers:
            before = tokens[place - 1].lower() if place else ""
            name = _name(tokens, place + 1) or _name(tokens, place + 1, loose=loose or before in after)
            if name:
                return name
    return None


def _preceding(tokens: list[str], marker: str) -> str | None:
    """Return the name right before a marker word, as in "Berlin to Rome"."""
    for place, token in enumerate(tokens):
        if token.lower() != marker:
            continue
        for start in range(max(0, place - _LONGEST), place):
            name = _name(tokens, start)
            if name and len(name.split()) == place - start:
                return name
    return None


def _name(tokens: list[str], start: int, *, loose: bool = False) -> str | None:
    """Read a place name that begins at a token: words with capitals, and particles between them."""
    if start < len(tokens) and tokens[start].lower() in ("the", "my"):
        start += 1
    if start < len(tokens) and tokens[start].lower() == HOME:
        return HOME
    taken: list[str] = []
    for place in range(start, min(len(tokens), start + _LONGEST)):
        token = tokens[place]
        if _is_name(token, loose) or (taken and token.lower() in _PARTICLES and _continues(tokens, place + 1, loose)):
            taken.append(token)
        else:
            break
    return " ".join(taken) or None


def _is_name(token: str, loose: bool) -> bool:
    if not token[0].isalpha() or token.lower() in _NO_PLACE:
        return False
    return loose or not token[0].islower()


def _continues(tokens: list[str], place: int, loose: bool) -> bool:
    return place < len(tokens) and _is_name(tokens[place], loose=False)
