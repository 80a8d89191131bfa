"""Turn the user's words into a note's words where that is safe."""

import re

from everthread.memory.rules import BUILT_IN
from everthread.memory.text.words import STOP_WORDS, words

_OTHER_PERSONS = re.compile(r"\b(?:we|we're|we've|our|ours|us|you|your|yours|you're|you'll)\b", re.IGNORECASE)
_IRREGULAR = {"have": "has", "do": "does", "go": "goes", "don't": "doesn't", "am": "is", "haven't": "hasn't"}
_SELF = {
    "i am": "they are",
    "i was": "they were",
    "i'm": "they're",
    "i've": "they've",
    "i'd": "they'd",
    "i'll": "they'll",
    "i": "they",
    "my": "their",
    "me": "them",
    "mine": "theirs",
    "myself": "themselves",
}
_SELF_WORD = re.compile(rf"\b(?:{'|'.join(_SELF)})\b", re.IGNORECASE)
_SECOND_VERB = re.compile(
    r"(\b(?:and|but|or) (?:\w+ly |much |also )?)(think|prefer|avoid|dislike|hate|love|like|want|need|refuse|tend|"
    r"don't)\b",
    re.IGNORECASE,
)
_SUBJECT = re.compile(r"^i(?:'(m|ve|d|ll))?\s+", re.IGNORECASE)
_NAME = re.compile(r"(?<=[a-z,;] )[A-Z]\w+")


def third_person(clause: str, lead: str = "") -> str | None:
    """Return `I usually prefer X.` as `Usually prefers X.`; None when that could change the meaning.

    Args:
        clause: begins with the subject `I`.
        lead: what stands ahead of it and belongs to it, such as `When I travel for work`.
    """
    if _OTHER_PERSONS.search(clause) or _OTHER_PERSONS.search(lead) or '"' in clause:
        return None
    subject = _SUBJECT.match(clause)
    contracted = (subject[1] or "").lower() if subject else ""
    if subject is None or contracted in ("d", "ll"):
        return None
    rest = clause[subject.end() :]
    text = {"m": "is", "ve": "has"}[contracted] + " " + rest if contracted else _conjugated(rest)
    text = _SELF_WORD.sub(_of_them, text)
    if lead:
        text = f"{text.rstrip(' .?!,;:-')} {lead[0].lower()}{_SELF_WORD.sub(_of_them, lead)[1:]}"
    text = _SECOND_VERB.sub(lambda match: match[1] + _singular(match[2]), text).rstrip(" .?!,;:-")
    return text[:1].upper() + text[1:] + "."


def quotation(clause: str) -> str:
    """Return the user's words as a note that says that they are the user's words."""
    quoted = clause.strip().rstrip(" .?!,;:-").replace('"', "'")
    return f'User said: "{quoted}"'


def keywords(text: str) -> list[str]:
    """Return up to three lowercase tags: words that carry meaning and are no names, numbers or dates."""
    names = set(_NAME.findall(text))
    plain = " ".join(word for word in text.split() if word.strip(".,;:!?\"'") not in names)
    vocabularies = BUILT_IN.pack("distill").words
    skipped = STOP_WORDS | vocabularies["untelling"] | vocabularies["calendar"]
    tags = (word for word in words(plain) if len(word) > 3 and word.isalpha() and word not in skipped)
    return list(dict.fromkeys(tags))[:3]


def _conjugated(rest: str) -> str:
    vocabularies = BUILT_IN.pack("distill").words
    parts = rest.split(" ")
    for place, word in enumerate(parts):
        said = word.rstrip(",.;:!?")
        bare = said.lower()
        if bare in vocabularies["adverbs_of_habit"] or (
            bare.endswith("ly") and bare not in vocabularies["verbs_in_ly"]
        ):
            continue
        parts[place] = _singular(said) + word[len(said) :]
        break
    return " ".join(parts)


def _singular(verb: str) -> str:
    lowered = verb.lower()
    if lowered in BUILT_IN.pack("distill").words["modals"]:
        return lowered
    if lowered in _IRREGULAR:
        return _IRREGULAR[lowered]
    if re.search(r"[^aeiou]y$", lowered):
        return verb[:-1] + "ies"
    return verb + ("es" if re.search(r"(?:s|sh|ch|x|z)$", lowered) else "s")


def _of_them(match: re.Match[str]) -> str:
    return _SELF[match.group().lower()]
