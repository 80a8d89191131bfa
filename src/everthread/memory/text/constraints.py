"""The user's standing rules, such as "don't book before I approve", and how long a wish holds."""

import math
import re

from everthread.memory.learned import EAST_ASIAN
from everthread.memory.rules import BUILT_IN, Rules
from everthread.memory.text.cues import CLEAR_RULE, is_of_a_case, weight
from everthread.memory.text.own_words import is_reported, own_sentences

_CUT = re.compile(r"(?<=[;:])\s+")
_SHORTEST, _SHORTEST_UNSPACED = 8, 4
_LONGEST = 500
"""Characters above which a sentence is a story, not a rule."""

_WORD = re.compile(r"[^\W\d_]+")
_FEWEST_WORDS = 3
"""Different words of a rule in no known wording: "question 20" says nothing."""

_MOST_SENTENCES = 200
"""Sentences of a message above which it holds a paste: only rules in known words are looked for in it."""


def constraints_in(text: str, rules: Rules = BUILT_IN) -> list[str]:
    """Return the sentences of a user's message that are standing rules, word for word.

    Questions and what is wanted once are none, and neither is what the user quotes, pastes, reports or wants to have
    translated. A sentence that may be one or not is kept: too many rules cost tokens, a lost one costs trust. Where the
    rest of the message is about one order or error, only what is clearly built like a rule is one.
    """
    sentences = own_sentences(text)
    is_long = len(sentences) > _MOST_SENTENCES
    cases = [not is_long and is_of_a_case(sentence.bare, rules) for sentence in sentences]
    found = []
    for place, sentence in enumerate(sentences):
        shortest = _SHORTEST_UNSPACED if EAST_ASIAN.search(sentence.quote) else _SHORTEST
        if not shortest <= len(sentence.quote) <= _LONGEST or is_reported(sentence):
            continue
        if sentence.is_question and not sentence.is_settled:
            continue
        least = CLEAR_RULE if sum(cases) > cases[place] else 0.0
        if is_long or sentence.has_quotation or sentence.text.endswith(":"):
            least = math.inf  # What it quotes or announces is not the user's.
        if any(_is_rule(part, least, rules) for part in (sentence.told, *_parts(sentence.told))):
            found.append(sentence.quote)
    return found


def _parts(bare: str) -> list[str]:
    """Return what a sentence says ahead of a semicolon or colon and behind it; what is kept is all of it."""
    parts = _CUT.split(bare)
    return [part for part in parts if len(part) >= _SHORTEST] if len(parts) > 1 else []


def _is_rule(bare: str, least: float, rules: Rules) -> bool:
    """Tell whether a sentence is a rule by its words, or is built like one."""
    if rules.pack("constraints").fits("standing", bare):
        return True
    if EAST_ASIAN.search(bare) is None and len(set(_WORD.findall(bare.lower()))) < _FEWEST_WORDS:
        return False
    return least < math.inf and weight(bare, "rule", rules) >= least


def is_prohibition(sentence: str, rules: Rules = BUILT_IN) -> bool:
    """Tell whether breaking the rule does harm: a prohibition, a condition, an allergy, a limit."""
    return rules.pack("constraints").fits("harm", _plain(sentence))


def urgency(sentence: str, rules: Rules = BUILT_IN) -> int:
    """Return how early a rule comes when not all fit: 0 if its breach harms, 1 if known, 2 if clear, 3 if likely."""
    if is_prohibition(sentence, rules):
        return 0
    if rules.pack("constraints").fits("standing", _plain(sentence)):
        return 1
    return 2 if weight(_plain(sentence), "rule", rules) >= CLEAR_RULE else 3


def is_constraint(text: str, rules: Rules = BUILT_IN) -> bool:
    """Tell whether a note holds a constraint, which must never be lost, rather than a preference."""
    pack = rules.pack("constraints")
    return pack.fits("constraint", _plain(text)) or any(
        is_prohibition(one, rules) for one in constraints_in(text, rules)
    )


def keeps_approval(sentence: str, rules: Rules = BUILT_IN) -> bool:
    """Tell whether a sentence makes an act wait for the user's approval and says nothing else."""
    return rules.pack("constraints").fits("leave", _plain(sentence))


def is_for_this_time(text: str, rules: Rules = BUILT_IN) -> bool:
    """Tell whether the wording limits what is said to this trip, case or day."""
    return rules.pack("constraints").fits("once", _plain(text))


def is_lasting(text: str, rules: Rules = BUILT_IN) -> bool:
    """Tell whether the wording sets a default for the time to come, whatever else it names."""
    return rules.pack("constraints").fits("lasting", _plain(text))


def _plain(text: str) -> str:
    return text.replace("’", "'")
