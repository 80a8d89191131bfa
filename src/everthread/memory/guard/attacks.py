"""Wording that wants to steer the assistant instead of telling it something about the user."""

import re
from collections.abc import Iterator

from everthread.memory.guard import eastern, leaks, orders, overrides, payloads, schemes
from everthread.memory.guard.cues import is_harmless
from everthread.memory.guard.folding import View
from everthread.memory.guard.leave import keeps_leave
from everthread.memory.guard.lexicon import NEGATED, STYLE
from everthread.memory.guard.verdict import Category, Finding

_Rules = tuple[tuple[Category, str, re.Pattern[str]], ...]


def _compiled(rules: tuple[tuple[Category, str, str], ...]) -> _Rules:
    return tuple((category, name, re.compile(pattern)) for category, name, pattern in rules)


_RULES = _compiled((*orders.RULES, *overrides.RULES, *payloads.RULES, *leaks.RULES))
_SCHEMES = _compiled(schemes.RULES)
_EASTERN = _compiled(eastern.RULES)
_COMMANDED = frozenset({"consent", "checks", "blanket approval"})
_MAY_BE_NEGATED = frozenset({"consent", "checks", "privilege"})
"""Rules about leave to act: with a negation ahead they protect the user, as in `never book without asking me`."""

_STYLED = frozenset({"reply content"})

_STATED = frozenset({"rivals", "hidden text", "blanket approval"})
"""Rules that a sentence about the user may meet: `thinks the other hotels are overpriced`."""

_ASKED_FIRST = re.compile(
    r"\b(?:ask|asks|asking|check(?:s|ing)?|confirm(?:s|ing)?|consult(?:s|ing)?|tell|wait(?:s|ing)? for|call)\b "
    r"(?:with |it with |for )?"
    r"(?:me|us|her|him|them|the user|my \w+(?: \w+)?)\b[^.!?;,\n]{0,24}\b(?:before|first)\b[^.!?;,\n]{0,30}\Z"
)
"""Right ahead of an act: it waits for the user, as in `check with me before you pay for anything`."""

_HAN = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7a3]")


def attacks(view: View) -> Iterator[Finding]:
    """Yield wording that gives orders, voids rules, poses as an authority or makes data leave."""
    low = view.low
    if _HAN.search(low):
        for category, name, pattern in _EASTERN:
            if found := pattern.search(low):
                yield Finding(category, name, view.span(*found.span()))
    for category, name, pattern in _RULES:
        for found in pattern.finditer(low):
            if name in _MAY_BE_NEGATED and _is_negated(low, found.start()):
                continue
            if name in _COMMANDED and _ASKED_FIRST.search(low, max(0, found.start() - 80), found.start()):
                continue
            if name in _STATED and is_harmless(_sentence(low, *found.span())):
                continue
            if name in _STYLED and STYLE.search(low, max(0, found.start() - 60), found.end() + 40):
                continue
            if keeps_leave(_sentence(low, *found.span())):
                continue
            yield Finding(category, name, view.span(*found.span()))
            break
    for category, name, pattern in _SCHEMES:
        for found in pattern.finditer(low):
            if not is_harmless(_sentence(low, *found.span())):
                yield Finding(category, name, view.span(*found.span()))
                break


def _sentence(low: str, start: int, end: int) -> str:
    """Return the sentence around a match."""
    begin = max(low.rfind(stop, 0, start) for stop in ".!?;\n") + 1
    ends = [place for place in (low.find(stop, end) for stop in ".!?;\n") if place >= 0]
    return low[begin : min(ends, default=len(low))]


def _is_negated(low: str, start: int) -> bool:
    """Tell whether a negation stands ahead in the same sentence."""
    begin = max(low.rfind(stop, 0, start) for stop in ".!?;\n") + 1
    return NEGATED.search(low, max(begin, start - 60), start) is not None
