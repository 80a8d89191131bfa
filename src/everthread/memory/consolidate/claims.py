"""What a note claims: a value of a subject, under conditions. The patterns are in `rules/consolidate.yaml`.

Only what can have one value at a time is a claim. `Likes sushi` claims nothing: who likes sushi may like pizza too.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache

from everthread.memory.rules import BUILT_IN
from everthread.memory.subjects import SUBJECTS, Subject, named, value_of
from everthread.memory.text.wording import SLACK, change_words, is_change, root, unframed, wording

LONGEST_READ = 1_000
"""Characters of a note that is read for what it claims; a longer one is no note, and some patterns would take long."""

_NONE: frozenset[str] = frozenset()
_PERIODS = {"nightly": "night", "daily": "day", "weekly": "week", "monthly": "month", "yearly": "year"}


@dataclass(frozen=True)
class Claim:
    """One value of one subject."""

    subject: frozenset[str]
    """What it is about, such as `hotel` and `area`; two claims conflict only when these are the same.

    A subject of the list in `subjects` ends with a question mark, such as `seat?`.
    """
    value: frozenset[str]
    excluded: frozenset[str] = frozenset()
    """Values of a closed list that the note rules out."""
    conditions: frozenset[str] = frozenset()
    """Such as `long` and `flight`; empty: always."""
    is_certain: bool = True
    """The subject has one value at a time; else a difference is marked rather than decided."""
    is_change: bool = False
    """The wording says that something changed, so that the other claim need not be certain."""


def cue(name: str) -> re.Pattern[str]:
    """Return a pattern of `rules/consolidate.yaml` by its name."""
    return BUILT_IN.pack("consolidate").pattern(name)


@lru_cache(maxsize=8192)
def claims(text: str, subject: str = "") -> tuple[Claim, ...]:
    """Read the claims of a note.

    Args:
        text: what the note says.
        subject: what the note is about, when that is known; it stands beside what the wording tells.
    """
    if len(text) > LONGEST_READ:
        return ()
    plain = " ".join(unframed(text).replace("’", "'").split())
    if keyed := cue("keyed").match(plain):
        read = _of_key(keyed["subject"], keyed["value"])
    else:
        # An amount is read with what it is for; the form of the sentence would tell no more than `the budget`.
        read = [*_of_closed_lists(plain), *_of_states(plain), *(_of_limits(plain) or _of_form(plain))]
    if not read and subject and not is_of_many(plain):
        read = [_of_given_subject(plain, subject)]
    has_changed = is_change(plain)
    return tuple(
        replace(claim, is_change=has_changed) for claim in read if claim.subject and (claim.value or claim.excluded)
    )


def is_of_many(text: str) -> bool:
    """Tell whether a text says what one can have many of, such as likes, allergies and languages."""
    return cue("of-many").search(text) is not None


def _of_form(plain: str) -> list[Claim]:
    """Read sentences that name a subject and its value: `prefers ten for the number of guests`."""
    match = None if is_of_many(plain) else BUILT_IN.pack("consolidate").match("form", plain)
    if match is None:
        return []
    rule, parts = match
    subject = _without_former(parts["subject"])
    if rule.values["needs"] == "attribute" and not _ends_with(subject, _roots("attributes")):
        return []
    if rule.values["needs"] == "property" and not _subject(subject) & _roots("attributes", "holders"):
        return []
    return _of_named_subject(subject, parts["value"])


def _of_key(subject: str, value: str) -> list[Claim]:
    """Return what a text claims that begins with what it is about: `hotel area: north`.

    Only a property has one value, and no value is ruled out for good: there may be many notes under `allergy:`, `rule:`
    or `food: no …`.
    """
    if is_of_many(subject):
        return []
    words = _subject(subject)
    named_words = words - _roots("general")
    is_property = bool(named_words & _roots("attributes", "attributes_elsewhere", "holders"))
    has_one = cue("answer").search(value) or (is_property and not wording(value).denied)
    rest = value
    for kind in ("placed", "timed"):
        rest = cue(kind).sub("", rest) if words & _roots(kind) else rest
    # What follows the value is when it holds; `in the north` alone is the value, and `in Berlin` a part of an address.
    condition = cue("condition").search(rest, 1)
    conditions = wording(condition[1]).words - SLACK if condition else _NONE
    return [
        replace(claim, conditions=conditions, is_certain=bool(has_one) or claim.subject != words)
        for claim in _of_named_subject(subject, value)
    ]


def _of_named_subject(subject: str, value: str) -> list[Claim]:
    """Return what a sentence claims that names its subject; `seat: aisle` claims what `prefers aisle seats` does."""
    words = _subject(subject)
    read = [Claim(words, _value(value))]
    if name := named(words):
        choice = value_of(name, value) if SUBJECTS[name].choices else ""
        if choice or not SUBJECTS[name].choices:
            read.append(Claim(frozenset({f"{name}?"}), frozenset({choice}) if choice else _value(value)))
    return read


def _of_given_subject(plain: str, subject: str) -> Claim:
    about = wording(subject).words or frozenset({subject})
    value = wording(cue("condition").sub("", plain) or plain).affirmed - about - _roots("general")
    return Claim(about, value, conditions=_conditions(plain), is_certain=False)


def _of_closed_lists(plain: str) -> Iterator[Claim]:
    """Read what is said of subjects with a closed list of values."""
    read, is_weak = wording(plain), is_of_many(plain)
    # `From coffee to tea` rules coffee out, as does `not coffee`.
    former = _words_of(match.group() for match in cue("former").finditer(plain)) if is_change(plain) else _NONE
    for name, subject in SUBJECTS.items():
        choices = list(subject.values_in(plain))
        if not choices or not (subject.has_cue(plain) or _says_only(plain, [words for _, words in choices])):
            continue
        excluded = frozenset(value for value, words in choices if wording(words).words & (read.denied | former))
        value = frozenset(value for value, _ in choices) - excluded
        if excluded and not value and not is_weak and len(choices) > 2:
            continue
        things = frozenset(map(root, subject.things_in(plain)))
        conditions = _conditions(plain, subject) - things
        yield Claim(frozenset({f"{name}?"}) | things, value, excluded, conditions, subject.is_single and not is_weak)


def _of_states(plain: str) -> Iterator[Claim]:
    """Read where someone lives, works and flies from."""
    if wording(plain).denied:
        return
    for rule in BUILT_IN.pack("consolidate").sections["state"]:
        if match := rule.match(plain):
            value = _value(cue("condition").sub("", match[1]) or match[1])
            yield Claim(frozenset({f"{rule.values['subject']}?"}), value)


def _of_limits(plain: str) -> list[Claim]:
    """Read what may be spent, on what, and for how long: `at most €150 a night` and `can spend 700`."""
    if not cue("capped").search(plain):
        return []
    current = cue("former").sub("", plain)
    amounts = [match["one"] or match["two"] or match["three"] for match in cue("limit").finditer(current)]
    if len(amounts) != 1:
        return []
    about = {root(match.group().lower()) for match in cue("bought").finditer(current)}
    if unit := cue("unit").search(current):
        period = (unit["unit"] or _PERIODS[unit["adverb"].lower()]).lower()
        about = (about - _roots("lodging") if period == "night" else about) | {"person" if period == "head" else period}
    occasions = _words_of(match[1] for match in cue("for-what").finditer(current.replace(amounts[0], " ", 1)))
    conditions = frozenset(word for word in occasions if not word[0].isdigit()) - about - _roots("lodging") - SLACK
    return [Claim(frozenset({"budget?", *about}), frozenset({_number(amounts[0])}), conditions=conditions)]


def _number(text: str) -> str:
    plain = text.lower().rstrip(".,")
    digits = re.sub(r"[.,](?=\d{3}(?:\D|$))", "", plain.rstrip("k"))
    return f"{digits}000" if plain.endswith("k") and digits.isdigit() else digits


def _says_only(plain: str, words: Sequence[str]) -> bool:
    """Tell whether a text says nothing beside some words: `Window, please.`"""
    return not wording(plain).words - wording(" ".join(words)).words - change_words(plain) - SLACK


def _without_former(subject: str) -> str:
    """Cut the former value off: `the budget from $50` is about the budget, `the bus from location` is a name."""
    head, _, former = subject.partition(" from ")
    return head if former and _ends_with(head, _roots("attributes", "holders")) else subject


def _ends_with(text: str, roots: frozenset[str]) -> bool:
    last = wording(text).signed[-1:]
    return bool(last) and last[0][0] in roots


def _subject(text: str) -> frozenset[str]:
    # Every word counts but the emptiest: `check in date` and `check out date` are two subjects.
    words = frozenset(map(root, re.findall(r"\w+", text.lower()))) - _roots("empty")
    return words - _roots("general") or words


def _value(text: str) -> frozenset[str]:
    signed = frozenset(f"-{word}" if is_denied else word for word, is_denied in wording(text).signed)
    return signed or frozenset(text.lower().split())


def _conditions(plain: str, subject: Subject | None = None) -> frozenset[str]:
    """Return the words of the conditions under which a note holds.

    Args:
        plain: the note.
        subject: what it is about: `with a window seat` and `in economy` hold a value of it and no condition, but
            what follows them may be one.
    """
    match = cue("condition").search(plain)
    if match is None:
        return _NONE
    if subject is None or not any(subject.values_in(match.group())):
        return wording(match[1]).words
    phrases = [phrase.group() for phrase in cue("phrase").finditer(match.group())]
    if cue("former").search(plain) is None:
        phrases = [phrase for phrase in phrases if cue("occasion").match(phrase)]
    return _words_of(phrase for phrase in phrases if not any(subject.values_in(phrase)))


def _words_of(texts: Iterable[str]) -> frozenset[str]:
    return frozenset(word for text in texts for word in wording(text).words)


@cache
def _roots(*vocabularies: str) -> frozenset[str]:
    words = BUILT_IN.pack("consolidate").words
    return frozenset(root(word) for name in vocabularies for word in words[name])
