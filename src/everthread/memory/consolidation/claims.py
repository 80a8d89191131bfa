"""Read from a note what it claims: about which subject, which value, under which conditions.

Only what can have one value at a time is a claim. `Likes sushi` claims nothing: who likes sushi may like pizza too.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from everthread.memory.consolidation.wording import CHANGE, said, stem, wording

__all__ = ["Claim", "claims", "is_of_many"]

_ALWAYS: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Claim:
    """One value of one subject."""

    subject: frozenset[str]
    """What it is about, such as `hotel` and `area`; two claims conflict only when these are the same."""
    value: frozenset[str]
    excluded: frozenset[str] = frozenset()
    """Values of a closed list that the note rules out."""
    when: frozenset[str] = _ALWAYS
    """Conditions, such as `long` and `flight`; empty: always."""
    is_certain: bool = True
    """The subject has one value at a time; else a difference is marked rather than decided."""
    is_change: bool = False
    """The wording says that something changed, so that the other claim need not be certain."""


_CHOICES: dict[str, tuple[str, str]] = {
    # subject: values (a `|` list), words one of which must be there unless the values speak for themselves
    "seat": ("aisle|window|middle", ""),
    "cabin": ("economy|coach|premium economy|business|first", "class|cabin|fly|flies|flights?"),
    "diet": ("vegetarian|vegan|pescatarian|omnivore|eats? meat", ""),
    "bed": ("king|queen|twin|double|single", "bed|beds|bedded"),
    "floor": ("high|higher|low|lower|ground", "floor|floors"),
    "transmission": ("automatic|manual", "transmission|gearbox|car|cars"),
    "units": ("metric|imperial", ""),
    "temperature": ("celsius|fahrenheit", ""),
    "theme": ("dark|light", "mode|theme"),
    "departure": ("early|morning|midday|afternoon|evening|night|overnight|red[ -]?eye", "flights?|departures?|trains?"),
    "price": ("cheap|inexpensive|budget|moderate|mid[ -]?range|expensive|luxury", "price|priced|range|hotels?|places?"),
    "contact": ("e-?mail|phone|text|sms|chat|post", "contact(?:ed)?|reach(?:ed)?|calls?|updates|reminders|notif\\w+"),
    "clock": ("12[ -]hour|24[ -]hour", ""),
    "drink": ("coffee|tea", "morning|mornings|breakfast"),
}
_OF_A_THING = frozenset({"price", "departure"})
"""Choices that are made for each thing anew: cheap hotels go with an expensive flight."""

_VALUES = {name: re.compile(rf"\b(?:{values})\b", re.IGNORECASE) for name, (values, _) in _CHOICES.items()}
_CUES = {name: re.compile(rf"\b(?:{cues})\b", re.IGNORECASE) for name, (_, cues) in _CHOICES.items() if cues}
_WEAK = re.compile(
    r"\b(?:likes?|loves?|enjoys?|hates?|dislikes?|allerg\w+|speaks?|knows?|interested|fan of|also|sometimes|either"
    r"|collects?|plays?|visited|has been|tried)\b",
    re.IGNORECASE,
)
"""Verbs and adverbs of what one can have many of."""

_KEYED = re.compile(r"^([^:.?!\"]{2,60}):\s+(\S.*)$", re.DOTALL)
_CHANGED_TO = (
    r"(?:(?:has|have|was|were|is|got|been|just|now)\s+)*(?:changed|adjusted|raised|increased|reduced|lowered|moved"
    r"|rescheduled|postponed|extended|set|updated|cut|pushed)\s+(?:(?:up|down|back|out)\s+)?(?:from\s+.{1,40}?\s+)?to"
)
_COPULA = re.compile(
    rf"^(?:(?:the\s+)?user'?s\s+|my\s+|the\s+|their\s+|his\s+|her\s+|our\s+)?([^,;:]{{3,60}}?)\s+"
    rf"(?:{_CHANGED_TO}|(?:is|was|will be|should be|must be|has to be)(?:\s+(?:now|currently|actually))?)\s+"
    r"(.+?)(?:[,;]\s+(?:but|and|so|because|which|since|as|if|though)\b.*)?$",
    re.IGNORECASE,
)
_ROLE = re.compile(
    r"^(?:(?:the\s+)?user\s+|i\s+)?(?:now\s+|usually\s+|always\s+|generally\s+)*"
    r"(?:prefers?|wants?|needs?|would like|(?:has |have )?chosen|chose|decided on|opted for"
    r"|chooses?|picks?|picked|selects?|selected|requires?"
    r"|takes?|uses?|asks? for|asked for)\s+(.+?)\s+(as|for)\s+"
    r"(?:the\s+|their\s+|a\s+|an\s+|his\s+|her\s+|my\s+)?([^,;]+)$",
    re.IGNORECASE,
)
_ATTRIBUTES = frozenset(
    """address airline airport amount area arrival budget capacity category city class color colour company contact
    count country cuisine currency date day deadline departure destination diet duration email endpoint event fare
    floor food frequency gate genre goal height hour insurance kind language leave length level limit location method
    mode model month name number origin party passenger people person phone place plan platform position price
    provider quantity range rate rating role room seat size speed star start stay stop style subject target temperature
    term theme ticket time title tone topic total transport traveler type unit version visit volume week weight year
    zone""".split()  # noqa: SIM905
)
"""Nouns that name a property with one value rather than a thing."""

_EMPTY = frozenset("a an the my his her their our of for s user user's".split())  # noqa: SIM905
_WORD = re.compile(r"\w+")
_PROPERTIES = _ATTRIBUTES | frozenset(
    """manager boss doctor dentist supervisor assistant spouse wife husband partner preference home employer occupation
    diet cabin bed drink""".split()  # noqa: SIM905
)
"""What has one value, or one holder, at a time."""

_CHOSEN = re.compile(
    r"^(?P<value>.+?)\s+(?:is|was)\s+(?:now\s+)?(?:(?:the\s+)?user's|my|their|the)\s+"
    r"(?:choice|preference|pick|favou?rite|preferred option)\s+(?:for|of|as)\s+(?P<subject>[^,;]+)$",
    re.IGNORECASE,
)
_SET = re.compile(
    r"^(?:(?:the\s+)?user\s+|i\s+)?(?:has\s+|have\s+)?(?:set|changed?|changes|switched|moved|updated)\s+"
    r"(?P<subject>[^,;]+)\s+to\s+(?P<value>.+)$",
    re.IGNORECASE,
)
_GENERIC = frozenset("preference preferred usual default favorite current new choice option standard".split())  # noqa: SIM905
_NAMED = frozenset({*_CHOICES, "home", "employer", "occupation", "name"})
"""Subjects that the wording of a sentence tells too; `seat: aisle` is about the same as `prefers aisle seats`."""

_STATES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(pattern, re.IGNORECASE))
    for name, pattern in (
        (
            "home",
            r"\b(?:lives?|living|resides?|based|relocated|moved|moving)\s+(?:now\s+)?(?:in|to|near|at)\s+([^,;.]+)",
        ),
        ("home airport", r"\b(?:flies|fly|flying|departs?|travels?)\s+(?:out of|from)\s+([^,;.]+)"),
        ("employer", r"\b(?:works?|working|employed)\s+(?:at|for)\s+([^,;.]+)"),
        ("occupation", r"\b(?:works?|working)\s+as\s+an?\s+([^,;.]+)"),
        ("name", r"\b(?:goes by|call me|(?:my|user's) name is)\s+([^,;.]+)"),
    )
)
_CONDITION = re.compile(
    r"\b(?:on|during|when|while|if|whenever|in case of|in|at|for|with|after|before|to|from)\s+(.+)$", re.IGNORECASE
)


@lru_cache(maxsize=8192)
def claims(text: str, subject: str = "") -> tuple[Claim, ...]:
    """Read the claims of a note.

    Args:
        text: what the note says.
        subject: what the note is about, when that is known; it stands beside what the wording tells.
    """
    plain = " ".join(said(text).replace("’", "'").split())
    keyed = _keyed(plain)
    found = [keyed] if keyed else [*_choices(plain), *_states(plain), *_roles(plain)]
    if not found and subject and not _WEAK.search(plain):
        found = [_of_subject(plain, subject)]
    is_change = CHANGE.search(plain) is not None
    return tuple(
        replace(claim, is_change=is_change) for claim in found if claim.subject and (claim.value or claim.excluded)
    )


def is_of_many(text: str) -> bool:
    """Tell whether a text says what one can have many of, such as likes, allergies and languages."""
    return _WEAK.search(text) is not None


def _keyed(plain: str) -> Claim | None:
    """Read `hotel area: north`."""
    match = _KEYED.match(plain)
    if match is None:
        return None
    return Claim(_subject(match[1]), _value(match[2]), when=frozenset())


def _choices(plain: str) -> Iterator[Claim]:
    """Read what is said of subjects with a closed list of values."""
    read = wording(plain)
    for name, pattern in _VALUES.items():
        told = [match.group().lower() for match in pattern.finditer(plain)]
        if not told or (name in _CUES and not _CUES[name].search(plain)):
            continue
        excluded = frozenset(value for value in told if wording(value).words & read.denied)
        value = frozenset(told) - excluded
        if excluded and not value and _WEAK.search(plain) is None and len(told) > 2:
            continue
        is_certain = _WEAK.search(plain) is None
        yield Claim(_choice(name, plain), value, excluded, _conditions(plain, pattern), is_certain)


def _choice(name: str, plain: str) -> frozenset[str]:
    """Return the subject of a choice; what costs little or leaves early belongs to it."""
    things = _CUES[name].findall(plain) if name in _OF_A_THING else []
    return frozenset({f"{name}?", *(stem(str(thing).lower()) for thing in things)})


def _states(plain: str) -> Iterator[Claim]:
    """Read where someone lives, works and flies from."""
    for name, pattern in _STATES:
        match = pattern.search(plain)
        if match and not wording(plain).denied:
            yield Claim(frozenset({f"{name}?"}), _value(_CONDITION.sub("", match[1]) or match[1]))


def _roles(plain: str) -> Iterator[Claim]:
    """Read `prefers ten for the number of guests` and `the number of guests is ten`."""
    if _WEAK.search(plain):
        return
    role = _ROLE.match(plain)
    if role:
        subject = _subject(role[3])
        last = wording(role[3]).signed[-1:]
        named = role[2].lower() == "as" or (bool(last) and last[0][0] in _ATTRIBUTES)
        # `a vegetarian meal for the flight` is for a thing: two such wishes may both hold.
        if named and subject:
            yield Claim(subject, _value(role[1]))
        return
    told = _CHOSEN.match(plain) or _SET.match(plain)
    if told:
        yield Claim(_subject(_without_former(told["subject"])), _value(told["value"]))
        return
    copula = _COPULA.match(plain)
    # `Rome is a dream` and `Rome is far` are both true: only a property has one value.
    if copula and not _subject(copula[1]) & _PROPERTIES:
        return
    if copula and not re.match(
        r"(?:it|that|this|there|which|what|who|i|he|she|they|we|user)\b", copula[1], re.IGNORECASE
    ):
        yield Claim(_subject(copula[1]), _value(copula[2]))


def _without_former(subject: str) -> str:
    """Cut the former value off: `the budget from $50` is about the budget, `the bus from location` is a name."""
    head, _, former = subject.partition(" from ")
    last = wording(head).signed[-1:]
    return head if former and last and last[0][0] in _PROPERTIES else subject


def _of_subject(plain: str, subject: str) -> Claim:
    about = wording(subject).words or frozenset({subject})
    read = wording(_CONDITION.sub("", plain) or plain)
    value = frozenset(read.affirmed - about - _GENERIC)
    return Claim(about, value, when=_conditions(plain, None), is_certain=False)


def _subject(text: str) -> frozenset[str]:
    # Every word counts but the emptiest: `check in date` and `check out date` are two subjects.
    words = frozenset(map(stem, _WORD.findall(text.lower()))) - _EMPTY
    subject = words - _GENERIC or words
    return frozenset({f"{name}?" for name in subject}) if len(subject) == 1 and subject <= _NAMED else subject


def _value(text: str) -> frozenset[str]:
    read = wording(text)
    return frozenset(f"-{word}" if is_denied else word for word, is_denied in read.signed) or frozenset(
        text.lower().split()
    )


def _conditions(plain: str, values: re.Pattern[str] | None) -> frozenset[str]:
    match = _CONDITION.search(plain)
    if match is None:
        return _ALWAYS
    # `with a window seat` and `in economy` hold the value itself, not a condition.
    if values is not None and values.search(match[1]):
        return _ALWAYS
    return wording(match[1]).words
