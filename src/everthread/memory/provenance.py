"""Tell whose words a note is made of: the user's own, as far as that can be shown, or else those of a tool or model.

A note is the user's when every word, number and name of it stands in a sentence of their own, denied or not as there,
or in the one question that they said yes to. What a page says never is, however it is spelled, since nobody but the
user can have said it in words of the user.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache

from everthread.memory.distill.statements import cue, is_hypothetical, is_stated, rememberable
from everthread.memory.folding import folded, is_invisible
from everthread.memory.rules import BUILT_IN
from everthread.memory.text.constraints import constraints_in
from everthread.memory.text.dates import dates_in
from everthread.memory.text.languages import is_foreign
from everthread.memory.text.own_words import Sentence, is_reported, own_sentences
from everthread.memory.text.sentences import sentences
from everthread.memory.text.wording import Wording, root, wording
from everthread.memory.text.words import same_start

_PACK = BUILT_IN.pack("provenance")

_MOST = 0.65
"""Share of a note's words that makes a tool its author, where the user is not; one common word is none."""

_LONGEST = 20_000
"""Characters of a tool's text that are read to name it as the author; whether the user is does not depend on it."""

_LONGEST_QUESTION = 300
"""Characters of a question that a yes can agree to; of a longer one nobody knows what was meant."""

_LONGEST_SENTENCE = 1_000
"""Characters above which a line is a paste."""

_MOST_SENTENCES = 400
"""Sentences of one message that are looked at, the last ones: a longer message is a paste with something behind it."""

_FIELD = re.compile(r"[\"']\s*[,}\]]\s*|\\\\n")
"""The end of a field of JSON, and a line break inside one."""

_DATE = re.compile(r"\b\d{4}-\d\d-\d\d\b")
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_PART = re.compile(
    r"\s{0,9}[,;:()]\s{1,9}|\s{0,9}[()]\s{0,9}|\s{1,9}(?:and|but|while|plus|[-–—])\s{1,9}", re.IGNORECASE
)
_PRONOUN = re.compile(
    r"\b(?:he|she|they|it|that|this|these|those|them|him|her|his|its|their|both|one|ones|there|then)\b", re.IGNORECASE
)
_PROSE = re.compile(r"(?:[\w\s]++|[.,;:!?'\"’“”()&/%$€£°#@+–—-](?![.,;:!?'\"’“”()&/%$€£°#@+–—-]{3}))++")
"""Words and the marks between them; Morse code and the like are more marks than words."""

_PAST = re.compile(
    r"\b(?:was|were|had|did|wasn't|weren't|hadn't|didn't|(?:i|we)\s+(?:\w+ly\s+|just\s+|once\s+|always\s+)?"
    r"(?!need\b|feed\b|proceed\b|exceed\b|succeed\b|speed\b|bleed\b|breed\b)\w+ed)\b",
    re.IGNORECASE,
)
_OF_THE_PAST = re.compile(
    r"\b(?:was|were|had|did|\w+n't|\w+ed|born|used|former\w*|previous\w*|until|once)\b", re.IGNORECASE
)

_WANTS = re.compile(
    r"\b(?:want|like|love|prefer|enjoy|wish|need|trust|favou?r|insist|choose|accept|agree)(?:s|es)?\b", re.IGNORECASE
)
_STATE = re.compile(r"^(?:(?:the\s)?user|i|they|she|he)?\s*(?:is|am|are|has|have|lives?|works?|owns?)\b", re.IGNORECASE)
"""What somebody is or has, which no errand tells that does not speak of them: a vegan lunch may be for a guest."""

_OF_SELF = re.compile(r"\b(?:i|i'\w+|we|we'\w+|my|mine|our|ours)\b", re.IGNORECASE)

_NOW = re.compile(r"\b(?:now|tonight|today|tomorrow|by)\b", re.IGNORECASE)
"""Words that make `I need a taxi now, ok?` a wish of this moment."""

