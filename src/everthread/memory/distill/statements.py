"""Statements about the user: clauses that a form of speech in `rules/distill.yaml` fits, and whose words they are."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from everthread.memory.distill.attributes import Attribute, attributes
from everthread.memory.rules import BUILT_IN, Rules
from everthread.memory.text.own_words import Sentence, own_sentences
from everthread.memory.text.words import content_words
from everthread.state.notes import NoteKind, NoteScope

Manner = Literal["rule", "stated", "taste"]

CONFIDENCE: dict[Manner, float] = {"rule": 1.0, "stated": 0.9, "taste": 0.6}
"""What a wording is worth; our choice, so that tastes go first when the notes do not fit."""


_BOUNDARY = re.compile(
    r"(?:^|[;!?–—(]\s*|[,:.](?!\d)\s*|\s-+\s|\b(?:and|but|because|since|as|so|though|although|while|'?cause|plus|yet|or"
    r"|then|well|also|actually|yes|yeah|no|nope|ok|okay|oh|hey|hi|hello|please|thanks|thank you|cool|great|btw|fyi"
    r"|honestly|personally|sure|now|as a rule|in general|usually|generally|normally|typically|overall|remember|ever"
    r"|(?:just|much) like how)\s+)",
    re.IGNORECASE,
)
"""Ends where a clause begins."""

_MOST_CLAUSES = 30
"""Clauses of a sentence that are read; one with more is a list."""


@dataclass(frozen=True)
class Candidate:
    """Something worth keeping, with the words that it comes from."""

    quote: str
    """Sentence of the user, word for word."""
    text: str
    """The note."""
    scope: NoteScope
    kind: NoteKind = "preference"
    subject: str = ""
    confidence: float = 1.0


@dataclass(frozen=True)
class Statement:
    """A clause that says something lasting about the user, or limits something to now."""

    start: int
    """Place of the clause's subject in the sentence."""
    manner: Manner
    """An order for the future, a plain statement, or a mere liking."""
    kind: NoteKind


def cue(name: str) -> re.Pattern[str]:
    """Return a pattern of `rules/distill.yaml` by its name."""
    return BUILT_IN.pack("distill").pattern(name)


def statements(sentence: Sentence, rules: Rules = BUILT_IN) -> list[Statement]:
    """Return the statements of a sentence by where they begin: the first rule that fits a clause counts."""
    if is_hypothetical(sentence.bare):
        return []
    pack = rules.pack("distill")
    starts = [boundary.end() for boundary in islice(_BOUNDARY.finditer(sentence.bare), _MOST_CLAUSES)]
    if (fronted := cue("fronted").match(sentence.bare)) and not sentence.is_question:
        starts.append(fronted.end())
    by_start: dict[int, Statement] = {}
    for start in starts:
        preamble = cue("preamble").match(sentence.bare, start)
        place = preamble.end() if preamble else start
        if place in by_start or not is_own(sentence.bare[:place], sentence.bare[place:]):
            continue
        if match := pack.match("statement", sentence.bare, place):
            rule, _ = match
            by_start[place] = Statement(place, rule.values["manner"], rule.values["kind"])
    return [by_start[start] for start in sorted(by_start)]


def is_hypothetical(text: str) -> bool:
    """Tell whether a text talks of what is not so, or of what the user does not say."""
    return cue("unreal").search(text) is not None or _is_disowned(text)


def _is_disowned(text: str) -> bool:
    """Tell whether the user says that they did not say something, and does not say behind a `but` what holds."""
    match = cue("disowned").search(text)
    return match is not None and cue("turn").search(text, match.end()) is None


def is_own(before: str, after: str) -> bool:
    """Tell whether a clause is the user's own of today: not what others say, nor what used to be."""
    if cue("others-say").search(before) or cue("company").search(before):
        return False
    clause = after.split(", but ")[0]
    earlier = before[max(before.rfind(sign) for sign in ",;") + 1 :]
    past, since_changed = cue("past"), cue("since-changed")
    return not (past.search(clause) or (past.search(earlier) and not since_changed.search(earlier)))


def is_of_another(before: str, quote: str) -> bool:
    """Tell whether a quote speaks of another person, by itself or by the subject ahead of it."""
    return cue("of-another").search(quote) is not None or cue("ends-in-another").search(before) is not None


def asked_to_remember(sentence: Sentence) -> int | None:
    """Return where the content begins when the user asks to have something kept; None otherwise."""
    match = cue("remember").match(sentence.bare)
    if match is None or not content_words(sentence.text[match.end() :]):
        # A sentence that breaks off, such as "Remember that I", asks for nothing yet.
        return None
    is_asking = sentence.is_question and not re.search(r"\byou\b", match.group(), re.IGNORECASE)
    return None if is_asking else match.end()


def is_stated(sentence: Sentence) -> bool:
    """Tell whether a sentence states something about the user, or asks to have something kept."""
    return bool(statements(sentence)) or asked_to_remember(sentence) is not None


def rememberable(sentences: Sequence[Sentence]) -> list[Sentence]:
    """Return the sentences that the user did not ask to forget; none where `don't store that` may be about any."""
    if any(cue("unkept-around").search(one.bare) for one in sentences):
        return []
    return [one for one in sentences if not _is_unkept(one.bare)]


def _is_unkept(bare: str) -> bool:
    match = cue("unkept").search(bare)
    if match is None:
        return False
    # "You must not, under any circumstances, forget that I …"
    return not (cue("forgetting").search(match.group()) and cue("not-ahead").search(bare, 0, match.start()))


def asks_to_forget(text: str) -> bool:
    """Tell whether a message asks not to remember something, or to forget it."""
    read = own_sentences(text)
    return rememberable(read) != read


def sets_default(sentence: Sentence) -> bool:
    """Tell whether the sentence sets a default for the time to come."""
    return cue("later-on").search(sentence.bare) is not None


def wishes(sentence: Sentence) -> list[Attribute]:
    """Return what a request asks for: it holds for this session, until the user says that it always does."""
    if cue("indifferent").search(sentence.bare) or _is_disowned(sentence.bare):
        return []
    if not cue("request").search(sentence.bare):
        return []
    is_question_of_fact = sentence.is_question and cue("fact-question").match(sentence.bare)
    return [] if is_question_of_fact else attributes(sentence.bare)
