"""Attributes of what people book, order or ask for: what a request says that may matter again in the session.

General vocabulary of travel and service, by what it is about; which of it excludes each other is in `subjects`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from everthread.memory.subjects import SUBJECTS


@dataclass(frozen=True)
class Attribute:
    """One wish inside a request."""

    subject: str
    phrase: str
    is_negated: bool = False


_CUISINES = (
    "african|american|argentinian|asian|australian|austrian|bbq|barbecue|brazilian|british|burgers?|caribbean|catalan|"
    "chinese|cuban|danish|dim sum|english|ethiopian|european|filipino|french|fusion|gastropub|georgian|german|"
    "greek|halal|"
    "hawaiian|hungarian|indian|indonesian|international|irish|italian|jamaican|japanese|korean|kosher|latin american|"
    "lebanese|malaysian|mediterranean|mexican|middle eastern|moroccan|nepalese|north indian|pakistani|persian|peruvian|"
    "pizza|polish|portuguese|ramen|russian|scandinavian|scottish|seafood|singaporean|south indian|spanish|sri lankan|"
    "steak|steakhouse|sushi|swedish|swiss|taiwanese|tapas|tex-mex|thai|turkish|tuscan|ukrainian|vegan|vegetarian|"
    "venetian|vietnamese|welsh|brunch|breakfast|noodles?|curry|sandwich(?:es)?|tacos?"
)

_PATTERNS: tuple[tuple[str, str], ...] = (
    *((name, subject.phrase) for name, subject in SUBJECTS.items() if subject.phrase),
    ("fare", r"(?:fully )?(?:flexible|refundable|non-?refundable|value|saver|economy)(?: (?:tickets?|fares?))"),
    (
        "stops",
        r"(?:direct|non-?stop)(?: (?:flights?|trains?|bus(?:es)?|connections?))?|(?:no |without )?(?:layovers?|"
        r"stopovers?)",
    ),
    ("airline", r"(?-i:(?:[A-Z]\w+ ){1,2}(?:Airlines?|Airways))"),
    (
        "lodging",
        r"guest ?houses?|hostels?|bed and breakfasts?|b&bs?|motels?|resorts?|holiday apartments?|boutique hotels?",
    ),
    ("internet", r"(?:free )?(?:wi-?fi|internet)(?: access)?"),
    ("parking", r"(?:free )?parking"),
    ("pets", r"pets? (?:friendly|welcome|allowed)|pet-friendly|dog-friendly|(?:my|a) (?:dog|cat|pet)"),
    ("laundry", r"laundry(?: services?)?"),
    ("breakfast", r"breakfast included"),
    (
        "children",
        r"(?:kid|child|children|family)(?:'?s)?[- ]friendly|(?:good|suitable|fun|great|nice) for (?:the |my "
        r")?(?:kids|children|families)",
    ),
    ("entry fee", r"free (?:entry|admission|entrance|to enter)|(?:no|without an?) (?:entry|entrance|admission) fee"),
    ("access", r"wheelchair[- ]\w+|step[- ]free(?: access)?|lift access|elevator"),
    (
        "area",
        r"(?:city |town )?cent(?:re|er)(?: of town)?|downtown"
        r"|(?:north|south|east|west)(?:ern)?(?: (?:side|part|area|end)(?: of (?:the )?(?:town|city))?| of town)?"
        r"|near the (?:airport|beach|station|cent(?:re|er)|conference)",
    ),
    ("cuisine", rf"(?:{_CUISINES})(?:[- ](?:food|cuisine|type food|restaurants?|place|options?|dishes))?"),
    ("ride", r"(?:pool(?:ed)?|shared|regular|luxury|private) rides?"),
    (
        "attraction",
        r"museums?|art galler(?:y|ies)|(?:amusement|theme|water)? ?parks?|theat(?:re|er)s?|cinemas?|swimming "
        r"pools?|colleges?"
        r"|night ?clubs?|architectur\w+|entertainment|boats?|(?:multiple )?sports?|concert ?halls?|(?:historical |"
        r"historic )?landmarks?"
        r"|nature (?:preserve|reserve)s?|(?:botanical )?gardens?|(?:place|house)s? of worship|shopping (?:area|"
        r"mall|cent(?:re|er))s?"
        r"|concerts?|music events?|(?:rock|pop|jazz|blues|country|classical|folk|electronic)(?: (?:music|"
        r"concerts?|shows?|events?))?",
    ),
    ("insurance", r"(?:trip |travel |rental |car )?(?:insurance|trip protection)"),
    ("luggage", r"(?:checked|carry-?on|extra|additional) (?:bags?|luggage|baggage)|hand luggage(?: only)?"),
    ("view", r"(?:sea|ocean|lake|mountain|city|garden) view"),
)
_COMPILED = tuple((subject, re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE)) for subject, pattern in _PATTERNS)
_NEGATION = re.compile(
    r"(?:\b(?:no|not|without|non|never|except|don't (?:want|need|like)|do not (?:want|need|like)|avoid)"
    r"(?: (?:a|an|any|the|need|to|add|be))*[ -])$",
    re.IGNORECASE,
)


def attributes(text: str) -> list[Attribute]:
    """Return the attributes that a text names, in order, each place once and the longest reading of it."""
    taken: list[tuple[int, int]] = []
    found: list[tuple[int, Attribute]] = []
    for subject, begin, end in sorted(_places(text), key=lambda place: (place[1] - place[2], place[1])):
        if any(begin < other_end and other_begin < end for other_begin, other_end in taken):
            continue
        taken.append((begin, end))
        negated = _NEGATION.search(text[max(0, begin - 30) : begin]) is not None
        found.append((begin, Attribute(subject, " ".join(text[begin:end].split()), negated)))
    return [attribute for _, attribute in sorted(found, key=lambda one: one[0])]


def _places(text: str) -> Iterator[tuple[str, int, int]]:
    for subject, pattern in _COMPILED:
        for match in pattern.finditer(text):
            yield subject, match.start(), match.end()


def subject_of(text: str) -> str:
    """Return the exclusive subject that a statement is about; empty when there is none or more than one."""
    named = {attribute.subject for attribute in attributes(text)} & SUBJECTS.keys()
    # `The middle of town` and `a room with a window` name no seat.
    subjects = {name for name in named if any(SUBJECTS[name].told(text))}
    return subjects.pop() if len(subjects) == 1 else ""