_BY_USER = re.compile(
    r"\b(?:i|we|i'\w+|we'\w+|please|for (?:me|us))\b|^\W*(?:and |but |also )?(?:my|our)\b", re.IGNORECASE
)

_LONE_MARKS = re.compile(r"(?<!\S)[^\w\s]++(?:\s++[^\w\s]++(?!\S))++")

_ENDINGS = frozenset(
    """
    e s es d ed er ers ing y i ies ic ical ist ism ian ly al ally ion ation ment ness able ful t n en or ance ence ent
    ant ity ive age te r st ting ning c li iti ali
    """.split()  # noqa: SIM905
)
_SHORTEST_STEM = 4


@dataclass(frozen=True)
class Said:
    """A message as far as authorship goes."""

    id: str
    text: str
    asked: str = ""
    """The assistant's message that it says yes to; empty when it does not."""


@dataclass(frozen=True)
class Shown:
    """What shows that the user said a note."""

    said: Said
    is_lasting: bool
    """The words are about more than one request: `find me a room` says nothing of the next time."""


@dataclass(frozen=True)
class Evidence:
    """A sentence that can show a note."""

    text: str
    wording: Wording
    is_lasting: bool
    is_by_user: bool = True
    """The user is its subject, or asks for it: only then does it tell what they want."""
    who: frozenset[str] = frozenset()
    """Roots for what it is about, one of which the note has to name; empty when that is the user."""


def shown_by(text: str, said: Iterable[Said], today: date | None = None) -> Shown | None:
    """Return the user's message that shows a note; None when none does.

    Each sentence of a note needs a sentence of the user with its words, its numbers, its names and its denials. Only
    words that add nothing, such as `prefers` or `seats`, may be the note's own.

    Args:
        text: the note.
        said: messages of the user, newest first: of two that show it the newer one is the source.
        today: the day against which `next Friday` is read; None: today.
    """
    if not _is_plain(text):
        return None
    note = folded(text).text
    wanted = [part for part in sentences(note, at_semicolons=True) if part]
    if not wording(note).words:
        return None
    found: dict[int, tuple[Said, bool]] = {}
    for one in said:
        evidence = evidence_of(one)
        for place, part in enumerate(wanted):
            if place not in found and (by := _support(part, evidence, today or date.today())) is not None:
                found[place] = one, by
        if len(found) == len(wanted):
            return Shown(found[0][0], all(is_lasting for _, is_lasting in found.values()))
    return None


def own_keywords(keywords: Sequence[str], *texts: str) -> list[str]:
    """Return the keywords of a note that say no more than texts do."""
    spoken = {root(word.lower()) for text in texts for word in _WORD.findall(text)}
    return [word for word in keywords if is_frame(word) or any(is_same(root(word.lower()), one) for one in spoken)]


def tool_behind(text: str, results: Iterable[Said], said: Iterable[Said]) -> Said | None:
    """Return the first result of a tool that a note was taken from; None when there is none that can be named.

    That is one with a name or a number that the user never said, or with most of the note in one
    sentence or field: in a long list of hotels every word stands somewhere.

    Args:
        text: a note that is not the user's.
        results: what tools returned.
        said: messages of the user.
    """
    note = wording(folded(text).text)
    exact = note.names | frozenset(note.numbers)
    unsaid = exact.difference(*(wording(one.text[:_LONGEST]).words for one in said)) if exact else exact
    for one in results:
        visible = folded(one.text[:_LONGEST]).text
        pieces = [wording(piece) for part in _FIELD.split(visible) for piece in sentences(part)]
        if any(unsaid & piece.words or _share(note, piece) >= _MOST for piece in pieces):
            return one
    return None


def evidence_of(said: Said) -> list[Evidence]:
    """Return the sentences of a message that can show a note: the user's own, and the question that they agree to."""
    read = own_sentences(said.text, at_semicolons=True)[-_MOST_SENTENCES:]
    own = rememberable(read)
    if read and not own:
        return []
    evidence: list[Evidence] = []
    before = ""
    for sentence in own:
        one = evidence_in(sentence)
        if one is not None:
            evidence.append(one)
            if before and _PRONOUN.search(sentence.bare):
                ahead = wording(before)
                who = ahead.words if one.who else one.who
                together = _together(ahead, one.wording)
                both = Evidence(f"{before} {one.text}", together, one.is_lasting, one.is_by_user, who)
                evidence.append(both)
        before = folded(sentence.bare).text if one is not None else ""
    return [*evidence, *_agreed(said.asked)]


