"""Distil notes from the user's own words by rules; no model is asked.

A statement is told from a request, a quotation, a supposition, and from what others want; see
docs/memory.md for what the rules know and what they miss.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from everthread.memory.capture import kind_of
from everthread.memory.distill.answers import answered
from everthread.memory.distill.attributes import Attribute, attributes, subject_of
from everthread.memory.distill.manners import CONFIDENCE
from everthread.memory.distill.ownership import is_hypothetical, is_of_another, is_own
from everthread.memory.distill.reminders import asked_to_remember, speaks_of_later
from everthread.memory.distill.requests import wishes
from everthread.memory.distill.sentences import Sentence, sentences
from everthread.memory.distill.statements import Statement, statements
from everthread.memory.distill.wording import content_words, keywords, quotation, third_person
from everthread.memory.text.constraints import is_for_this_time
from everthread.state.notes import Note, NoteKind, NoteScope

__all__ = ["MOST_PER_MESSAGE", "Candidate", "candidates", "content_words", "covers", "keywords", "share_meaning"]

MOST_PER_MESSAGE = 12
"""Notes from one message: a pasted page of wishes is no memory."""

LONGEST_SENTENCE = 1_000
"""Characters above which a line is a paste, not a sentence; reading it would only cost time."""

_LEAD = re.compile(
    r"(?<!as )(?:when(?:ever)?|if|for|on|in|at|due to|because of|as (?:a|an|someone)|while|with|during|given|"
    r"after|before|"
    r"unless)\b[^,;]*$",
    re.IGNORECASE,
)
_TRAILING = re.compile(
    r"(?:,| -+|;)? (?:so|but|and)(?: (?:perhaps|maybe))? (?:it|it's|this|that|that's|these|those|they|there|you|"
    r"could|can|do|what|any|please|a|"
    r"i'm (?:considering|thinking|looking|hoping|a bit)|i'll|i'd|i might|i was|i think|we|we're|perhaps|maybe|"
    r"with)\b.*$",
    re.IGNORECASE,
)
_ASKING = re.compile(
    r"(?:[,;:.]| -+) ?(?:what|which|where|how|when|who|why|any|do|does|is|are|can|could|would|will|should)\b.*\?$"
    r"| \b(?:could|can|would|will|do|does|did|is|are|what|which|where|how|any) (?:you|there|it|that|this|any|the|"
    r"i|about|some|suggestions)\b.*\?$",
    re.IGNORECASE,
)
_BUDGET = re.compile(
    r"\b(?:can't|cannot|can not|won't|don't want to|mustn't|shouldn't|not) (?:go|spend|pay|be) (?:any )?(?:over|"
    r"above|beyond|past|more than)"
    r"\b.{0,12}\d|\b(?:keep|stay|remain|come in)\b.{0,25}\b(?:under|below|within|at most)"
    r"\s+[$€£]?\s?\d[\d,.]*(?!\s?(?:min|hour|h\b|km|mile"
    r"|stop|people|kg|gb|mb|%))"
    r"|\b(?:have|got|'ve got)\b.{0,12}\d[\d,.]*k?\s?\w* (?:to spend|for (?:everything|the whole))"
    r"|\d.{0,20}\b(?:is|'s) (?:my|our|the) (?:absolute |hard )?(?:ceiling|limit|cap|max|maximum|upper limit)\b|"
    r"\b(?:my|our|the|total|a) (?:\w+ )?budget (?:is|of|for|would be|will be)\b|\b(?:i|we) (?:can|could|want to|"
    r"'d like to) (?:only )?(?:spend|pay|afford)\b.*\d"
    r"|\b(?:no more than|at most|up to|maximum(?: of)?|max|under|below|not (?:more|over)(?: "
    r"than)?)\s+(?:[$€£]\s?\d|\d[\d,.]*\s?(?:dollars|euros?|pounds|usd|eur|gbp|bucks))",
    re.IGNORECASE,
)
_GENERALLY = re.compile(
    r"\b(?:usually|always|generally|typically|normally|in general|as a rule|never|every (?:time|trip))\b", re.IGNORECASE
)
_DATED = re.compile(
    r"\b(?:on|by|at|next|this|from|until) (?:the )?(?:\d(?![\d.,]* ?(?:euros?|dollars?|pounds?|usd|eur|gbp|%|percent))|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)day\b|next week|jan|"
    r"feb|mar|apr|may \d|june?|july?|aug|sep|oct|nov|dec)"
    r"|\b(?:mon|tues|wednes|thurs|fri|satur|sun)day next week",
    re.IGNORECASE,
)
_LIMITED = re.compile(
    r"^(?:.{0,20}\b)?(?:(?:just |only )?(?:for )?this (?:time|trip|once|stay|flight|booking|visit|journey|"
    r"case)(?: only)?|just (?:this )?once|for (?:now|today)|on this occasion|(?:just |only )?for (?:the|my|our) "
    r"(?:\w+ ){0,2}"
    r"(?:trip|stay|flight|booking|visit|journey)(?: only| alone)?)[,:]?\s+(?P<rest>.+)$",
    re.IGNORECASE,
)

_NOTHING = re.compile(r"(?:Has no|Is not|Isn't)\b(?! able| allowed)")
_UNWANTED = re.compile(
    r"^(?:\w+,? ){0,2}i (?:really |just )?(?:don't|do not) want (?!to (?:know|say|talk|bother|be rude))", re.IGNORECASE
)
_EXCEPTION = re.compile(
    r"\b(?:but|though|however|only|except)?,? ?((?:just |only )?(?:for )?(?:this (?:time|trip|once|stay|flight|"
    r"booking|visit)|today|tonight|tomorrow)\b.*)$",
    re.IGNORECASE,
)


_DEFAULT = re.compile(
    r"\b(?:usually|normally|generally|as a (?:general )?rule|in general|by default|always|every time|each time|at "
    r"all times|"
    r"(?:whenever|wherever) (?:you can|possible|available|it's possible)|as (?:usual|always))\b",
    re.IGNORECASE,
)
_ORDER = re.compile(
    r"(?:please |just |only |also |and |so )*(?:put|seat|sit|give|get|book|find|choose|pick|reserve|make|keep|use|"
    r"show|take|rent|order|select|"
    r"look for|go for|stick to|no)\b",
    re.IGNORECASE,
)
_ADDRESSED = re.compile(r"\b(?:i|i'm|i'd|i'll|i've|me|my|we|us|our|please)\b", re.IGNORECASE)
_LEADING = re.compile(rf"(?:{_DEFAULT.pattern}[,:]? |the |an? )*", re.IGNORECASE)


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


def candidates(text: str, *, question: str = "", known: Iterable[str] = ()) -> list[Candidate]:
    """Return what a user's message says that will matter later.

    Lasting statements come as `durable`; wishes of this trip or case come as `session`. Quoted, past,
    hypothetical and other people's statements are left out, and so is text that was injected.

    Args:
        text: the message.
        question: the assistant's message ahead of it, for answers such as `Aisle.`
        known: texts of injected notes: a sentence that repeats one word for word is not learnt again.
    """
    injected = {_plain(note) for note in known}
    if question and (answer := answered(text, question)) and not any(map(statements, sentences(text))):
        return [Candidate(text.strip(), answer.text, answer.scope, answer.kind, answer.subject)]
    found: dict[str, Candidate] = {}
    for sentence in sentences(text):
        if len(sentence.text) > LONGEST_SENTENCE or _plain(sentence.text) in injected:
            continue
        for candidate in _from_sentence(sentence):
            found.setdefault(candidate.text, candidate)
    return list(found.values())[:MOST_PER_MESSAGE]


def covers(note: Note, candidate: Candidate, message_id: str) -> bool:
    """Tell whether a note, such as one that the model saved, already says what a message's candidate says.

    They share the message, and at least half of the meaning words of the shorter of the two.
    """
    if not any(message_id in source.message_ids for source in note.sources):
        return False
    return share_meaning(candidate.text, note.text)


def share_meaning(one: str, other: str) -> bool:
    """Tell whether two texts have at least half of the meaning words of the shorter of them in common."""
    ours, theirs = content_words(one), content_words(other)
    return bool(ours and theirs) and 2 * len(ours & theirs) >= min(len(ours), len(theirs))


def _from_sentence(sentence: Sentence) -> list[Candidate]:
    if (begin := asked_to_remember(sentence)) is not None:
        return [_asked(sentence, begin)]
    limited = _LIMITED.match(sentence.bare)
    if limited and not sentence.is_question and not is_hypothetical(sentence.bare):
        return [
            Candidate(
                sentence.quote, quotation(sentence.text), "session", kind_of(sentence.text), subject_of(sentence.text)
            )
        ]
    if _BUDGET.search(sentence.bare) and not is_hypothetical(sentence.bare):
        scope: NoteScope = "durable" if _GENERALLY.search(sentence.bare) or speaks_of_later(sentence) else "session"
        return [Candidate(sentence.quote, quotation(_own(sentence.text)), scope, "constraint", "budget")]
    told = statements(sentence)
    if told:
        return _stated(sentence, told)
    if _is_default(sentence):
        return _default(sentence)
    if _UNWANTED.match(sentence.bare) and not sentence.is_question:
        return [
            Candidate(sentence.quote, quotation(sentence.text), "session", "preference", subject_of(sentence.text), 0.8)
        ]
    return [_wish(sentence, wanted) for wanted in wishes(sentence)]


def _asked(sentence: Sentence, begin: int) -> Candidate:
    """Keep what the user asked to have kept, whatever it is."""
    clause = sentence.text[begin:]
    scope: NoteScope = "session" if is_for_this_time(clause) and not speaks_of_later(sentence) else "durable"
    text = third_person(_own(clause)) or quotation(sentence.text)
    kinds = {one.kind for one in statements(Sentence(clause, clause, sentence.bare[begin:]))}
    kind: NoteKind = "constraint" if "constraint" in kinds else kind_of(clause)
    return Candidate(sentence.quote, text, scope, kind, subject_of(clause))


def _stated(sentence: Sentence, told: Sequence[Statement]) -> list[Candidate]:
    """Make one note of the statements of a sentence, and a second one where a part is for this time only."""
    first = told[0]
    whole = sentence.text[first.begin :]
    exception = _EXCEPTION.search(whole, 2) if _GENERALLY.search(whole) else None
    clause = whole[: exception.start()] if exception else whole
    clause = _own(clause, told=[one.begin - first.begin for one in told[1:] if one.begin - first.begin < len(clause)])
    lead_found = _LEAD.search(sentence.text[: first.begin].rstrip(", "))
    lead = lead_found.group() if lead_found and len(lead_found.group().split()) <= 8 else ""
    text = third_person(clause, lead) or quotation(f"{lead}, {clause}" if lead else clause)
    kinds = {one.kind for one in told}
    kind: NoteKind = "constraint" if "constraint" in kinds else first.kind or "preference"
    generally = speaks_of_later(sentence) or _GENERALLY.search(clause)
    is_now = is_for_this_time(f"{lead} {clause}") or _DATED.search(f"{lead} {clause}")
    scope: NoteScope = "session" if is_now and not generally else "durable"
    confidence = max(CONFIDENCE[one.manner] for one in told)
    if kind == "constraint" and _NOTHING.match(text):
        kind = "fact"
    made = [Candidate(sentence.quote, text, scope, kind, subject_of(clause), confidence)]
    if exception:
        now = quotation(exception.group(1))
        made.append(Candidate(sentence.quote, now, "session", kind_of(now), subject_of(now)))
    return made


def _is_default(sentence: Sentence) -> bool:
    """Tell whether a request sets a default: `window seats, as a rule`, `put me on the aisle whenever you can`."""
    bare = sentence.bare
    if sentence.is_question or is_hypothetical(bare) or is_of_another("", bare) or not is_own("", bare):
        return False
    if speaks_of_later(sentence):
        return _ADDRESSED.search(bare) is not None or bool(attributes(bare))
    if not _DEFAULT.search(bare) or not attributes(bare):
        return False
    begin = _LEADING.match(bare)
    start = begin.end() if begin else 0
    return _ORDER.match(bare, start) is not None or any(bare.startswith(one.phrase, start) for one in attributes(bare))


def _default(sentence: Sentence) -> list[Candidate]:
    """Make a lasting note of a request that sets a default, and one for this time of an exception to it."""
    exception = _EXCEPTION.search(sentence.text, 2)
    clause = sentence.text[: exception.start()] if exception else sentence.text
    made = [
        Candidate(sentence.quote, quotation(clause), "durable", kind_of(clause), subject_of(clause), CONFIDENCE["rule"])
    ]
    if exception:
        now = quotation(exception.group(1))
        made.append(Candidate(sentence.quote, now, "session", kind_of(now), subject_of(now)))
    return made


def _wish(sentence: Sentence, wanted: Attribute) -> Candidate:
    text = f"This time wants {'no ' if wanted.is_negated else ''}{wanted.phrase}."
    return Candidate(sentence.quote, text, "session", "preference", wanted.subject, 0.8)


def _own(clause: str, told: Sequence[int] = ()) -> str:
    """Cut what follows a statement and is none: a question, a plan, a remark on the conversation.

    Args:
        clause: from the statement's subject on.
        told: where further statements begin, which are never cut.
    """
    last = max(told, default=0)
    for trailing in (_ASKING, _TRAILING):
        cut = trailing.search(clause, last + 2)
        if cut and cut.start() > 0:
            clause = clause[: cut.start()]
    return clause


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))
