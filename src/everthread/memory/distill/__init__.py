"""Distil notes from the user's own words by rules; no model is asked.

A statement is told from a request, a quotation, a supposition, and from what others want; see
docs/memory.md for what the rules know and what they miss.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate

from everthread.memory.capture import kind_of
from everthread.memory.distill.answers import answered
from everthread.memory.distill.attributes import attributes, subject_of
from everthread.memory.distill.statements import (
    CONFIDENCE,
    Candidate,
    Statement,
    asked_to_remember,
    cue,
    is_hypothetical,
    is_of_another,
    is_own,
    rememberable,
    sets_default,
    statements,
    wishes,
)
from everthread.memory.distill.third_person import keywords, quotation, third_person
from everthread.memory.rules import BUILT_IN, Rules
from everthread.memory.text.constraints import is_for_this_time
from everthread.memory.text.cues import is_of_a_case, weight
from everthread.memory.text.own_words import Sentence, is_reported, own_sentences
from everthread.memory.text.wording import wording
from everthread.memory.text.words import words
from everthread.state.notes import Note, NoteKind, NoteScope

__all__ = ["MOST_PER_MESSAGE", "Candidate", "candidates", "covers", "keywords", "share_meaning"]

MOST_PER_MESSAGE = 60
"""Notes from one message: a long list of allergies fits, a pasted page of wishes is no memory."""

LONGEST_SENTENCE = 1_000
"""Characters above which a line is a paste, not a sentence."""

LONGEST_MESSAGE = 12_000
"""Characters of a message that are read, half at each end: people say what they want ahead of a paste or behind it."""

_SHORTEST = 20
"""Characters that a sentence counts at the least; the time for one depends on its clauses more than on its length."""

_LONGEST_LEAD = 8
"""Words of a condition ahead of a statement that becomes part of the note."""

_WISH = 0.8
"""What a wish is worth that a request only implies; our choice."""

_TOLD = 0.5
"""What a statement is worth that is only built like one; our choice."""

_LASTING = 0.4
"""Weight from which a sentence is taken for a lasting statement. From 0 on, 77 instead of 73 of 100 statements by
strangers make a note, 6 instead of 5 of their other sentences do, and on PrefEval .93 instead of .94 is right."""

_LASTING_RULE = 2.7
"""Weight from which a rule in no known wording is kept for later sessions; our choice, on the same figures."""

_ERRANDS = BUILT_IN.pack("provenance")
"""Tells what is asked for this once; `memory.provenance`, which reads it too, stands above this package."""

_BESIDE_A_REQUEST = 7.0
"""Weight of such a statement from which it is lasting although its message asks something. Most are told to explain
what is asked, and are kept for the session: of those that PrefEval has, about half are talk of the moment."""


def candidates(
    text: str, *, question: str = "", known: Iterable[str] = (), rules: Rules = BUILT_IN, is_strict: bool = False
) -> list[Candidate]:
    """Return what a user's message says that will matter later.

    Lasting statements come as `durable`; wishes of this trip or case come as `session`. Quoted, past,
    hypothetical and other people's statements are left out, and so is text that was injected and what the user asks
    not to remember.

    Args:
        text: the message.
        question: the assistant's message ahead of it, for answers such as `Aisle.`
        known: texts of injected notes: a sentence that repeats one word for word is not learnt again.
        rules: the agent's rules.
        is_strict: only forms of speech that the rules know count, not what is only built like a statement.
    """
    read = [one for one in _readable(own_sentences(text)) if not is_reported(one)]
    own = rememberable(read)
    is_answer = question and own == read and not any(statements(one, rules) for one in own)
    if is_answer and (answer := answered(text, question)):
        return [replace(answer, quote=text.strip())]
    injected = [words(note) for note in known]
    asks = any(sentence.is_question or is_of_a_case(sentence.bare, rules) for sentence in own)
    by_text: dict[str, Candidate] = {}
    for sentence in own:
        if words(sentence.text) not in injected:
            found = _from_sentence(sentence, rules) or (
                [] if is_strict else _built_like_one(sentence, rules, asks=asks)
            )
            for candidate in found or _wished(sentence):
                by_text.setdefault(candidate.text, candidate)
    return list(by_text.values())[:MOST_PER_MESSAGE]


def _readable(sentences: Sequence[Sentence]) -> list[Sentence]:
    """Return the sentences that are read: none that is too long, and of many those at both ends."""
    short = [one for one in sentences if len(one.text) <= LONGEST_SENTENCE]
    if _fitting(short, LONGEST_MESSAGE) == len(short):
        return short
    head, tail = (_fitting(one, LONGEST_MESSAGE // 2) for one in (short, short[::-1]))
    return short[:head] + short[max(head, len(short) - tail) :]


def _fitting(sentences: Sequence[Sentence], limit: int) -> int:
    """Return how many sentences, from the first on, have at most so many characters together."""
    return bisect_right(list(accumulate(max(len(one.text), _SHORTEST) for one in sentences)), limit)


def covers(note: Note, candidate: Candidate, message_id: str) -> bool:
    """Tell whether a note, such as one that the model saved, already says what a message's candidate says."""
    return message_id in note.message_ids and share_meaning(candidate.text, note.text)