def is_frame(word: str) -> bool:
    """Tell whether a word adds nothing to what was said, such as `seats`."""
    return root(word.lower().strip(".,;:!?")) in _frame()


def _is_plain(text: str) -> bool:
    """Tell whether all of a text can be seen and read as words."""
    if any(map(is_invisible, text)):
        return False
    visible = folded(text).text
    return _PROSE.fullmatch(visible) is not None and _LONE_MARKS.search(visible) is None


def evidence_in(sentence: Sentence) -> Evidence | None:
    """Return a sentence as evidence; None when it states nothing about the user."""
    if len(sentence.quote) > _LONGEST_SENTENCE or is_hypothetical(sentence.bare) or is_reported(sentence):
        return None
    if cue("past").search(sentence.bare) and not cue("since-changed").search(sentence.bare):
        return None
    stated = is_stated(sentence)
    is_rule = bool(constraints_in(sentence.quote))
    text = sentence.bare
    if sentence.is_question:
        asks = cue("asks-behind").search(text)
        ahead = text[: asks.start()] if asks else ""
        # `I print on both sides, can that be the default?` states something, and asks behind it. In other languages
        # the verb tells who speaks.
        is_users = _BY_USER.search(ahead) is not None or is_foreign(ahead) or _is_worded_as_rule(ahead)
        if not stated and not _PACK.fits("errand", text) and not (is_users and _states(ahead)):
            return None
        if ahead and not _PACK.fits("errand", ahead):
            text = ahead
    elif not stated and not is_rule and _PACK.fits("looking", text):
        return None
    # Not all that is built like a rule is one, such as `Send my boss the numbers`.
    is_set = stated or _is_worded_as_rule(text) or (is_rule and _PACK.fits("manner", text))
    is_once = not is_set and _PACK.fits("errand", text) and not _PACK.fits("lasting", text)
    another = _PACK.match("another", text)
    who = frozenset[str]()
    if another is not None:
        who = frozenset([root((another[1]["who"] or another[1]["they"]).lower())])
    visible = folded(text).text
    is_by_user = stated or is_rule or _PACK.fits("errand", text) or _BY_USER.search(text) is not None
    return Evidence(visible, wording(visible), is_lasting=not is_once, is_by_user=is_by_user, who=who)


def _is_worded_as_rule(text: str) -> bool:
    return BUILT_IN.pack("constraints").fits("standing", text)


def _states(text: str) -> bool:
    """Tell whether what stands ahead of a question states something that is not for now."""
    if _NOW.search(text):
        return False
    return not _PACK.fits("looking", text) and not _PACK.fits("errand", text)


def _agreed(asked: str) -> Iterator[Evidence]:
    """Yield the question that a yes agrees to, when there is exactly one and it is about the user."""
    if not asked or any(map(is_invisible, asked)):
        return
    questions = [part for part in sentences(asked) if part.rstrip("\"'”’)*_ ").endswith("?")]
    if len(questions) != 1 or asked.rstrip().rstrip("\"'”’)*_ ")[-1:] != "?":
        return
    question = questions[0].replace("’", "'")
    if len(question) > _LONGEST_QUESTION or _PACK.fits("compound", question) or not _PACK.fits("about_user", question):
        return
    is_once = _PACK.fits("offer", question) and not _PACK.fits("lasting", question)
    visible = folded(question).text
    yield Evidence(visible, wording(visible), is_lasting=not is_once)


