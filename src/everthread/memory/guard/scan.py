"""Check a text: every reading, every detector, one verdict."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator
from functools import lru_cache

from everthread.memory.folding import View, folded
from everthread.memory.guard.verdict import ALLOW, PHRASES, Category, Finding, Span, Verdict
from everthread.memory.guard.views import hidden, readings
from everthread.memory.rules import BUILT_IN, Rules

logger = logging.getLogger(__name__)

_LONGEST = 20_000
"""Characters; a longer text is no note and is refused unread: the worst text of this length takes about a second."""
_PART = 2_000
_OVERLAP = 400
"""Characters; a long text is read in parts that overlap, so that the work grows with its length only."""
_MOST_HIDDEN = 3
"""Letters in invisible signs that may be chance."""

_RANKED = [*PHRASES]


def check(text: str, *, redact: Collection[Category] = (), rules: Rules = BUILT_IN, is_own: bool = False) -> Verdict:
    """Decide on one text, such as a candidate note.

    Args:
        text: as it would be stored or shown.
        redact: categories to cut out instead of refusing the text, such as `phone` and `email`. The verdict is
            `redact` when the text has only such findings, in plain sight; see `redacted`.
        rules: the built-in rules, or those with packs of one's own: `Rules(["mine.yaml"])`.
        is_own: the user typed it, in a short message in which nothing looks pasted (`own_words.is_typed`). How it is
            worded is their right, so it may resemble an attack; values and known attacks are looked for all the same.

    Returns:
        The verdict. It never raises: a text that the guard cannot judge is blocked as `unreadable`, so a failure
        costs the note and never the turn.
    """
    try:
        return _judge(text, frozenset(redact), rules, is_own)
    except Exception as error:  # noqa: BLE001 - a guard that fails must fail closed, whatever the reason
        # Neither the text nor the message of the error, which may quote it.
        logger.warning("the guard failed with %s; the text is blocked", type(error).__name__)
        return Verdict("block", "unreadable", type(error).__name__, (0, len(text) if isinstance(text, str) else 0))


@lru_cache(maxsize=4_096)
def is_safe(text: str, rules: Rules = BUILT_IN, *, is_own: bool = False) -> bool:
    """Tell whether a text may be shown as it is; cached, since the same notes are injected at every turn."""
    return check(text, rules=rules, is_own=is_own).allowed


def redacted(text: str, verdict: Verdict) -> str:
    """Return a text with what was found replaced by the name of its category, such as `[phone]`.

    Args:
        text: the text that `check` was given.
        verdict: a verdict `redact` on it.
    """
    for finding in sorted(verdict.findings, key=lambda finding: finding.span, reverse=True):
        start, end = finding.span
        text = f"{text[:start]}[{finding.category}]{text[end:]}"
    return text


def warm_up() -> None:
    """Load everything that the first checks load one by one: rules, number plans, check digits, token shapes."""
    from everthread.memory.guard.values import load

    check("warm up: call +44 20 7946 0000")
    load()


def _judge(text: str, redact: frozenset[Category], rules: Rules, is_own: bool) -> Verdict:
    if len(text) > _LONGEST:
        return Verdict("block", "unreadable", "length", (0, len(text)))
    # In plain sight, where findings can be cut out, or only in a reading with a disguise undone.
    plain: list[Finding] = []
    covert: list[Finding] = []
    starts = range(0, max(1, len(text) - _OVERLAP), _PART - _OVERLAP)
    parts = {offset: text[offset : offset + _PART] for offset in starts}
    for offset, part in parts.items():
        if not part.isascii() and len(folded(part).text) > 2 * _PART:
            # Ligatures that stand for a sentence each: nobody writes so, and reading it takes too long.
            return Verdict("block", "unreadable", "length", (offset, offset + len(part)))
        for number, view in enumerate(readings(part)):
            findings = [finding.moved(offset) for finding in _findings(view, rules, is_own)]
            if findings and not {finding.category for finding in findings} <= redact:
                return _blocked(findings)
            (covert if number else plain).extend(findings)
        if len(hidden(part)) > _MOST_HIDDEN:
            return Verdict("block", "system_rule", "hidden text", (offset, offset + len(part)))
    if not plain and not covert:
        # Last, since a rule says what it is.
        likely = [finding.moved(offset) for offset, part in parts.items() for finding in _likely_values(part)]
        return _blocked(likely) if likely else ALLOW
    cut = _apart(plain)
    if not plain or not all(_is_within(finding.span, cut) for finding in covert):
        return _blocked([*plain, *covert])
    verdict = Verdict("redact", cut[0].category, cut[0].rule, cut[0].span, cut)
    # What is left must pass on its own.
    return verdict if _judge(redacted(text, verdict), frozenset(), rules, is_own).allowed else _blocked(plain)


def _findings(view: View, rules: Rules, is_own: bool) -> Iterator[Finding]:
    # Imported here, since few programs that import the guard check a text and the number plans take a while to load.
    from everthread.memory.guard.values import values
    from everthread.memory.guard.wording import known_attacks, likely_attacks

    if not view.is_prose:
        yield from values(view, rules)
    yield from known_attacks(view, rules)
    if not is_own:
        yield from likely_attacks(view, rules)


def _likely_values(part: str) -> Iterator[Finding]:
    from everthread.memory.guard.wording import likely_values  # see `_findings`

    return likely_values(folded(part))


def _blocked(findings: list[Finding]) -> Verdict:
    ranked = sorted(findings, key=lambda finding: _RANKED.index(finding.category))
    return Verdict("block", ranked[0].category, ranked[0].rule, ranked[0].span, tuple(ranked))


def _is_within(span: Span, findings: tuple[Finding, ...]) -> bool:
    return any(finding.span[0] <= span[0] and span[1] <= finding.span[1] for finding in findings)


def _apart(findings: list[Finding]) -> tuple[Finding, ...]:
    """Return findings that do not overlap, the first one of each place."""
    kept: list[Finding] = []
    for finding in sorted(findings, key=lambda one: (one.span[0], -one.span[1])):
        if not kept or finding.span[0] >= kept[-1].span[1]:
            kept.append(finding)
    return tuple(kept)
