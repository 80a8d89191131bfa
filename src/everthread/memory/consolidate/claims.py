"""Read from a note what it claims: about which subject, which value, under which conditions.

Only what can have one value at a time is a claim. `Likes sushi` claims nothing: who likes sushi may like pizza too.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from everthread.memory.subjects import SUBJECTS, Subject, named, value_of
from everthread.memory.text.wording import SLACK, change_words, is_change, root, unframed, wording

__all__ = ["LONGEST_READ", "Claim", "claims", "is_of_many"]

LONGEST_READ = 1_000
"""Characters of a note that is read for what it claims; a longer one is no note, and some patterns would take long."""

_ALWAYS: frozenset[str] = frozenset()


def _roots(words: str) -> frozenset[str]:
    return frozenset(map(root, words.split()))


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
_ATTRIBUTES = _roots(
    """address airline airport amount area arrival budget capacity category city class color colour company contact
    count country cuisine currency date day deadline departure destination diet duration email endpoint event fare
    floor food frequency gate genre goal height hour insurance kind language leave length level limit location method
    mode model month name number origin party passenger people person phone place plan platform position price
    provider quantity range rate rating role room seat size speed star start stay stop style subject target temperature
    term theme ticket time title tone topic total transport traveler type unit version visit volume week weight year
    zone"""
)
"""Nouns that name a property with one value rather than a thing."""

_KINDS = (
    "area|category|class|colou?r|cuisine|currency|destination|format|genre|kind|language|level|mode|origin|price "
    "range|quality|rating|size|style|type"
)
_OCCASIONS = (
    "address|airport|amount|budget|city|country|date|day|deadline|floor|location|model|month|name|number|party size|"
    "price|station|time|title|year"
)
_LOOSE = re.compile(
    r"^(?:(?:the )?user |i )?(?:now |usually |always |generally )?(?:wants?|needs?|would like|prefers?|chooses?|"
    r"chose|picks?"
    r"|asks? for|requires?|takes?) (?:an? |the |my |their )?(?P<subject>(?:[\w/-]+ ){0,4}?"
    rf"(?:(?P<kind>{_KINDS})|{_OCCASIONS})(?: of \w+)?) (?P<value>(?!(?:for|in|with|at|on|to|and|or|of|from|that|"
    r"which|is|are|by"
    r"|near|under|between|before|after|as|when|if|so)\b)\S+(?: \S+){0,4})$",
    re.IGNORECASE,
)
"""`Wants hotel area north`: the noun that names a property ends the subject."""

_OWN_NAME = re.compile(
    r"(?:the )?(?:(?-i:[A-Z])|\d|(?:mon|tues|wednes|thurs|fri|satur|sun)day|today|tomorrow|tonight|(?:this|next) )",
    re.IGNORECASE,
)
"""A name, a number or a day: behind `date` and `city`, which begin compounds such as `city tour`, only these are "
"values."""

_EMPTY = _roots("a an the my his her their our of for s user")
_WORD = re.compile(r"\w+")
_PROPERTIES = _ATTRIBUTES | _roots(
    """manager boss doctor dentist supervisor assistant spouse wife husband partner preference home employer occupation
    diet cabin bed drink"""
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
_GENERIC = _roots("preference preferred usual default favorite current new choice option standard")
_START = (
    r"^(?:(?:the )?user |i(?:'m| am|'ve| have)? |is |has |have |just |now |currently |recently |still |usually |always "
    r"|mostly |also |will be )*"
)
_A_NAME = (
    r"((?:the |st\. |mt\. )?(?-i:[A-Z])[\w'&-]*(?: (?:of |and |de |la |du |am |an |der |upon |the |& )?(?-i:[A-Z])"
    r"[\w'&-]*)*)"
)
"""Names of places and firms: `lives in Berlin`, but `works at night` and `moved to the second floor` name none."""

_STATES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(_START + pattern, re.IGNORECASE))
    for name, pattern in (
        ("home", rf"(?:lives?|living|resides?|based|relocated|moved|moving) (?:now )?(?:in|to|at) {_A_NAME}"),
        ("home", r"(?:lives?|living|resides?|based) (?:now )?in ((?!an?\b|the\b|my\b)[a-z]+)$"),
        ("home airport", rf"(?:flies|fly|flying|departs?) (?:out of|from) {_A_NAME}"),
        ("employer", rf"(?:works?|working|employed) (?:now )?(?:at|for) {_A_NAME}"),
        ("employer", rf"(?:started|begun|began) (?:work(?:ing)? |a (?:new )?job )?(?:at|with) {_A_NAME}"),
        ("occupation", r"(?:works?|working) as an? ([^,;.]+)"),
        ("name", rf"(?:goes by|call me|(?:my|user's) name is) {_A_NAME}"),
    )
)
_ELSEWHERE = re.compile(r"\b(?:to|via)\b", re.IGNORECASE)
"""`Flies from Berlin to Rome` tells of a route, not of where somebody's trips begin."""

