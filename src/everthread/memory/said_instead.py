"""What the user did say, where a note is not in their words: a model says it in others, or in another language.

What is kept then is a rule's reading of the user's sentence, or that sentence word for word. So, whatever a model was
talked into, nothing is kept as the user's that they did not say.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from everthread.memory.capture import kind_of
from everthread.memory.distill import Candidate, candidates, share_meaning
from everthread.memory.distill.attributes import subject_of
from everthread.memory.distill.statements import rememberable
from everthread.memory.distill.third_person import quotation
from everthread.memory.folding import folded
from everthread.memory.provenance import Said, evidence_in, is_frame, is_same
from everthread.memory.rules import BUILT_IN, Rules
from everthread.memory.text.consent import is_answer
from everthread.memory.text.constraints import constraints_in, is_for_this_time, is_lasting
from everthread.memory.text.languages import is_english, is_foreign
from everthread.memory.text.own_words import own_sentences
from everthread.memory.text.wording import wording
from everthread.memory.text.words import same_start, words

_FEWEST_WORDS = 3
"""Words of a sentence that says anything: `Great, thanks` does not."""

_FEWEST_MATCHES = 2
"""Words that an earlier message has in common with a note; in the one that is being answered a single one is enough."""

_PRONOUNS = frozenset(("he", "she", "they"))
"""Whom they stand for was said ahead of them; a quoted sentence claims no more than was said."""

_THOUSANDS = re.compile(r"(?<=\d)k\b", re.IGNORECASE)

_BETWEEN_US = re.compile(r"\b(?:i|we|me|us|my|our|you|your)\b", re.IGNORECASE)

_ONE = re.compile(r"\bone\b", re.IGNORECASE)

# What `05:00` has beside the 5; times by either clock, `3 pm` or `15:00`; and `half seven`.
_CLOCK = re.compile(r"\b0(?=\d\b)|(?<=\d):00\b")
_TIME = re.compile(r"\b([01]?\d|2[0-4])(?:(:\d\d)(?:\s?[ap]\.?m\b)?|\s?[ap]\.?m\b)", re.IGNORECASE)
_HALF_PAST = re.compile(r"\bhalf\s(?:past\s)?(\w{1,20})", re.IGNORECASE)
_NOON = 12

_LETTERS_WITH_TYPO = 6
"""Letters from which a word is still the same with one of them wrong."""

_LONGEST = 100_000
"""Characters of a message that is read."""

_LONGEST_QUOTE = 350
"""Characters of sentences that are kept as one note."""


@dataclass(frozen=True)
class _Statement:
    """A sentence of the user that says something lasting."""

    quote: str
    matches: int
    """Words, numbers and names that it has in common with the note."""
    is_standing: bool
    """It says that it is for the time to come."""


def said_instead(
    text: str, said: Sequence[Said], rules: Rules = BUILT_IN, *, is_others: bool = False
) -> tuple[Said, Candidate] | None:
    """Return what the user did say of the same, for a note that they did not say in these words; None for nothing.

    Args:
        text: the note.
        said: messages of the user, newest first; the first one is being answered.
        rules: the agent's.
        is_others: the note may be what a tool said: then only a statement with much of the note in it will do.
    """
    for one in said:
        found = [
            candidate
            for candidate in candidates(_read(one), rules=rules, is_strict=is_others)
            if share_meaning(candidate.text, text)
        ]
        if found:
            # A request may state something lasting too, in other words than the rules know.
            is_wish = found[0].scope == "session" and found[0].confidence < 1 and not is_others
            return one, (_quoted(one, text, rules, is_answered=one is said[0]) if is_wish else None) or found[0]
    for place, one in enumerate(said if not is_others else ()):
        if quoted := _quoted(one, text, rules, is_answered=not place):
            return one, quoted
    if said and not is_others and is_foreign(_read(said[0])) and is_foreign(text):
        # Endings and compounds of other languages are not known, so that one word may look like two.
        message = _read(said[0])
        stated = [one for one in candidates(message, rules=rules) if one.scope == "durable"]
        kept = {one.quote for one in rememberable(own_sentences(message))}
        rule_quotes = [] if stated else [one for one in constraints_in(message, rules) if one in kept]
        quotes = [one for one in rule_quotes if not is_for_this_time(one, rules)]
        stated += [Candidate(one, quotation(one), "durable", kind_of(one, rules), subject_of(one)) for one in quotes]
        return next(((said[0], one) for one in stated), None)
    return None


def _read(one: Said) -> str:
    """Return a message as it is, since the marks of a paste may be at either end; a file is nothing that one says."""
    return one.text if len(one.text) <= _LONGEST else ""


def _quoted(one: Said, text: str, rules: Rules, *, is_answered: bool) -> Candidate | None:
    """Return the lasting statements of a message that have words of a note, word for word; None for none."""
    message = _read(one)
    stated = _stated(message, text, is_answered=is_answered)
    # What the model has just read and found worth a note needs no word of the note if it is said to be for good.
    chosen = [one for one in stated if one.matches] or [one for one in stated if one.is_standing and is_answered]
    if not is_answered and max((sentence.matches for sentence in chosen), default=0) < _FEWEST_MATCHES:
        return None
    if _are_of_two_languages(message, text):
        # Their words cannot be compared; what was said just now is what the model has read.
        chosen = [one for one in stated if len(one.quote.split()) >= _FEWEST_WORDS] if is_answered else []
    elif not is_foreign(message) and not _says_numbers(message, text):
        return None
    quote = _together(chosen)
    return Candidate(quote, quotation(quote), "durable", kind_of(quote, rules), subject_of(quote)) if quote else None


def _are_of_two_languages(one: str, other: str) -> bool:
    return (is_foreign(one) and not is_foreign(other)) or (is_english(one) and is_foreign(other))


def _says_numbers(message: str, note: str) -> bool:
    """Tell whether a message has all numbers of a note, times of the day by either clock."""
    halves = (f"{hour}:30" for after in _HALF_PAST.findall(message) for hour in wording(after).numbers)
    said = _numbers(message).union(_on_the_dial(message), wording(message).numbers, halves)
    return _numbers(note) <= said or _on_the_dial(note) <= said


def _numbers(text: str) -> frozenset[str]:
    """Return the numbers of a text; `05:00` is 5, `6k` is 6,000, and `one` is as a rule none."""
    return frozenset(wording(_CLOCK.sub("", _THOUSANDS.sub("000", _ONE.sub("", text)))).numbers)


def _on_the_dial(text: str) -> frozenset[str]:
    """Return the numbers of a text, times as a clock with twelve hours shows them: `15:00` and `3 pm` are 3."""
    return _numbers(_TIME.sub(lambda time: f"{int(time[1]) % _NOON or _NOON}{time[2] or ''} ", text))


def _stated(message: str, note: str, *, is_answered: bool) -> list[_Statement]:
    """Return the sentences of a message that state something lasting; of somebody else only if the note names them.

    Args:
        message: the user's.
        note: what its words are compared with.
        is_answered: the note was made while this message is being answered: common words tell as well.
    """
    found = []
    noted = _words(folded(note).text)
    telling = [word for word in noted if is_answered or not is_frame(word) or word[0].isdigit()]
    for sentence in rememberable(own_sentences(message)):
        evidence = evidence_in(sentence)
        if evidence is None or not evidence.is_lasting or is_answer(sentence.bare) or sentence.has_quotation:
            continue
        who = evidence.who - _PRONOUNS
        if who and not any(is_same(name, word) for name in who for word in noted):
            continue
        spoken = _words(evidence.text)
        matches = sum(any(is_same(word, other) or _is_typo(word, other) for other in spoken) for word in telling)
        is_users = _BETWEEN_US.search(sentence.bare) is not None or is_foreign(sentence.bare)
        is_standing = is_users and is_lasting(sentence.bare) and len(words(sentence.bare)) >= _FEWEST_WORDS
        found.append(_Statement(sentence.quote, matches, is_standing))
    return found


def _words(text: str) -> set[str]:
    """Return the roots of the content words of a text; of scripts without spaces, pairs of characters."""
    return {part for word in wording(text).words for part in ([word] if word.isascii() else words(word))}


def _is_typo(one: str, other: str) -> bool:
    """Tell whether two words differ in one letter, which one of them may lack."""
    same = same_start(one, other)
    if not same or one[0].isdigit() or min(len(one), len(other)) < _LETTERS_WITH_TYPO:
        return False
    rest, others = one[same:], other[same:]
    return rest[1:] == others[1:] or rest[1:] == others or rest == others[1:]


def _together(statements: Sequence[_Statement]) -> str:
    """Return the sentences that fit into one note, those that say most of the same first, in their own order."""
    size, chosen = 0, set[int]()
    for place in sorted(range(len(statements)), key=lambda place: -statements[place].matches):
        size += len(statements[place].quote) + 1
        if size <= _LONGEST_QUOTE:
            chosen.add(place)
    return " ".join(" ".join(statements[place].quote.split()) for place in sorted(chosen))
