"""Compare notes that differ in a number, an amount, a time or a date."""

import re
from typing import Literal

from everthread.memory.consolidate.claims import cue
from everthread.memory.rules import BUILT_IN
from everthread.memory.text.wording import SLACK, are_opposed, change_words, is_change, unframed, wording

_FEWEST = 2
"""Content words that two notes share, at the least, before their numbers are compared."""

_NEAR = 7
"""Words on each side of an amount that tell what it is an amount of."""


def differ_in_number(old: str, new: str) -> Literal["replaces", "doubt"] | None:
    """Say whether a newer text gives another number for what an older one says; None when it does not."""
    first, second = wording(old), wording(new)
    if not first.numbers or not second.numbers or first.numbers == second.numbers or are_opposed(first, second):
        return None
    has_changed = is_change(unframed(new))
    if cue("event").match(unframed(old)) and cue("event").match(unframed(new)) and not has_changed:
        return None
    digits = frozenset((*first.numbers, *second.numbers))
    shared = (first.words & second.words) - digits
    rest = (first.words ^ second.words) - digits - SLACK - _news(old) - _news(new)
    if shared and not rest and first.denied - digits == second.denied - digits:
        return "replaces" if len(shared) >= _FEWEST or has_changed or _differ_in_kind(old, new) else "doubt"
    return _compared_by_amount(old, new)


def name_other_things(old: str, new: str) -> bool:
    """Tell whether texts give numbers of things with other names, as of two servers; a number alone is a value."""
    before, after = ({_letters(match.group()) for match in cue("numbered").finditer(text)} for text in (old, new))
    has_more = all(re.search(r"\d", cue("numbered").sub("", text)) for text in (old, new))
    return has_more and bool(before and after) and before.isdisjoint(after) and not is_change(unframed(new))


def _compared_by_amount(old: str, new: str) -> Literal["replaces", "doubt"] | None:
    """Compare the words around the amounts of two texts that say more than one thing."""
    most = 0
    for rule in BUILT_IN.pack("consolidate").sections["amount"]:
        before, after = _words_around(old, rule.pattern), _words_around(new, rule.pattern, is_newer=True)
        former = {
            _letters(match.group())
            for match in rule.pattern.finditer(new)
            if re.search(r"\bfrom\s+$", new[: match.start()], re.IGNORECASE)
        }
        # An amount that both name has not changed, and `from 5 to 7` changes a 5 only.
        if not before.keys() & (after.keys() - former) and former <= before.keys():
            most = max([most, *(len(one & other) for one in before.values() for other in after.values())])
    return "replaces" if most > _FEWEST else "doubt" if most == _FEWEST else None


def _words_around(text: str, amount: re.Pattern[str], *, is_newer: bool = False) -> dict[str, frozenset[str]]:
    """Return the amounts of one kind in a text, each with the content words around it.

    Args:
        text: what is read.
        amount: what an amount looks like.
        is_newer: leave out the words of an amount that no wording ahead of it calls new or changed.
    """
    amounts = {}
    for match in amount.finditer(text):
        before, after = text[: match.start()].split()[-_NEAR:], text[match.end() :].split()[:_NEAR]
        ahead = " ".join(before)
        is_told = not is_newer or is_change(ahead) or cue("new").search(ahead)
        words = wording(" ".join((*before, *after))).words - _news(text) if is_told else frozenset()
        amounts[_letters(match.group())] = frozenset(word for word in words if not word[0].isdigit())
    return amounts


def _differ_in_kind(old: str, new: str) -> bool:
    """Tell whether both name an amount of one kind, and none of them is the same."""
    for rule in BUILT_IN.pack("consolidate").sections["amount"]:
        before, after = ({_letters(match.group()) for match in rule.pattern.finditer(text)} for text in (old, new))
        if before and after and not before & after:
            return True
    numbers = {unit.lower(): number for number, unit in cue("count").findall(old)}
    return any(numbers.get(unit.lower(), number) != number for number, unit in cue("count").findall(new))


def _news(text: str) -> frozenset[str]:
    return change_words(text) | {"new"}


def _letters(text: str) -> str:
    return "".join(sign for sign in text.lower() if sign.isalnum())
