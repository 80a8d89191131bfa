"""The widest net: weigh which ideas a sentence joins.

A note tells something about a person. The more a sentence speaks *to* an assistant, about its rules, powers,
listeners, memory or other people's money, the heavier it gets; what people ask for in travel, food and style makes it
lighter. Ideas and pairs of ideas have weights, fitted to sentences of our own; see docs/guard.md.
"""

import re
from collections.abc import Iterator
from itertools import combinations

from everthread.memory.guard.cues import is_harmless
from everthread.memory.guard.folding import View
from everthread.memory.guard.ideas import ideas
from everthread.memory.guard.lexicon import OWN_REFUSAL
from everthread.memory.guard.verdict import Category, Finding
from everthread.memory.guard.weights import BIAS, THRESHOLD, WEIGHTS

__all__ = ["features", "sentences_of", "weighed", "weight"]

_CATEGORIES: tuple[tuple[Category, frozenset[str]], ...] = (
    ("exfil_link", frozenset({"send", "data", "outsider", "url"})),
    ("system_rule", frozenset({"persona", "obey", "authority", "rank", "markup"})),
    (
        "policy_override",
        frozenset({"control", "leave", "void", "needless", "no leave asked", "innards", "reveal", "grant"}),
    ),
)
"""What names a heavy sentence: the category with most of its ideas; otherwise it steers."""

_SENTENCE = re.compile(r"[^.!?;\n]+[.!?;]*(?:(?<=[.!?;])(?=\S)[^.!?;\n]*[.!?;]*)*")
_SAID = re.compile(r"^\W*(?:the )?user (?:said|says|asked|wrote)(?: that)?\s*:?\s*|\basked \"[^\"]*\", the user said:")
"""The frame of a note in the user's own words: it is no wish of a `user`."""
_OWN_REFUSAL = re.compile(OWN_REFUSAL)
_AT_WILL = re.compile(
    r"\b(?:when|where|if)(?:ever)? (?:it is |it's |at all )?(?:possible|available|needed|necessary|you can)\b"
)
"""`Pay with points whenever possible` names no occasion."""
_QUESTION = re.compile(
    r"\?\W*\Z|^\W*(?:can|could|would|will|do|does|did|is|are|what|when|where|which|who|how|why|should|may) (?:you|i"
    r"|we|it|there|that"
    r"|this|the|they|any|one|about|much|many|long|far)\b(?!.*,)|^\W*(?:thanks?|thank you|sorry|hi|hello|hey there"
    r"|congrats|good luck)\b"
)
"""What asks or greets; it tells nobody to do anything later."""
_COMMON = frozenset(
    {
        *("you", "me", "us", "they", "he or she", "customer", "anybody", "this", "every", "denial", "if", "occasion"),
        *(
            "order",
            "tell",
            "access",
            "more",
            "judge",
            "data",
            "send",
            "money",
            "buy",
            "account",
            "memory",
            "may",
            "duty",
        ),
        *("quoted", "change", "reveal", "persist", "rival", "said: you", "said: every", "said: occasion", "said: act"),
        *("said: money", "said: data", "said: leave", "said: check"),
    }
)
"""Ideas of everyday talk; they weigh only beside another one."""
_SHORTEST = 6
_LONG = 120
"""Characters above which a sentence touches many ideas without being about any."""


def weighed(view: View) -> Iterator[Finding]:
    """Yield sentences that weigh too much for a note about a person."""
    low = view.low
    for sentence in _SENTENCE.finditer(low):
        text = sentence.group()
        if len(text) < _SHORTEST or is_harmless(text) or _QUESTION.search(_SAID.sub("", text)):
            continue
        total, category = weight(text)
        if total >= THRESHOLD:
            yield Finding(category, "weighing", view.span(*sentence.span()))


def weight(text: str) -> tuple[float, Category]:
    """Return the weight of a folded sentence in lower case, and what most of its ideas are about."""
    found = ideas(_stripped(text))
    total = BIAS + sum(WEIGHTS.get(feature, 0.0) for feature in _features(found))
    total -= max(0, len(text) - _LONG) / 50
    shares = [(len(found & own), name) for name, own in _CATEGORIES]
    most, named = max(shares, key=lambda share: share[0])
    return total, named if most >= 2 else "instruction_payload"


def features(sentence: str) -> frozenset[tuple[str, ...]]:
    """Return what of a folded sentence in lower case can weigh: its ideas, alone and in pairs."""
    return frozenset(_features(ideas(_stripped(sentence))))


def sentences_of(low: str) -> list[str]:
    """Return the sentences of a folded text in lower case."""
    return [found.group() for found in _SENTENCE.finditer(low)]


def _features(found: frozenset[str]) -> Iterator[tuple[str, ...]]:
    names = sorted(found)
    yield from ((name,) for name in names if name not in _COMMON)
    yield from combinations(names, 2)


def _stripped(text: str) -> str:
    return _AT_WILL.sub("", _OWN_REFUSAL.sub("i avoid ", _SAID.sub("", text)))