def share_meaning(one: str, other: str) -> bool:
    """Tell whether two texts have at least half of the content words of the shorter of them in common."""
    ours, theirs = wording(one).words, wording(other).words
    return bool(ours and theirs) and 2 * len(ours & theirs) >= min(len(ours), len(theirs))


def _from_sentence(sentence: Sentence, rules: Rules) -> list[Candidate]:
    """Return what is said in a form of speech that the rules know."""
    if (start := asked_to_remember(sentence)) is not None:
        return [_asked(sentence, start, rules)]
    is_real = not is_hypothetical(sentence.bare)
    if is_real and not sentence.is_question and cue("limited").match(sentence.bare):
        return [_quoted(sentence, sentence.text, "session", rules)]
    if is_real and cue("budget").search(sentence.bare):
        is_default = cue("generally").search(sentence.bare) or sets_default(sentence)
        text = quotation(_without_remarks(sentence.text, rules))
        return [Candidate(sentence.quote, text, "durable" if is_default else "session", "constraint", "budget")]
    if stated := statements(sentence, rules):
        return _stated(sentence, stated, rules)
    if _is_default(sentence):
        clause, exception = _split(sentence.text)
        return [_quoted(sentence, clause, "durable", rules), *_once(sentence, exception, rules)]
    if cue("unwanted").match(sentence.bare) and not sentence.is_question:
        subject = subject_of(sentence.text)
        return [Candidate(sentence.quote, quotation(sentence.text), "session", "preference", subject, _WISH)]
    return []


def _wished(sentence: Sentence) -> list[Candidate]:
    """Return what a request wants, which says nothing about the next one."""
    return [
        Candidate(
            sentence.quote,
            f"This time wants {'no ' if wish.is_negated else ''}{wish.phrase}.",
            "session",
            "preference",
            wish.subject,
            _WISH,
        )
        for wish in wishes(sentence)
    ]


def _built_like_one(sentence: Sentence, rules: Rules, *, asks: bool) -> list[Candidate]:
    """Return a sentence in no known form of speech that is built like a lasting statement, or a rule.

    Args:
        asks: its message asks something: the statement may be there to explain that, and holds for the session unless
            it is clearly a lasting one.
    """
    if is_hypothetical(sentence.bare) or not _tells_of_the_user(sentence, rules):
        return []
    lasting, rule = (weight(sentence.told, kind, rules) for kind in ("lasting", "rule"))
    if lasting < _LASTING and rule < _LASTING_RULE:
        return []
    scope: NoteScope = "session" if asks and max(lasting, rule) < _BESIDE_A_REQUEST else "durable"
    return [replace(_quoted(sentence, sentence.text, scope, rules), confidence=_TOLD)]


def _tells_of_the_user(sentence: Sentence, rules: Rules) -> bool:
    """Tell whether a sentence is the user's own, and of no single occasion."""
    bare, is_question = sentence.told, sentence.is_question and not sentence.is_settled
    if is_question or not is_own("", bare) or is_for_this_time(bare, rules) or is_of_a_case(bare, rules):
        return False
    if sentence.has_quotation or cue("dated").search(bare) or cue("indifferent").search(bare):
        return False
    return not _ERRANDS.fits("errand", bare) or any(_ERRANDS.fits(kind, bare) for kind in ("lasting", "manner"))