_AMOUNT = (
    r"(?:[$€£]\s?(?P<one>\d[\d.,]{0,14}k?)|(?<![\d.,])(?P<two>\d[\d.,]{0,14}k?)\s?(?:[$€£]|dollars?|euros?|pounds?|bucks|usd|eur|gbp|chf|"
    r"francs?)(?!\w))"
)
_LIMIT = re.compile(
    rf"{_AMOUNT}|\b(?:budgets?\b(?: \w+){{0,4}}?|spend|pay|afford|cost|maximum|max\.?|at most|up to|no more than|"
    r"under|below"
    r"|ceiling of|limit of|cap of|more than|over) (?:about |around |only |of |is |now |up to |at most )"
    r"*(?P<three>\d[\d.,]{0,14}k?)"
    r"(?=$|[.,;!?]| (?:an? |per |for |on |in (?:all|total)|all in|total|max|now|at most|instead|this|is|these)\b)",
    re.IGNORECASE,
)
_CAPPED = re.compile(
    r"\b(?:budgets?|spend|pay|afford|costs?|maximum|max|at most|up to|no more than|not more than|under|below|over|"
    r"ceiling"
    r"|limit|cap)\b",
    re.IGNORECASE,
)
_FORMER = re.compile(r"\bfrom \S+(?: \w+)?(?= to\b)", re.IGNORECASE)
_UNIT = re.compile(
    r"\b(?:an?|per|each|every) (?P<unit>night|day|week|month|year|person|head|guest|ticket|trip|meal|hour)\b"
    r"|\b(?P<adverb>nightly|daily|weekly|monthly|yearly)\b",
    re.IGNORECASE,
)
_ADVERBS = {
    "nightly": "night",
    "daily": "day",
    "weekly": "week",
    "monthly": "month",
    "yearly": "year",
    "head": "person",
}
_BOUGHT = re.compile(
    r"\b(?:hotels?|rooms?|stays?|lodging|flights?|airfare|cars?|rentals?|trains?|food|meals?|dinners?|lunch(?:es)?"
    r"|breakfasts?|tickets?|gifts?|taxis?|activit(?:y|ies)|museums?|laptops?|phones?|hardware|insurance|project)\b",
    re.IGNORECASE,
)
_LODGED = _roots("hotel room stay lodging")
"""What is paid by the night: `150 a night` and `hotels up to 150 a night` limit the same."""

_FOR = re.compile(r"\b(?:for|in|during|when|on) (?!all\b|total\b)((?:\w+ ?){1,4})", re.IGNORECASE)
_CONDITION = re.compile(
    r"\b(?:on|during|when|while|if|whenever|in case of|in|at|for|with|after|before|to(?! be\b)|from)\s+(.+)$",
    re.IGNORECASE,
)
_OCCASION = re.compile(
    r"(?:on (?:\w+ ){0,2}\w+s|when|while|if|whenever|(?:to|from|in|at) (?-i:[A-Z])\w+)\b", re.IGNORECASE
)
"""A phrase that is for some of the times: `on workdays`, `when alone`, `to Rome`."""
_PART = re.compile(
    r"\b(?:on|during|when|while|if|whenever|in|at|for|with|after|before|to|from)\b"
    r"(?:(?!\b(?:on|during|when|while|if|whenever|in|at|for|with|after|before|to|from)\b).)+",
    re.IGNORECASE,
)
"""One phrase of several that follow each other: `to tea`, `in the morning`."""


@lru_cache(maxsize=8192)
def claims(text: str, subject: str = "") -> tuple[Claim, ...]:
    """Read the claims of a note.

    Args:
        text: what the note says.
        subject: what the note is about, when that is known; it stands beside what the wording tells.
    """
    if len(text) > LONGEST_READ:
        return ()
    plain = " ".join(unframed(text).replace("’", "'").split())
    # An amount is read with what it is for; the frame of the sentence would tell no more than `the budget`.
    found = _keyed(plain) or [*_choices(plain), *_states(plain), *(_limits(plain) or _roles(plain))]
    if not found and subject and not _WEAK.search(plain):
        found = [_of_subject(plain, subject)]
    return tuple(
        replace(claim, is_change=is_change(plain))
        for claim in found
        if claim.subject and (claim.value or claim.excluded)
    )


def is_of_many(text: str) -> bool:
    """Tell whether a text says what one can have many of, such as likes, allergies and languages."""
    return _WEAK.search(text) is not None


def _keyed(plain: str) -> list[Claim]:
    """Read `hotel area: north`."""
    match = _KEYED.match(plain)
    return _named(match[1], match[2], when=frozenset()) if match else []


def _named(subject: str, value: str, *, when: frozenset[str] = _ALWAYS) -> list[Claim]:
    """Return what a sentence claims that names its subject; `seat: aisle` claims what `prefers aisle seats` does."""
    words = _subject(subject)
    found = [Claim(words, _value(value), when=when)]
    if name := named(words):
        known = value_of(name, value) if SUBJECTS[name].values else ""
        if known or not SUBJECTS[name].values:
            found.append(Claim(frozenset({f"{name}?"}), frozenset({known}) if known else _value(value), when=when))
    return found


