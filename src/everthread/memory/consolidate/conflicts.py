"""Tell whether a newer note takes the place of an older one: only when both are about one subject."""

import re
from typing import Literal

from everthread.memory.consolidate.claims import LONGEST_READ, Claim, claims, is_of_many
from everthread.memory.text.wording import SLACK, are_opposed, change_words, is_change, root, unframed, wording
from everthread.state.notes import Note

__all__ = ["Relation", "relation"]

Relation = Literal["replaces", "doubt"]

_FEWEST = 2
"""Content words that two notes share, at the least, before their numbers are compared."""

_PEOPLE = re.compile(
    r"\b(?:wife|husband|spouse|partner|fianc[eé]e?|girlfriend|boyfriend|son|daughter|child|children|kid|baby|mother"
    r"|mom|mum|father|dad|parent|sister|brother|grand\w+|boss|manager|colleague|assistant|friend|dog|cat)s?\b",
    re.IGNORECASE,
)
"""Whom a note may be about beside the user."""

_KINDS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(pattern, re.IGNORECASE))
    for name, pattern in (
        (
            "money",
            r"[$€£]\s?\d[\d,.]{0,14}\s?[km]?|(?<![\d,.])\d[\d,.]{0,14}\s?(?:dollars?|euros?|usd|eur|gbp|pounds?)\b",
        ),
        ("percent", r"(?<![\d.])\d[\d.]{0,8}\s?(?:%|percent\b)"),
        ("clock", r"\b\d{1,2}(?::\d{2})?\s?[ap]\.?m\b|\b\d{1,2}:\d{2}\b"),
        (
            "date",
            r"\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|sept|oct|nov|dec)[a-z]*\.?\s+\d{1,2}\b|\b\d{4}-\d{2}-\d{2}\b"
            r"|\b\d{1,2}(?:st|nd|rd|th)?\s+(?:of\s+)?(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\b",
        ),
    )
)
_NEW = re.compile(r"\bnew\b", re.IGNORECASE)

_SWITCH = re.compile(
    r"\b(?:now|instead|from now on|no longer|these days|switch(?:ed|es)? to|changed to)\b", re.IGNORECASE
)
"""Wording of a change that leaves no room for both."""

_GONE = re.compile(r"\bno longer\b|(?:\bnot\b|n't\b|\bno\b).*\bany ?more\b|\bstopped\b", re.IGNORECASE)
"""Wording that ends something."""

_EVENT = re.compile(
    r"^(?:(?:the )?user |i )?(?:has |have )?(?:already |once |last |just )?"
    r"(?:visited|went|been|stayed|flew|travell?ed|attended|bought"
    r"|paid|spent|met|saw|took|reported|opened|booked|ordered|lived|worked|studied|missed|lost|called)\b",
    re.IGNORECASE,
)
"""What happened once: it may have happened again."""

_EXCHANGE = re.compile(
    r"^(?:(?:the )?user |i )?(?:has |have )?(?:recently |just |now )?"
    r"(?:(?:switched|changed|moved|converted) (?:over )?from"
    r"|replaced|swapped) (?P<former>.{2,40}?) (?:to|with|by|for) (?P<value>.+)$",
    re.IGNORECASE,
)
"""`Has switched from Visa to Amex` says what it ends, and nothing of what it is about."""

_CASE = re.compile(
    r"\b(?:at|on|in|for|with|when|whenever|during|while|because|before|after|near|from|to|until|unless|if|by)\b",
    re.IGNORECASE,
)
"""Where a case begins that a wish is for."""

_LONGEST_VALUE = 3
"""Content words of a value that replaces another one in the same sentence."""

_NEAR = 7
"""Words on each side of an amount that tell what it is an amount of."""

_COUNT = re.compile(r"\b(\d[\d,.]{0,14})[ -](?!percent|dollar|euro|[ap]\.?m\b)([a-z]{3,})", re.IGNORECASE)


def relation(old: Note, new: Note) -> Relation | None:
    """Say how a newer note stands to an older one that is not its twin.

    Returns:
        `replaces` when both name the same subject and differ in its value; `doubt` when they may; None
        when they have nothing to do with each other, or both can hold.
    """
    if max(len(old.text), len(new.text)) > LONGEST_READ or not _can_meet(old, new):
        return None
    if _is_reversed(old.text, new.text):
        return "replaces"
    subjects = [{claim.subject for claim in _claims(note)} for note in (old, new)]
    if all(subjects) and not subjects[0] & subjects[1]:
        return None  # both say what they are about, and it is not the same
    found = [_compared(one, other) for one in _claims(old) for other in _claims(new)]
    if "replaces" in found:
        return "replaces"
    return (
        _by_numbers(old.text, new.text)
        or _by_frame(old.text, new.text)
        or _by_exchange(old.text, new.text)
        or ("doubt" if "doubt" in found else None)
    )


def _can_meet(old: Note, new: Note) -> bool:
    """Tell whether two notes are about the same person and name a common subject, or share a word."""
    if _person(old.text) != _person(new.text):
        return False
    if old.subject and new.subject and old.subject == new.subject:
        return True
    return bool(wording(old.text).words & wording(new.text).words) or any(
        one.subject == other.subject for one in _claims(old) for other in _claims(new)
    )


def _person(text: str) -> frozenset[str]:
    return frozenset(root(found.group().lower()) for found in _PEOPLE.finditer(text))


def _claims(note: Note) -> tuple[Claim, ...]:
    return claims(note.text, note.subject)


def _compared(old: Claim, new: Claim) -> Relation | None:
    if old.subject != new.subject or old.when != new.when:
        return None
    if old.excluded & new.value or old.value & new.excluded:
        return "replaces"
    closed = any(word.endswith("?") for word in old.subject)
    if not old.value or not new.value or old.value == new.value or (closed and old.value & new.value):
        return None
    return "replaces" if new.is_change or (old.is_certain and new.is_certain) else "doubt"


