"""The widest net: how heavy the wording of a note is, by a model that was fitted to notes of our own.

A note tells something about a person. One that wants to change what the assistant may do, for whom, or what the user
gets to know is worded in its own way, also where no rule knows the phrase and in languages that have no rules.
"""

import re
from collections.abc import Iterator

from everthread.memory.folding import View
from everthread.memory.guard.verdict import Finding
from everthread.memory.learned import weight
from everthread.memory.rules import Rules
from everthread.memory.text.constraints import keeps_approval

__all__ = ["weighed"]

_SENTENCE = re.compile(r"[^.!?;\n]+[.!?;]*(?:(?<=[.!?;])(?=\S)[^.!?;\n]*[.!?;]*)*")
_QUESTION = re.compile(r"\?\W*\Z")
"""What somebody asked tells nobody to do anything."""
_SHORTEST = 6
"""Letters of a sentence that says something."""


def weighed(view: View, rules: Rules) -> Iterator[Finding]:
    """Yield sentences that weigh too much for a note about a person."""
    for match in _SENTENCE.finditer(view.low):
        sentence = match.group()
        if len(sentence.strip()) < _SHORTEST or _QUESTION.search(sentence) or keeps_approval(sentence, rules):
            continue
        if weight(sentence, "guard") >= 0:
            yield Finding("instruction_payload", "weighing", view.span(*match.span()))