def _quoted(sentence: Sentence, clause: str, scope: NoteScope, rules: Rules) -> Candidate:
    """Return a clause as a note in the user's own words."""
    return Candidate(sentence.quote, quotation(clause), scope, kind_of(clause, rules), subject_of(clause))


def _asked(sentence: Sentence, start: int, rules: Rules) -> Candidate:
    """Keep what the user asked to have kept, whatever it is."""
    clause = sentence.text[start:]
    text = third_person(_without_remarks(clause, rules)) or quotation(sentence.text)
    is_now = is_for_this_time(clause, rules) and not sets_default(sentence)
    kinds = {one.kind for one in statements(replace(sentence, text=clause, bare=sentence.bare[start:]), rules)}
    kind: NoteKind = "constraint" if "constraint" in kinds else kind_of(clause, rules)
    return Candidate(sentence.quote, text, "session" if is_now else "durable", kind, subject_of(clause))


def _stated(sentence: Sentence, stated: Sequence[Statement], rules: Rules) -> list[Candidate]:
    """Make one note of the statements of a sentence, and a second one where a part is for this time only."""
    first = stated[0]
    clause, exception = _split(sentence.text[first.start :], has_default=cue("generally"))
    further = [one.start - first.start for one in stated[1:] if one.start - first.start < len(clause)]
    clause = _without_remarks(clause, rules, keep=max(further, default=0))
    ahead = cue("lead").search(sentence.text[: first.start].rstrip(", "))
    lead = ahead["lead"] if ahead and len(ahead["lead"].split()) <= _LONGEST_LEAD else ""
    text = third_person(clause, lead) or quotation(f"{lead}, {clause}" if lead else clause)
    kind: NoteKind = "constraint" if any(one.kind == "constraint" for one in stated) else first.kind
    if kind == "constraint" and cue("nothing").match(text):
        kind = "fact"
    is_default = sets_default(sentence) or cue("generally").search(clause)
    is_now = is_for_this_time(f"{lead} {clause}", rules) or cue("dated").search(f"{lead} {clause}")
    scope: NoteScope = "session" if is_now and not is_default else "durable"
    confidence = max(CONFIDENCE[one.manner] for one in stated)
    note = Candidate(sentence.quote, text, scope, kind, subject_of(clause), confidence)
    return [note, *_once(sentence, exception, rules)]


def _is_default(sentence: Sentence) -> bool:
    """Tell whether a request sets a default: `window seats, as a rule`, `put me on the aisle whenever you can`."""
    bare = sentence.bare
    if sentence.is_question or is_hypothetical(bare) or is_of_another("", bare) or not is_own("", bare):
        return False
    wanted = attributes(bare)
    if sets_default(sentence):
        return cue("addressed").search(bare) is not None or bool(wanted)
    if not wanted or not cue("default").search(bare):
        return False
    lead = cue("default-lead").match(bare)
    start = lead.end() if lead else 0
    return cue("order").match(bare, start) is not None or any(bare.startswith(one.phrase, start) for one in wanted)


def _once(sentence: Sentence, exception: str, rules: Rules) -> list[Candidate]:
    """Return the note of an exception from a default, which is for this time; none without one."""
    return [_quoted(sentence, exception, "session", rules)] if exception else []


def _split(text: str, *, has_default: re.Pattern[str] | None = None) -> tuple[str, str]:
    """Cut `…, but this time the window` off a default; without such words, or without a default, nothing is cut."""
    exception = cue("exception").search(text, 2)
    if exception is None or (has_default and not has_default.search(text)):
        return text, ""
    return text[: exception.start()], exception[1]


def _without_remarks(clause: str, rules: Rules, *, keep: int = 0) -> str:
    """Cut what follows a statement and is none: a question, a plan, a remark on the conversation.

    A remark that says when the statement does not hold stays: `…, but you can ignore that for funerals`.

    Args:
        clause: from the statement's subject on.
        rules: tell an exception for this time, which is no part of what lasts.
        keep: characters that are never cut, since further statements begin there.
    """
    asks = cue("asks-behind").search(clause, keep + 2)
    if asks and asks.start() > 0:
        clause = clause[: asks.start()]
    talks_on = cue("talks-on-behind").search(clause, keep + 2)
    if talks_on is None or (cue("excepts").search(talks_on.group()) and not is_for_this_time(talks_on.group(), rules)):
        return clause
    return clause[: talks_on.start()]