def _is_reversed(old: str, new: str) -> bool:
    """Tell whether one text denies just what the other one affirms."""
    first, second = wording(old), wording(new)
    if not first.words or first.numbers != second.numbers or set(first.signed) == set(second.signed):
        return False
    if first.words - SLACK == second.words - SLACK:
        return bool((first.affirmed & second.denied or first.denied & second.affirmed) - SLACK)
    if not _GONE.search(new) or not first.affirmed or not second.denied:
        return False
    # `No longer eats any meat` ends `eats meat`, and says a little more; it also ends `eats meat on Sundays`.
    head = wording(_CASE.split(old, maxsplit=1)[0])
    return first.affirmed <= (second.denied | second.affirmed) or head.affirmed == second.words - SLACK


def _by_frame(old: str, new: str) -> Relation | None:
    """Compare short texts that differ at one place, when the newer one tells of a change: `stays at … now`."""
    if is_of_many(old) or is_of_many(new) or not _SWITCH.search(unframed(new)):
        return None
    switch = frozenset(word for found in _SWITCH.finditer(unframed(new)) for word in wording(found.group()).words)
    first, second = list(wording(old).signed), [one for one in wording(new).signed if one[0] not in switch]
    frame = min(len(first), len(second))
    ahead = next((place for place in range(frame) if first[place] != second[place]), frame)
    behind = next((place for place in range(frame - ahead) if first[-1 - place] != second[-1 - place]), frame - ahead)
    longest = max(len(first), len(second)) - ahead - behind
    is_one_place = 0 < longest <= _LONGEST_VALUE and frame > ahead + behind > 0
    return "replaces" if is_one_place and not are_opposed(wording(old), wording(new)) else None


def _by_exchange(old: str, new: str) -> Relation | None:
    """Tell whether a text names as former what an older one says in a word or two more: `pays with Visa`."""
    found = _EXCHANGE.match(unframed(new))
    if found is None or is_of_many(old) or wording(old).denied:
        return None
    former = wording(found["former"]).words
    if not former or wording(found["former"]).numbers or not former <= wording(old).words:
        return None
    if len(wording(old).words - former) > 1:
        return None
    return "doubt" if _CASE.search(found["value"]) else "replaces"


def _by_numbers(old: str, new: str) -> Relation | None:
    """Compare texts that differ in a number, an amount, a time or a date."""
    first, second = wording(old), wording(new)
    if not first.numbers or not second.numbers or first.numbers == second.numbers or are_opposed(first, second):
        return None
    if _EVENT.match(unframed(old)) and _EVENT.match(unframed(new)) and not is_change(unframed(new)):
        return None
    digits = frozenset((*first.numbers, *second.numbers))
    shared = (first.words & second.words) - digits
    rest = (first.words ^ second.words) - digits - SLACK - _change_words(old) - _change_words(new)
    if shared and not rest and (first.denied - digits) == (second.denied - digits):
        is_same_thing = len(shared) >= _FEWEST or _differ_in_kind(old, new) or is_change(unframed(new))
        return "replaces" if is_same_thing else "doubt"
    return _by_measures(old, new)


def _by_measures(old: str, new: str) -> Relation | None:
    """Compare the words around the amounts of two texts that say more than one thing."""
    most = 0
    for _, pattern in _KINDS:
        before, after = _measures(old, pattern), _measures(new, pattern, changed=True)
        former = _former(new, pattern)
        if before.keys() & (after.keys() - former) or not former <= before.keys():
            continue  # an amount that both name has not changed, and `from 5 to 7` changes a 5 only
        around = [before[one] & after[two] for one in before for two in after]
        most = max([most, *map(len, around)])
    return "replaces" if most > _FEWEST else "doubt" if most == _FEWEST else None


def _former(text: str, pattern: re.Pattern[str]) -> frozenset[str]:
    """Return the amounts that a text calls former, as in `from $50 to $60`."""
    found = pattern.finditer(text)
    return frozenset(
        _plain(one.group()) for one in found if re.search(r"\bfrom\s+$", text[: one.start()], re.IGNORECASE)
    )


def _measures(text: str, pattern: re.Pattern[str], *, changed: bool = False) -> dict[str, frozenset[str]]:
    """Return the amounts of one kind in a text, each with the content words around it.

    Args:
        text: what is read.
        pattern: what an amount looks like.
        changed: leave out the words of an amount that no wording ahead of it calls new or changed.
    """
    found = {}
    for match in pattern.finditer(text):
        before, after = text[: match.start()].split()[-_NEAR:], text[match.end() :].split()[:_NEAR]
        around = " ".join((*before, *after))
        is_told = not changed or is_change(" ".join(before)) or _NEW.search(" ".join(before))
        words = wording(around).words - _change_words(text) if is_told else frozenset()
        found[_plain(match.group())] = frozenset(word for word in words if not word[0].isdigit())
    return found


def _change_words(text: str) -> frozenset[str]:
    return change_words(text) | {"new"}


def _differ_in_kind(old: str, new: str) -> bool:
    """Tell whether both name an amount of one kind, and none of them is the same."""
    for _, pattern in _KINDS:
        before = {_plain(found.group()) for found in pattern.finditer(old)}
        after = {_plain(found.group()) for found in pattern.finditer(new)}
        if before and after and not before & after:
            return True
    counted = {unit.lower(): number for number, unit in _COUNT.findall(old)}
    return any(counted.get(unit.lower(), number) != number for number, unit in _COUNT.findall(new))


def _plain(text: str) -> str:
    return "".join(sign for sign in text.lower() if sign.isalnum())