def _support(part: str, evidence: Sequence[Evidence], today: date) -> bool | None:
    """Return whether what shows a sentence of a note is lasting; None when nothing shows it."""
    if (whole := _by_one(part, evidence, today)) is not None:
        return whole
    pieces = [piece for piece in _PART.split(part) if piece and piece.strip(" .!?")]
    if len(pieces) < 2 or any(not wording(piece).words for piece in pieces):
        return None
    found = [_by_one(piece, evidence, today) for piece in pieces]
    return None if any(one is None for one in found) else all(found)


def _by_one(part: str, evidence: Sequence[Evidence], today: date) -> bool | None:
    note = wording(_DATE.sub(" ", part))
    lowered = frozenset(word.lower() for word in _WORD.findall(part))
    days = _DATE.findall(part)
    shown = [
        one.is_lasting
        for one in evidence
        if _has_words(note, one)
        and (not _PAST.search(one.text) or _OF_THE_PAST.search(part))
        and (one.is_by_user or not _WANTS.search(part))
        and (one.is_lasting or not _STATE.search(part) or _OF_SELF.search(one.text))
        and (lowered.isdisjoint(_PACK.words["strong"]) or _is_strong(one))
        and (not one.who or any(is_same(name, word) for name in one.who for word in note.words))
        and all(_names_day(one.text, day, today) for day in days)
        and (note.words or days)
    ]
    return any(shown) if shown else None


def _has_words(note: Wording, evidence: Evidence) -> bool:
    """Tell whether a sentence has all words of a note, each denied as there."""
    own = evidence.wording
    # What the sentence only denies shows no word of the note either.
    denied = own.denied - own.affirmed
    spoken = frozenset(root(word.lower()) for word in _WORD.findall(evidence.text)) - denied
    has_content = False
    for word, is_denied in note.signed:
        if (word, is_denied) in own.signed:
            has_content = True
            continue
        is_name = word in note.names or word[0].isdigit()
        if not is_name and any(
            is_denied == other_denied and is_same(word, other) for other, other_denied in own.signed
        ):
            has_content = True
            continue
        if is_name or not (word in _frame() or (not is_denied and any(is_same(word, other) for other in spoken))):
            return False
    return has_content or not note.signed


def _is_strong(evidence: Evidence) -> bool:
    """Tell whether a sentence says `always` in some way."""
    spoken = {word.lower() for word in _WORD.findall(evidence.text)}
    return bool(spoken & (_PACK.words["strong"] | _PACK.words["weak"])) or _PACK.fits("lasting", evidence.text)


def _names_day(text: str, day: str, today: date) -> bool:
    """Tell whether a sentence names a day of a note, which is written as an ISO date there."""
    spans = [mention.span for prefer in ("future", "past") for mention in dates_in(text, today, prefer=prefer)]
    return any(span is not None and span.holds(day) for span in spans)


@cache
def _frame() -> frozenset[str]:
    return frozenset(map(root, _PACK.words["frame"]))


@cache
def _groups() -> dict[str, frozenset[int]]:
    groups: dict[str, frozenset[int]] = {}
    for number, line in enumerate(sorted(_PACK.words["same"])):
        for word in line.split():
            groups[root(word)] = groups.get(root(word), frozenset()) | {number}
    return groups


@cache
def is_same(one: str, other: str) -> bool:
    """Tell whether two roots are forms of one word, or words for the same."""
    if one == other:
        return True
    if _groups().get(one, frozenset()) & _groups().get(other, frozenset()):
        return True
    length = same_start(one, other)
    rest = {one[length:], other[length:]} - {""}
    return length >= _SHORTEST_STEM and rest <= _ENDINGS


def _together(one: Wording, other: Wording) -> Wording:
    return Wording(
        signed=(*one.signed, *other.signed),
        numbers=tuple(sorted((*one.numbers, *other.numbers))),
        is_directed=one.is_directed or other.is_directed,
        particles=one.particles | other.particles,
        names=one.names | other.names,
    )


def _share(note: Wording, other: Wording) -> float:
    """Return the share of a note's content words that another text has, denied or not as in the note."""
    wanted, found = frozenset(note.signed), frozenset(other.signed)
    return len(wanted & found) / len(wanted) if wanted else 0.0
