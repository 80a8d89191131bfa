"""Check a text: every reading, every detector, one verdict."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from everthread.memory.guard.verdict import ALLOW, Category, Finding, Span, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from everthread.memory.guard.folding import View

    Detector = Callable[[View], Iterable[Finding]]

logger = logging.getLogger(__name__)

_LONGEST = 20_000
"""Characters; a longer text is no note and is refused unread: the worst text of this length takes about a second."""
_PART = 2_000
_OVERLAP = 400
"""Characters; a long text is read in parts that overlap, so that the work grows with its length only."""

_RANK: dict[str, int] = {
    category: rank
    for rank, category in enumerate(
        (
            "card", "iban", "ssn", "national_id", "passport", "secret", "auth_code", "system_rule", "policy_override",
            "exfil_link", "instruction_payload", "dob", "booking_ref", "account_number", "email", "address", "phone",
        )
    )
}  # fmt: skip
"""Which category names a text with several findings: what does the most harm, and the surest first."""


def check(text: str, *, redact: Collection[Category] = ()) -> Verdict:
    """Decide on one text, such as a candidate note.

    Args:
        text: as it would be stored or shown.
        redact: categories to cut out instead of refusing the text, such as `phone` and `email`. The verdict is
            `redact` when the text has only such findings, in plain sight; see `redacted`.

    Returns:
        The verdict. It never raises: a text that the guard cannot judge is blocked as `unreadable`, so a failure
        costs the note and never the turn.
    """
    try:
        return _judge(text, frozenset(redact))
    except Exception as error:  # noqa: BLE001 - a guard that fails must fail closed, whatever the reason
        # Neither the text nor the message of the error, which may quote it.
        logger.warning("the guard failed with %s; the text is blocked", type(error).__name__)
        return Verdict("block", "unreadable", type(error).__name__, (0, len(text) if isinstance(text, str) else 0))


@lru_cache(maxsize=4_096)
def is_safe(text: str) -> bool:
    """Tell whether a text may be shown as it is; remembered, so that notes injected at every turn are read once.

    Args:
        text: of a note that is about to be injected or consolidated.
    """
    return check(text).allowed


def redacted(text: str, verdict: Verdict) -> str:
    """Return a text with what was found replaced by the name of its category, such as `[phone]`.

    Args:
        text: the text that `check` was given.
        verdict: a verdict `redact` on it.
    """
    for finding in sorted(verdict.findings, key=lambda found: found.span, reverse=True):
        start, end = finding.span
        text = f"{text[:start]}[{finding.category}]{text[end:]}"
    return text


def warm_up() -> None:
    """Load everything that the first checks load one by one: patterns, number plans, check digits, token shapes."""
    from everthread.memory.guard.contacts import is_possible
    from everthread.memory.guard.credentials import vendors
    from everthread.memory.guard.identifiers import load

    check("warm up: call +44 20 7946 0000")
    is_possible("+44 20 7946 0000")
    vendors()
    load()


@cache
def _detectors() -> tuple[tuple[Detector, ...], tuple[Detector, ...]]:
    """Return the detectors for values and those for wording; their patterns are compiled at the first check."""
    from everthread.memory.guard.attacks import attacks
    from everthread.memory.guard.contacts import contacts
    from everthread.memory.guard.credentials import credentials
    from everthread.memory.guard.cues import cues
    from everthread.memory.guard.identifiers import identifiers
    from everthread.memory.guard.weighing import weighed

    return (identifiers, credentials, contacts), (attacks, cues, weighed)


def _judge(text: str, redact: frozenset[Category]) -> Verdict:
    from everthread.memory.guard.folding import folded
    from everthread.memory.guard.views import hidden, readings

    if len(text) > _LONGEST:
        return Verdict("block", "unreadable", "length", (0, len(text)))
    plain: list[Finding] = []
    covert: list[Finding] = []
    for offset in range(0, max(1, len(text) - _OVERLAP), _PART - _OVERLAP):
        part = text[offset : offset + _PART]
        if not part.isascii() and len(folded(part).text) > 2 * _PART:
            # Ligatures that stand for a sentence each: nobody writes so, and reading it takes too long.
            return Verdict("block", "unreadable", "length", (offset, offset + len(part)))
        for place, view in enumerate(readings(part)):
            seen = [_moved(finding, offset) for finding in _findings(view)]
            if seen and not {finding.category for finding in seen} <= redact:
                return _blocked(seen)
            (covert if place else plain).extend(seen)
        if len(hidden(part)) > 3:
            return Verdict("block", "system_rule", "hidden text", (offset, offset + len(part)))
    if not plain and not covert:
        return ALLOW
    kept = _apart(plain)
    if not plain or not all(_is_within(finding.span, kept) for finding in covert):
        return _blocked([*plain, *covert])
    verdict = Verdict("redact", kept[0].category, kept[0].rule, kept[0].span, kept)
    # What is left must pass on its own: a detector may stop at the first of several.
    return verdict if _judge(redacted(text, verdict), frozenset()).allowed else _blocked(plain)


def _is_within(span: Span, found: tuple[Finding, ...]) -> bool:
    return any(finding.span[0] <= span[0] and span[1] <= finding.span[1] for finding in found)


def _findings(view: View) -> Iterator[Finding]:
    values, wording = _detectors()
    for detector in wording if view.is_prose else (*values, *wording):
        yield from detector(view)


def _blocked(found: list[Finding]) -> Verdict:
    ranked = sorted(found, key=lambda finding: _RANK.get(finding.category, len(_RANK)))
    return Verdict("block", ranked[0].category, ranked[0].rule, ranked[0].span, tuple(ranked))


def _moved(finding: Finding, offset: int) -> Finding:
    span: Span = (finding.span[0] + offset, finding.span[1] + offset)
    return Finding(finding.category, finding.rule, span) if offset else finding


def _apart(found: list[Finding]) -> tuple[Finding, ...]:
    """Return findings that do not overlap, the first one of each place."""
    kept: list[Finding] = []
    for finding in sorted(found, key=lambda one: (one.span[0], -one.span[1])):
        if not kept or finding.span[0] >= kept[-1].span[1]:
            kept.append(finding)
    return tuple(kept)
