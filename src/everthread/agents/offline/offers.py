"""Compare the options of a search result, recommend one, and find the one that the user means."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from everthread.agents.offline.replies import visible

_MAX_SHOWN = 3
"""How many options are put before the user."""

_OPTION_LINE = re.compile(r"^\s*(?:\d{1,3}\. )?`([^`\s]{2,80})`[\s·]*(.*)$")
_SHOWN_LINE = re.compile(r"^(\d+)\. `([^`\s]+)`", re.MULTILINE)
_PRICE = re.compile(r"\b[A-Z]{3} (\d[\d,]*(?:\.\d+)?)")
_DURATION = re.compile(r"\bout (\d{1,2}) h(?: (\d{1,2}) min)?")
_DEPARTURE = re.compile(r"\b(\d{2}):\d{2} →")

# What a preference says, what an option then says, and how a reason calls it.
_TASTES = (
    (r"\b(?:non-?stop|direct)\b|\b(?:no|avoids?|hates?)\b.{0,20}\b(?:layovers?|stopovers?|connections?)", "nonstop"),
    (r"\bcentral|\bwalkable|\bcity cent(?:re|er)|\bdowntown|\b(?:near|in|at) the cent(?:re|er)", "central"),
    (r"\bno\b.{0,10}\bchecked bags?|\bnot to check bags|\bcarry-on|\bcabin bag", "cabin bag"),
    (r"\bhigh(?:er)? floors?", "high floor"),
    (r"\bquiet", "quiet"),
    (r"\bbreakfast", "breakfast"),
    (r"\bautomatic", "automatic"),
    (r"\brefundable|\bflexible", "refundable"),
)
_BY_DAY = re.compile(
    r"\b(?:no|not|never|avoids?|hates?|dislikes?)\b.{0,25}\b(?:red[- ]?eyes?|overnight|at night|night flights?)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Offer:
    """One option as a tool's text describes it."""

    id: str
    text: str
    """The tool's own lines, the id left out."""

    @property
    def price(self) -> float:
        """Total price; infinite when none is named."""
        match = _PRICE.search(self.text)
        return float(match[1].replace(",", "")) if match else float("inf")

    @property
    def minutes(self) -> float:
        """Travel time out; infinite for what is no flight."""
        match = _DURATION.search(self.text)
        return int(match[1]) * 60 + int(match[2] or 0) if match else float("inf")

    @property
    def leaves_at_night(self) -> bool:
        """Whether a flight leaves between 21:00 and 05:00."""
        return any(not 5 <= int(hour) < 21 for hour in _DEPARTURE.findall(self.text))

    def meets(self, taste: str) -> bool:
        """Tell whether the option says that it has something, such as `central`."""
        return re.search(rf"(?<!non-)(?<!not )\b{taste}\b", self.text, re.IGNORECASE) is not None


def offers_in(text: str) -> tuple[list[Offer], list[str]]:
    """Separate the options of a tool's text from the lines around them."""
    blocks: list[tuple[str, list[str]]] = []
    around: list[str] = []
    for line in text.splitlines():
        if match := _OPTION_LINE.match(line):
            blocks.append((match[1], [match[2].strip()]))
        elif blocks and line[:1].isspace() and line.strip():
            blocks[-1][1].append(line.strip())
        elif line.strip():
            around.append(line.strip())
    return [Offer(name, "\n   ".join(lines)) for name, lines in blocks], around


def shown_in(answer: str) -> dict[int, str]:
    """Return the ids that an answer of ours numbered, by their number."""
    return {int(number): name for number, name in _SHOWN_LINE.findall(answer)}


def present(text: str, preferences: Sequence[str], wish: str = "") -> str:
    """Put a search result before the user: a few options, one recommendation, one question.

    Args:
        wish: what would be asked for with a booking, such as `aisle seat`.
    """
    offers, around = offers_in(text)
    if not offers:
        return visible(text) or "The search returned nothing."
    likes = [taste for said, taste in _TASTES if any(re.search(said, line, re.IGNORECASE) for line in preferences)]
    by_day = any(map(_BY_DAY.search, preferences))
    met = {offer.id: [taste for taste in likes if offer.meets(taste)] for offer in offers}
    ranked = sorted(offers, key=lambda one: (by_day and one.leaves_at_night, -len(met[one.id]), one.price))
    cheapest, fastest = min(offers, key=lambda one: one.price), min(offers, key=lambda one: one.minutes)
    chosen = list(dict.fromkeys((ranked[0], cheapest, fastest, *ranked)))[:_MAX_SHOWN]
    lines = [f"Here are {len(chosen)} of {len(offers)} options:"]
    for place, offer in enumerate(chosen, start=1):
        tags = [
            *(["cheapest"] if offer is cheapest else []),
            *(["fastest"] if offer is fastest and offer.minutes < float("inf") else []),
            *(["leaves at night"] if offer.leaves_at_night else []),
        ]
        lines.append(
            f"{place}. `{offer.id}` · {visible(offer.text, 600)}" + (f"\n   ({', '.join(tags)})" if tags else "")
        )
    best = chosen[0]
    reasons = [*met[best.id], *(["not at night"] if by_day and not best.leaves_at_night else [])]
    reasons.append("the lowest price" if best is cheapest else "a good price for that")
    advice = f"I recommend option 1: {', '.join(reasons)}."
    if wish:
        advice += f" With the booking I would ask for: {wish}."
    question = f"Shall I book `{best.id}`, or another one? I book nothing before you say so."
    notes = "\n".join(visible(line, 300) for line in around[:4])
    return "\n\n".join(part for part in (notes, "\n".join(lines), advice, question) if part)
