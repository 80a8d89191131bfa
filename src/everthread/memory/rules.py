"""Distil notes from the user's own words by rules: explicit requests and plain first-person statements."""

import re
from dataclasses import dataclass

from everthread.state.notes import NoteScope

_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_QUOTED = re.compile(r"[\"“”«»]")
_HYPOTHETICAL = re.compile(r"\b(?:if i|would i|imagine|suppose|used to|hypothetically)\b", re.IGNORECASE)
_OTHERS = re.compile(
    r"\b(?:my (?:wife|husband|partner|son|daughter|boss|friend|colleague|mother|father)|they|he|she)\b", re.IGNORECASE
)
_SESSION = re.compile(r"\b(?:this time|this trip|for this|right now|today|tomorrow|just once)\b", re.IGNORECASE)
_STATEMENT = re.compile(
    r"^(?:please\s+)?(?:remember(?: that)?|note that|from now on,?"
    r"|i(?: really| always| usually| generally)? (?:prefer|like|love|hate|dislike|avoid|need|want)\b"
    r"|i(?:'m| am) (?:a )?(?:vegetarian|vegan|allergic|diabetic|left-handed)"
    r"|i (?:never|always|usually)\b|my budget is\b"
    r"|(?:don't|do not|never)\b.{3,60}\b(?:before|without|unless)\b"
    r"|this time,? i\b|for this trip,? i\b)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Candidate:
    """A sentence worth keeping."""

    quote: str
    text: str
    scope: NoteScope


def candidates(text: str) -> list[Candidate]:
    """Return what a user's message says about lasting or session preferences, in the user's words.

    Quoted, hypothetical and other people's statements, and questions, are left out.
    """
    found = []
    for sentence in (part.strip() for part in _SENTENCE.split(text)):
        if not _STATEMENT.match(sentence) or sentence.endswith("?"):
            continue
        if _QUOTED.search(sentence) or _HYPOTHETICAL.search(sentence) or _OTHERS.search(sentence):
            continue
        scope: NoteScope = "session" if _SESSION.search(sentence) else "durable"
        found.append(Candidate(sentence, f'User said: "{sentence.rstrip(".!")}"', scope))
    return found


def keywords(text: str) -> list[str]:
    """Return up to three content words."""
    words = re.findall(r"[a-z]{4,}", text.lower())
    return list(dict.fromkeys(word for word in words if word not in _COMMON))[:3]


_COMMON = frozenset(
    "user said that this time from really always usually please remember prefer like love have with want need"  # noqa: SIM905
    " before without never".split()
)
