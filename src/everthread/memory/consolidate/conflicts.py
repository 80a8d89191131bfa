"""Tell whether a newer note takes the place of an older one: only when both are about one subject."""

from typing import Literal

from everthread.memory.consolidate.amounts import differ_in_number, name_other_things
from everthread.memory.consolidate.claims import LONGEST_READ, Claim, claims, cue, is_of_many
from everthread.memory.rules import BUILT_IN
from everthread.memory.text.languages import is_english
from everthread.memory.text.wording import SLACK, are_opposed, root, unframed, wording
from everthread.memory.text.words import same_start
from everthread.state.notes import Note

Relation = Literal["replaces", "doubt"]

_LONGEST_VALUE = 3
"""Content words of a value that replaces another one in the same sentence."""

_SMALL = frozenset(map(root, BUILT_IN.pack("consolidate").words["small"]))


def relation(old: Note, new: Note) -> Relation | None:
    """Say how a newer note stands to an older one that does not say the same.

    Returns:
        `replaces` when both name the same subject and differ in its value; `doubt` when they may; None
        when they have nothing to do with each other, or both can hold.
    """
    if max(len(old.text), len(new.text)) > LONGEST_READ or not _can_meet(old, new):
        return None
    if _denies(old.text, new.text):
        return "replaces"
    before, after = claims(old.text, old.subject), claims(new.text, new.subject)
    if before and after and {one.subject for one in before}.isdisjoint(one.subject for one in after):
        return None  # both say what they are about, and it is not the same
    compared = {_compared(one, other) for one in before for other in after}
    found: Relation | None = (
        ("replaces" if "replaces" in compared else None)
        or differ_in_number(old.text, new.text)
        or ("replaces" if _changes_one_place(old.text, new.text) else None)
        or _exchanged(old.text, new.text)
        or ("doubt" if "doubt" in compared else None)
    )
    return "doubt" if found and name_other_things(old.text, new.text) else found


def _can_meet(old: Note, new: Note) -> bool:
    """Tell whether two notes are about the same person and name a common subject, or share a word."""
    if _person(old.text) != _person(new.text):
        return False
    if old.subject and old.subject == new.subject:
        return True
    if wording(old.text).words & wording(new.text).words:
        return True
    if cue("turkish-denial").search(f"{old.text} {new.text}"):
        return bool(_words(old.text, new.text) & _words(new.text, old.text))
    subjects = {claim.subject for claim in claims(old.text, old.subject)}
    return any(claim.subject in subjects for claim in claims(new.text, new.subject))


def _person(text: str) -> frozenset[str]:
    return frozenset(root(match.group().lower()) for match in cue("person").finditer(text))


def _compared(old: Claim, new: Claim) -> Relation | None:
    if old.subject != new.subject or old.conditions != new.conditions:
        return None
    if old.excluded & new.value or old.value & new.excluded:
        return "replaces"
    has_list = any(word.endswith("?") for word in old.subject)
    if not old.value or not new.value or old.value == new.value or (has_list and old.value & new.value):
        return None
    return "replaces" if new.is_change or (old.is_certain and new.is_certain) else "doubt"


def _denies(old: str, new: str) -> bool:
    """Tell whether one text denies just what the other one affirms, or the newer one ends what the older one says."""
    first, second = wording(old), wording(new)
    if not first.words or first.numbers != second.numbers or set(first.signed) == set(second.signed):
        return False
    if _words(old, new) == _words(new, old):
        before, after = _said(old, new), _said(new, old)
        return any((word, not is_denied) in after for word, is_denied in before)
    if not cue("gone").search(new) or not first.affirmed or not second.denied:
        return False
    # `No longer eats any meat` ends `eats meat`, and says a little more; it also ends `eats meat on Sundays`.
    head = wording(cue("case").split(old, maxsplit=1)[0])
    return first.affirmed <= second.words or head.affirmed == second.words - SLACK


def _said(text: str, other: str) -> frozenset[tuple[str, bool]]:
    """Return the words of a text that matter beside another one, each with whether it is denied.

    In English `wording` leaves small words out; elsewhere a denial often changes them: `ein Auto`, `kein Auto`.
    """
    small = SLACK if is_english(text) or is_english(other) else SLACK | _SMALL
    signed = frozenset(one for one in wording(text).signed if one[0] not in small)
    if not cue("turkish-denial").search(f"{text} {other}"):
        return signed
    return frozenset((cue("turkish-person").sub("", word), is_denied) for word, is_denied in signed)


def _words(text: str, other: str) -> frozenset[str]:
    return frozenset(word for word, _ in _said(text, other))


def _changes_one_place(old: str, new: str) -> bool:
    """Tell whether texts differ at one place only, and the newer one tells of a change: `now stays at …`."""
    switches = [match.group() for match in cue("switch").finditer(unframed(new))]
    if is_of_many(old) or is_of_many(new) or not switches:
        return False
    switch = frozenset(word for text in switches for word in wording(text).words)
    first, second = list(wording(old).signed), [one for one in wording(new).signed if one[0] not in switch]
    shorter = min(len(first), len(second))
    ahead = same_start(first, second)
    behind = same_start(first[ahead:][::-1], second[ahead:][::-1])
    changed = max(len(first), len(second)) - ahead - behind
    is_one_place = 0 < changed <= _LONGEST_VALUE and shorter > ahead + behind > 0
    return is_one_place and not are_opposed(wording(old), wording(new))


def _exchanged(old: str, new: str) -> Relation | None:
    """Compare a text that names a former value with an older one that says it in a word or two: `pays with Visa`."""
    exchange = cue("exchange").match(unframed(new))
    if exchange is None or is_of_many(old) or wording(old).denied:
        return None
    former = wording(exchange["former"])
    rest = wording(old).words - former.words
    if not former.words or former.numbers or not former.words <= wording(old).words or len(rest) > 1:
        return None
    return "doubt" if cue("case").search(exchange["value"]) else "replaces"
