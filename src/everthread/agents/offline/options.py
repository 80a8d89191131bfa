"""Compare the options of a search result and recommend one."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from everthread.agents.offline.patterns import pattern
from everthread.agents.offline.reading import visible
from everthread.agents.offline.reply import listed

SHOWN = 3
"""How many options are put before the user."""


@dataclass(frozen=True)
class Option:
    """One option as a tool's text describes it."""

    id: str
    text: str
    """The tool's own lines, the id left out."""
    price: float | None = None
    minutes: int | None = None
    """Travel time out."""
    nonstop: bool = False
    overnight: bool = False
    """Whether a flight leaves between 21:00 and 05:00."""
    tags: tuple[str, ...] = ()
    """What sets it apart from the others shown, such as `cheapest`."""


@dataclass(frozen=True)
class Likes:
    """What is known about the user's taste, as far as it decides between options."""

    nonstop: bool = False
    no_overnight: bool = False
    features: tuple[tuple[str, str], ...] = ()
    """What an option may have that the user likes: a pattern for its text, and how to call it."""


_ID = r"`([^`\s]{2,80})`|\b([A-Z]{2,4}-[A-Z0-9][A-Z0-9-]{2,60})\b"
_OPTION_LINE = re.compile(
    rf"^(?:[-*•]\s|\d{{1,3}}[.)]\s)?\s{{0,4}}(?:option(?:_id)?:?\s)?\[?(?:{_ID})\]?[\s·:|,–-]*(.*)$"
)
_SHOWN_LINE = re.compile(r"^(\d+)\. `([^`\s]+)`", re.MULTILINE)
_CURRENCIES = "USD|EUR|GBP|CHF|JPY|CAD|AUD|NZD|SEK|NOK|DKK|PLN|CZK|INR|CNY|SGD|HKD|BRL|MXN|ZAR|THB|KRW|TRY|AED"
_AMOUNT = r"(\d[\d,]{0,15}(?:\.\d{1,4})?)"
_PRICE = re.compile(rf"(?:\b(?:{_CURRENCIES})\s?|[€$£]){_AMOUNT}|{_AMOUNT}\s?(?:{_CURRENCIES})\b")
_DURATION = re.compile(r"\b(\d{1,2})\s?h(?:ours?)?\s?(?:(\d{1,2})\s?m(?:in)?)?\b")
_DEPARTURE = re.compile(r"(?:\d{4}-\d{2}-\d{2} )?(\d{2}):\d{2}\s*(?:→|-|–|to)")


def options_in(text: str) -> tuple[list[Option], list[str]]:
    """Separate the options of a tool's text from the lines around them."""
    blocks: list[tuple[str, list[str]]] = []
    around: list[str] = []
    for line in text.splitlines():
        match = _OPTION_LINE.match(line.strip())
        if match:
            blocks.append((match[1] or match[2], [match[3].strip()]))
        elif blocks and line[:1].isspace() and line.strip():
            blocks[-1][1].append(line.strip())
        elif line.strip():
            around.append(line.strip())
    return [_option(name, "\n   ".join(lines)) for name, lines in blocks], around


def shown_in(answer: str) -> dict[int, str]:
    """Return the ids that an answer of ours numbered, by their number."""
    return {int(number): name for number, name in _SHOWN_LINE.findall(answer)}


def shortlist(options: Sequence[Option], likes: Likes) -> list[Option]:
    """Choose at most three options, the recommended one first, each with what sets it apart."""
    ranked = sorted(options, key=lambda option: _rank(option, likes))
    cheapest = min((o for o in options if o.price is not None), key=lambda o: o.price or 0, default=None)
    fastest = min((o for o in options if o.minutes is not None), key=lambda o: o.minutes or 0, default=None)
    chosen: dict[str, Option] = {}
    for option in (*ranked[:1], cheapest, fastest, *ranked):
        if option is not None and len(chosen) < SHOWN:
            chosen.setdefault(option.id, option)
    return [replace(option, tags=_tags(option, cheapest, fastest, len(options) > 1)) for option in chosen.values()]


def likes_of(preferences: Sequence[str]) -> Likes:
    """Read from what is known about the user what can decide between options; the first mention wins."""
    liked = [
        (had, called)
        for line in preferences
        for wanted, had, called in _FEATURES
        if re.search(wanted, line, re.IGNORECASE)
    ]
    return Likes(
        nonstop=any(_NONSTOP.search(line) for line in preferences),
        no_overnight=any(_NO_OVERNIGHT.search(line) for line in preferences),
        features=tuple(dict.fromkeys(liked)),
    )


def present(text: str, preferences: Sequence[str], wish: str = "") -> str:
    """Put a search result before the user: a few options with trade-offs, one recommendation, one question.

    Args:
        text: the tool's answer.
        preferences: what is known about the user's taste.
        wish: what would be asked for with a booking, such as `aisle seat`.
    """
    options, around = options_in(text)
    if not options:
        return visible(text) or "The search returned nothing."
    likes = likes_of(preferences)
    chosen = shortlist(options, likes)
    best = chosen[0]
    count = f"{len(chosen)} of {len(options)} options" if len(options) > len(chosen) else "what I found"
    lines = [f"Here is {count}:" if count.startswith("what") else f"Here are {count}:"]
    lines += [f"{place}. {_shown(option)}" for place, option in enumerate(chosen, start=1)]
    notes = [visible(line, 300) for line in around[:4]]
    advice = f"I recommend option 1{_reason(best, chosen, likes)}."
    advice += f" With the booking I would ask for: {wish}." if wish else ""
    question = f"Shall I book `{best.id}`, or another one? I book nothing before you say so."
    return "\n\n".join(part for part in ("\n".join(notes), "\n".join(lines), advice, question) if part)


