"""Wording that wants to steer the assistant instead of telling it something about the user, or gives a value away.

Known attacks are the patterns of the pack `attacks`; the pack `excuses` says in which sentences a match of some of them
is harmless. Likely attacks and likely values are told by models that were fitted to notes of our own
(`memory.learned`), also where no rule knows the phrase and in languages that have no rules.
"""

import re
from collections.abc import Iterator

from everthread.memory.folding import View
from everthread.memory.guard.verdict import Finding
from everthread.memory.learned import weight
from everthread.memory.rules import Rules
from everthread.memory.text.constraints import keeps_approval

_STOPS = ".!?;\n"
"""What ends the sentence around a match, also the dot in `example.com`."""
_SENTENCE = re.compile(r"[^.!?;\n]+[.!?;]*(?:(?<=[.!?;])(?=\S)[^.!?;\n]*[.!?;]*)*")
"""A sentence that is weighed; a stop ends it only ahead of a space, so that addresses and numbers stay whole."""
_QUESTION = re.compile(r"\?\W*\Z")
"""What somebody asked tells nobody to do anything."""
_SHORTEST = 6
"""Letters of a sentence that says something."""


def known_attacks(view: View, rules: Rules) -> Iterator[Finding]:
    """Yield wording that gives orders, voids rules, poses as an authority or makes data leave."""
    low = view.low
    for section, entries in rules.pack("attacks").sections.items():
        for rule in entries:
            for match in rule.pattern.finditer(low):
                if not _is_excused(section, low, match, rules):
                    yield Finding(rule.values["category"], rule.name, view.span(*match.span()))
                    break


def likely_attacks(view: View, rules: Rules) -> Iterator[Finding]:
    """Yield sentences that weigh too much for a note about a person; what they are after, the weights cannot tell."""
    for match in _SENTENCE.finditer(view.low):
        sentence = match.group()
        if len(sentence.strip()) < _SHORTEST or _QUESTION.search(sentence) or keeps_approval(sentence, rules):
            continue
        if weight(sentence, "guard") >= 0:
            yield Finding("instruction_payload", "weighing", view.span(*match.span()))


def likely_values(view: View) -> Iterator[Finding]:
    """Yield sentences that hold a value by their wording and the shapes of their codes, whatever kind it is of."""
    for match in _SENTENCE.finditer(view.text):
        if len(match.group().strip()) >= _SHORTEST and weight(match.group(), "value") >= 0:
            yield Finding("private_value", "weighing", view.span(*match.span()))


def _is_excused(section: str, low: str, match: re.Match[str], rules: Rules) -> bool:
    """Tell whether the sentence around a match of a section makes it harmless."""
    start, end = match.span()
    begin = max(low.rfind(stop, 0, start) for stop in _STOPS) + 1
    stops = [place for place in (low.find(stop, end) for stop in _STOPS) if place >= 0]
    sentence = low[begin : min(stops, default=len(low))]
    if keeps_approval(sentence, rules):
        return True
    excuses = rules.pack("excuses")
    return section in excuses.sections and excuses.fits(section, low[begin:start] if section == "leave" else sentence)
