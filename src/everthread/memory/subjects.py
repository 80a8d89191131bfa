"""What has one value at a time, and which values it can have: the one list that says which wishes exclude each other.

Distillation takes from it what a request names, consolidation what a note claims, and injection what the user has
just said otherwise. A value has a pattern for all words that mean it, so that `coach` and `economy` are no conflict.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

__all__ = ["EXCLUSIVE", "SUBJECTS", "Subject", "named", "value_of"]


@dataclass(frozen=True)
class Subject:
    """Something of which one value holds at a time; patterns are read without regard to case."""

    values: Mapping[str, str] = field(default_factory=dict)
    """Value to its pattern, the first to fit at a place counts; none: any words are a value, as of a name."""
    cues: str = ""
    """Words one of which stands beside a value, unless a note says nothing but the value; empty: none is needed."""
    things: str = ""
    """What the choice is made for, anew for each: cheap hotels go with an expensive flight. They are cues, too."""
    unless: str = ""
    """Wording in which the values mean something else."""
    phrase: str = ""
    """How a request names a value, with the nouns around it; empty: requests are not searched for it."""
    aliases: tuple[str, ...] = ()
    """Other names of the subject."""
    is_single: bool = True
    """False when a person may well have two: then only wording that tells of a change replaces a value."""

    def told(self, text: str) -> Iterator[tuple[str, str]]:
        """Yield the values that a text names, each with the words that name it."""
        if self.values and not (self._unless and self._unless.search(text)):
            for match in self._values.finditer(text):
                yield list(self.values)[int((match.lastgroup or "v0")[1:])], match.group()

    def has_cue(self, text: str) -> bool:
        """Tell whether a text has a word that goes with the subject, or the subject needs none."""
        return self._cues is None or self._cues.search(text) is not None

    def things_in(self, text: str) -> list[str]:
        """Return what a text makes the choice for, in lower case."""
        return [match.group().lower() for match in self._things.finditer(text)] if self._things else []

    @cached_property
    def _values(self) -> re.Pattern[str]:
        return _words("|".join(rf"(?P<v{place}>{pattern})" for place, pattern in enumerate(self.values.values())))

    @cached_property
    def _unless(self) -> re.Pattern[str] | None:
        return _words(self.unless) if self.unless else None

    @cached_property
    def _cues(self) -> re.Pattern[str] | None:
        found = "|".join(part for part in (self.cues, self.things) if part)
        return _words(found) if found else None

    @cached_property
    def _things(self) -> re.Pattern[str] | None:
        return _words(self.things) if self.things else None


def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE)


_FLIGHT = "flights?|planes?|fl(?:y|ies|ying)|cabins?|fares?|tickets?|seats?|class"
_LODGING = "hotels?|rooms?|places?|stays?|lodgings?"
_CAR = r"cars?|vehicles?|rentals?|rents?|driv(?:es?|ing)|suv"
_FOLLOWING = r"\W*$|,? (?:on|when|if|only|please|now|these|over|instead|unless|except)\b"
_CLASS = r"(?=[- ]class\b| (?:cabins?|fares?|seats?|tickets?)\b"
"""What `business`, `first` and `coach`, which mean many things, are followed by when they mean a cabin."""
_SIZED = rf"(?=(?:[- ]sized?)? (?:or \w+ )?(?:beds?|bedded|rooms?)\b|[- ]sized?\b|{_FOLLOWING})"

SUBJECTS: dict[str, Subject] = {
    "seat": Subject(
        values={"aisle": "aisles?", "window": "windows?", "middle": "middle"},
        cues="seats?|seated|sits?|sitting|flights?|planes?|fl(?:y|ies|ying)|rows?|trains?|bus(?:es)?|board",
        unless=r"windows? (?:shopping|of|displays?|blinds?|shades?|sills?|views?|tables?|cleaners?|laptops?|pcs?|1[01])"
        r"|(?:tables?|desks?|rooms?|house|office|shop|kitchen)\b.{0,24}\bwindows?|middle (?:of|name|school|east|age)"
        r"|(?:open|shut|close|clean)\w* (?:the |a |my )?windows?|windows? (?:is |are |was |kept )?(?:open|shut|closed)",
        phrase="(?:aisle|window|middle)(?: seats?)?(?! shopping)",
    ),
    "row": Subject(
        values={"exit": "exit[- ]rows?", "front": "front[- ]rows?", "back": "back[- ]rows?", "bulkhead": "bulkhead"},
        phrase="(?:bulkhead|exit[- ]row|front[- ]row)(?: seats?)?",
        is_single=False,
    ),
    "cabin": Subject(
        values={
            "premium economy": "premium economy",
            "economy": rf"economy|coach{_CLASS}|{_FOLLOWING})",
            "business": r"(?<!for )(?<!on )(?<!a )(?<!the )(?<!my )(?<!own )"
            rf"business{_CLASS}| (?:or|and) (?:first|economy)\b|{_FOLLOWING})",
            "first": r"first(?=[- ]class\b| (?:or|and) (?:business|economy)\b)|(?:(?<=fly )|(?<=flies )|(?<=flying )"
            ")first",
        },
        cues=_FLIGHT,
        phrase="(?:premium economy|economy(?: extra| plus)?|business|first|coach)"
        "(?:[- ]class| tickets?| seats?| cabin| fare)|premium economy",
        aliases=("class",),
    ),
    "stars": Subject(
        values={
            number: rf"(?:{words})(?=[- ]stars?\b)"
            for number, words in {"1": "1|one", "2": "2|two", "3": "3|three", "4": "4|four", "5": "5|five"}.items()
        },
        unless="stars? (?:reviews?|apps?|service|films?)|restaurants?",
        phrase="(?:[1-5]|one|two|three|four|five)[- ]stars?(?:[- ]rat(?:ed|ing))?(?: (?:hotels?|places?|rating))?",
        aliases=("star",),
    ),
    "price": Subject(
        values={
            "low": "cheap(?:er|est)?|inexpensive|low[- ]cost"
            "|budget(?=[- ](?:friendly|hotels?|airlines?|places?|options?|range))",
            "middle": "moderate(?:ly)?|mid[ -]?range|mid-?priced",
            "high": "expensive|pricey|high[- ]end|upscale|luxur(?:y|ious)",
        },
        cues="prices?|priced|range",
        things="hotels?|places?|restaurants?|meals?|flights?|airlines?|cars?|rooms?|rides?",
        phrase="(?:very |more |fairly )?(?:cheap(?:er|est)?|inexpensive|affordable|budget[- ]friendly|"
        "moderate(?:ly)?(?:[- ]priced)?|mid-?range|expensive|pricey|high[- ]end|upscale|luxury|luxurious)"
        "(?: (?:price range|hotels?|restaurants?|places?))?",
    ),
    "bed": Subject(
        values={size: f"{size}{_SIZED}" for size in ("king", "queen", "twin", "double", "single")},
        cues="beds?|bedded|rooms?",
        phrase="(?:king|queen|twin|double|single)(?:[- ]size)? (?:beds?|rooms?)",
    ),
    "floor": Subject(
        values={
            "high": r"(?:high|higher|upper|top)(?= (?:or \w+ )?floors?\b)",
            "low": r"(?:low|lower)(?= (?:or \w+ )?floors?\b)",
            "ground": r"ground(?=[- ]floor)",
        },
        phrase="(?:high|low|higher|lower|ground|top) floors?",
    ),
    "smoking": Subject(
        values={"no": "non-?smoking|smoke-free|no smoking", "yes": r"smoking(?= (?:rooms?|tables?|areas?|floors?)\b)"},
        phrase="(?:non-?)?smoking(?: rooms?)?",
    ),
    "car": Subject(
        values={
            "small": "compact|hatchback|economy(?= (?:car|vehicle|rental))",
            "middle": "standard|mid-?size|intermediate|sedan",
            "large": "full-?size",
            "suv": "suvs?",
            "minivan": "minivan",
            "convertible": "convertible",
            "truck": "pick-?up trucks?",
        },
        cues=_CAR,
        phrase="(?:compact|standard|full-?size|mid-?size|intermediate|economy) (?:car|vehicle|rental)"
        "|suv|hatchback|sedan|minivan|convertible|pick-?up truck"
        "|(?<=make it a )(?:compact|standard|full-?size)|(?:compact|standard|full-?size)(?= will do)",
    ),
    "transmission": Subject(
        values={"automatic": "automatics?", "manual": "manuals?|stick[- ]shift"},
        cues=f"transmission|gear ?box|gears?|{_CAR}",
        unless=r"coffee|payments?|updates?|watch(?:es)?|instruction|user manual|automatic doors?",
        phrase="(?:automatic|manual) (?:car|vehicle|rental)",
    ),
    "engine": Subject(
        values={"electric": "electric|ev", "hybrid": "hybrid", "petrol": "petrol|gasoline", "diesel": "diesel"},
        cues=f"engines?|{_CAR}",
        phrase="(?:electric|hybrid) (?:car|vehicle|rental)",
    ),
    "departure": Subject(
        values={
            "morning": "early|mornings?",
            "midday": "midday|noon",
            "afternoon": "afternoons?",
            "evening": "evenings?",
            "night": "nights?|overnight|red[ -]?eyes?",
        },
        cues="(?:to|rather) fly|flying",
        things="flights?|departures?|trains?",
    ),
    "diet": Subject(
        values={
            "vegetarian": "vegetarian|veggie",
            "vegan": "vegan|plant-based",
            "pescatarian": "pes[ck][ae]tarian",
            "meat": "omnivore|eat(?:s|ing)? (?:any |all kinds of )?meat",
        },
    ),
    "drink": Subject(values={"coffee": "coffee", "tea": "tea"}, cues="mornings?|breakfast"),
    "units": Subject(values={"metric": "metric", "imperial": "imperial"}),
    "temperature": Subject(values={"celsius": "celsius", "fahrenheit": "fahrenheit"}),
    "clock": Subject(values={"12": "12[ -]hour", "24": "24[ -]hour"}),
    "theme": Subject(values={"dark": "dark(?= (?:mode|theme))", "light": "light(?= (?:mode|theme))"}),
    "currency": Subject(
        values={
            name: f"(?<=in )(?:u\\.?s\\.? |american |british |swiss )?(?:{words})"
            for name, words in {
                "dollar": "dollars|usd",
                "euro": "euros?|eur",
                "pound": "pounds|gbp|sterling",
                "yen": "yen|jpy",
                "franc": "francs|chf",
            }.items()
        },
        cues="prices?|priced|currency|amounts?|costs?|totals?|quotes?|fares?|rates?",
    ),
    "language": Subject(
        values={
            name: f"(?<=in ){name}"
            for name in (
                *("english", "german", "french", "spanish", "italian", "portuguese", "dutch", "polish", "turkish"),
                *("russian", "arabic", "hindi", "chinese", "japanese", "korean"),
            )
        },
        cues="answers?|repl(?:y|ies)|respon(?:d|ses?)|writ(?:e|ten)|messages?|speak to|talk to",
        unless="learn(?:s|ing)?|comments?|books?|films?",
    ),
    "contact": Subject(
        values={
            name: f"(?:(?<=by )|(?<=via )|(?<=through )|(?<=over )|(?<=on )|(?<=an )|(?<=a )|^)(?:{words})"
            for name, words in {
                "email": "e-?mails?",
                "phone": "(?:tele)?phone|calls?",
                "text": "texts?|sms",
                "chat": "chat",
                "post": "post|letters?",
            }.items()
        },
        cues=r"contact(?:ed|ing)?|reach(?:ed|able|ing)?|get in touch|communicat\w+",
        things="updates?|reminders?|notifications?|receipts?|invoices?|alerts?",
    ),
    "computer": Subject(
        values={"windows": "windows", "mac": "mac(?:s|book|os)?", "linux": "linux|ubuntu", "chromebook": "chromebook"},
        cues="laptops?|computers?|pcs?|machines?|switched to|moved to|changed to|os",
        unless=r"(?:open|close)s? .{0,12}windows|big mac|(?:by|near|with|the) windows",
        is_single=False,
    ),
    "phone": Subject(
        values={"iphone": "iphones?", "android": "androids?|pixel|galaxy"}, is_single=False
    ),
    "browser": Subject(
        values={"firefox": "firefox", "chrome": "chrome", "safari": "safari", "edge": "edge"},
        cues="browsers?|browsing|tabs?|extensions?",
        is_single=False,
    ),
    "budget": Subject(),
    "home": Subject(aliases=("home city", "residence")),
    "home airport": Subject(),
    "employer": Subject(),
    "occupation": Subject(aliases=("job",)),
    "name": Subject(),
}  # fmt: skip

EXCLUSIVE = frozenset(SUBJECTS)
"""Subjects of which one value holds at a time."""

_NAMES = {
    frozenset(name.split()): canonical
    for canonical, subject in SUBJECTS.items()
    for name in (canonical, *subject.aliases)
}


def named(words: Collection[str]) -> str:
    """Return the subject that goes by a name of these words; empty when none does."""
    return _NAMES.get(frozenset(words), "")


def value_of(subject: str, words: str) -> str:
    """Return the value of a subject that some words name; empty when they name none, or more than one.

    Args:
        subject: one of `SUBJECTS`.
        words: such as `aisle seats`, or `German`, which in a sentence stands behind `in`.
    """
    for preposition in ("", "in ", "by "):
        told = {value for value, _ in SUBJECTS[subject].told(preposition + words)}
        if told:
            return told.pop() if len(told) == 1 else ""
    return ""