def _limits(plain: str) -> list[Claim]:
    """Read what may be spent, on what, and for how long: `at most €150 a night` and `can spend 700`."""
    if not _CAPPED.search(plain):
        return []
    told = _FORMER.sub("", plain)
    amounts = [match["one"] or match["two"] or match["three"] for match in _LIMIT.finditer(told)]
    if len(amounts) != 1:
        return []
    unit = _UNIT.search(told)
    per = (unit["unit"] or unit["adverb"] or "").lower() if unit else ""
    about = {root(match.group().lower()) for match in _BOUGHT.finditer(told)}
    about = (about - _LODGED if per in ("night", "nightly") else about) | ({_ADVERBS.get(per, per)} if per else set())
    bare = _LIMIT.sub("", told)
    when = frozenset().union(*(wording(match[1]).words for match in _FOR.finditer(bare)))
    return [
        Claim(
            frozenset({"budget?", *about}),
            frozenset({_number(amounts[0])}),
            when=frozenset(word for word in when - about - _LODGED - SLACK if not word[0].isdigit()),
        )
    ]


def _number(text: str) -> str:
    plain = text.lower().rstrip(".,")
    thousand = plain.endswith("k")
    plain = re.sub(r"[.,](?=\d{3}(?:\D|$))", "", plain.rstrip("k"))
    return f"{plain}000" if thousand and plain.isdigit() else plain


def _choices(plain: str) -> Iterator[Claim]:
    """Read what is said of subjects with a closed list of values."""
    read, is_weak = wording(plain), _WEAK.search(plain) is not None
    for name, subject in SUBJECTS.items():
        told = list(subject.told(plain))
        if not told or not (subject.has_cue(plain) or _says_no_more(plain, [words for _, words in told])):
            continue
        # `From coffee to tea` rules coffee out, as does `not coffee`.
        former = (
            wording(" ".join(match.group() for match in _FORMER.finditer(plain))).words if is_change(plain) else _ALWAYS
        )
        excluded = frozenset(value for value, words in told if wording(words).words & (read.denied | former))
        value = frozenset(value for value, _ in told) - excluded
        if excluded and not value and not is_weak and len(told) > 2:
            continue
        things = frozenset(map(root, subject.things_in(plain)))
        when = _conditions(plain, subject) - things
        yield Claim(frozenset({f"{name}?"}) | things, value, excluded, when, subject.is_single and not is_weak)


def _says_no_more(plain: str, told: Sequence[str]) -> bool:
    """Tell whether a text says nothing beside some words: `Window, please.`"""
    return not wording(plain).words - wording(" ".join(told)).words - change_words(plain) - SLACK


def _states(plain: str) -> Iterator[Claim]:
    """Read where someone lives, works and flies from."""
    for name, pattern in _STATES:
        match = pattern.search(plain)
        if match and not wording(plain).denied and not (name == "home airport" and _ELSEWHERE.search(plain)):
            yield Claim(frozenset({f"{name}?"}), _value(_CONDITION.sub("", match[1]) or match[1]))


def _roles(plain: str) -> Iterator[Claim]:
    """Read `prefers ten for the number of guests` and `the number of guests is ten`."""
    if _WEAK.search(plain):
        return
    role = _ROLE.match(plain)
    if role:
        last = wording(role[3]).signed[-1:]
        # `a vegetarian meal for the flight` is for a thing: two such wishes may both hold.
        if role[2].lower() == "as" or (bool(last) and last[0][0] in _ATTRIBUTES):
            yield from _named(role[3], role[1])
        return
    loose = _LOOSE.match(plain)
    if loose and (loose["kind"] or _OWN_NAME.match(loose["value"])):
        yield from _named(loose["subject"], loose["value"])
        return
    told = _CHOSEN.match(plain) or _SET.match(plain)
    if told:
        yield from _named(_without_former(told["subject"]), told["value"])
        return
    copula = _COPULA.match(plain)
    # `Rome is a dream` and `Rome is far` are both true: only a property has one value.
    if copula and not _subject(copula[1]) & _PROPERTIES:
        return
    if copula and not re.match(
        r"(?:it|that|this|there|which|what|who|i|he|she|they|we|user)\b", copula[1], re.IGNORECASE
    ):
        yield from _named(copula[1], copula[2])


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
    words = frozenset(map(root, _WORD.findall(text.lower()))) - _EMPTY
    return words - _GENERIC or words


def _value(text: str) -> frozenset[str]:
    read = wording(text)
    return frozenset(f"-{word}" if is_denied else word for word, is_denied in read.signed) or frozenset(
        text.lower().split()
    )


def _conditions(plain: str, subject: Subject | None) -> frozenset[str]:
    match = _CONDITION.search(plain)
    if match is None:
        return _ALWAYS
    # `with a window seat` and `in economy` hold the value itself, not a condition, but what follows them may be one.
    if subject is not None and any(subject.told(match.group())):
        parts = [found.group() for found in _PART.finditer(match.group())]
        has_former = _FORMER.search(plain) is not None
        return frozenset().union(
            *(
                wording(part).words
                for part in parts
                if (has_former or _OCCASION.match(part)) and not any(subject.told(part))
            )
        )
    return wording(match[1]).words