_NONSTOP = pattern(
    r"\b(?:prefers?|likes?|wants?|only|always)\b.{0,30}\b(?:non-?stop|direct)\b",
    r"\b(?:no|avoids?|hates?|dislikes?|without)\b.{0,20}\b(?:layovers?|stopovers?|connections?|connecting)\b",
)
_NO_OVERNIGHT = pattern(
    r"\b(?:no|not|never|avoids?|hates?|dislikes?|without)\b.{0,25}\b(?:red[- ]?eyes?|overnight|night flights?)\b"
)

# In a note; in the text of an option; how to call it.
_FEATURES = (
    (
        r"\b(?:no|never|without|avoids?|not check)\b.{0,15}\bchecked bags?\b|\b(?:carry-on|cabin bag|hand luggage)\b",
        r"\bcabin bag\b",
        "cabin bag only",
    ),
    (
        r"(?<!no )(?<!avoids )\bchecked bags?\b(?<!no checked bag)(?<!no checked bags)",
        r"\bchecked bag",
        "with a checked bag",
    ),
    (
        r"\bcentral(?:ly)?\b|\bwalkable\b|\bcity cent(?:re|er)\b|\bdowntown\b|\bold town\b"
        r"|\b(?:near|in|close to|around|by|at) the (?:very )?(?:cent(?:re|er)|middle)\b",
        r"\bcentral\b|(?<!to the )(?<!to the city )\bcent(?:re|er)\b|\bwalkable\b|\bold town\b|\bdowntown\b",
        "central",
    ),
    (r"\bhigh(?:er)? floors?\b", r"\bhigh(?:er)? floors?\b", "high floor"),
    (r"\bquiet\b", r"\bquiet\b", "quiet"),
    (r"\bbreakfast\b", r"\bbreakfast\b", "breakfast"),
    (r"\bautomatic\b", r"\bautomatic\b", "automatic"),
    (r"\b(?:refundable|flexible)\b", r"(?<!not )(?<!non-)\brefundable\b|\bfree cancel|\brefunds\b", "flexible"),
    (r"\bpool\b", r"\bpool\b", "pool"),
    (r"\bgym\b", r"\bgym\b", "gym"),
)
_A_LITTLE_MORE = 1.15
"""Up to this factor a nonstop flight is worth its price to someone who said nothing about it."""


def _option(name: str, text: str) -> Option:
    price, length = _PRICE.search(text), _DURATION.search(text)
    return Option(
        id=name,
        text=text,
        price=float((price[1] or price[2]).replace(",", "")) if price else None,
        minutes=int(length[1]) * 60 + int(length[2] or 0) if length and "→" in text else None,
        nonstop=re.search(r"\b(?:non-?stop|direct)\b", text, re.IGNORECASE) is not None,
        overnight="red-eye" in text.lower() or any(not 5 <= int(hour) < 21 for hour in _DEPARTURE.findall(text)),
    )


def _rank(option: Option, likes: Likes) -> tuple[int, int, float, int]:
    """Order options: what goes against the user's wishes last, then what meets most of them, then by price."""
    against = (likes.nonstop and not option.nonstop) + (likes.no_overnight and option.overnight)
    price = option.price if option.price is not None else float("inf")
    if option.minutes is not None and not option.nonstop:
        price *= _A_LITTLE_MORE
    return against, -len(_met(option, likes)), price, option.minutes or 0


def _met(option: Option, likes: Likes) -> list[str]:
    return [called for had, called in likes.features if re.search(had, option.text, re.IGNORECASE)]


def _tags(option: Option, cheapest: Option | None, fastest: Option | None, several: bool) -> tuple[str, ...]:
    named = ((cheapest, "cheapest"), (fastest, "fastest"))
    found = [word for other, word in named if other is not None and other.id == option.id and several]
    return (*found, *(["leaves at night"] if option.overnight else []))


def _shown(option: Option) -> str:
    tags = f"\n   ({', '.join(option.tags)})" if option.tags else ""
    return f"`{option.id}` · {visible(option.text, 600)}{tags}"


def _reason(best: Option, chosen: Sequence[Option], likes: Likes) -> str:
    """Say why, from what the options say and what the user likes, without reciting the notes."""
    reasons = ["nonstop"] if best.nonstop and best.minutes is not None else []
    if likes.no_overnight and not best.overnight and any(option.overnight for option in chosen):
        reasons.append("not overnight")
    reasons += _met(best, likes)
    prices = [option.price for option in chosen if option.price is not None]
    if best.price is not None and len(prices) > 1:
        reasons.append("the lowest price" if best.price == min(prices) else "a good price for that")
    return f": {listed(reasons)}" if reasons else ""
