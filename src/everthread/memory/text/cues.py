"""How a sentence is built and worded, weighed: is it a standing rule, or something lasting about the user?

The pack `cues` reads who may or must do what, under which condition, how often and when. It knows no wordings, so it
also judges those that nobody wrote down; every cue adds its weight, and so does the wording (`memory.learned`).
"""

from typing import Literal

from everthread.memory.learned import weight as wording_weight
from everthread.memory.rules import BUILT_IN, Rules

CLEAR_RULE = 2.6
"""Weight from which a sentence is a rule even beside one order or error; our choice."""


def weight(text: str, of: Literal["rule", "lasting"], rules: Rules = BUILT_IN) -> float:
    """Return what speaks for a sentence being a rule, or lasting; from 0 on it is taken for one.

    Args:
        text: one sentence with plain apostrophes, quotations blanked.
        of: what it may be.
        rules: the agent's.
    """
    cues = rules.pack("cues").sections["cue"]
    built = sum(float(cue.values[of]) for cue in cues if cue.values[of] and cue.match(text))
    return built + wording_weight(text, of)


def is_of_a_case(text: str, rules: Rules = BUILT_IN) -> bool:
    """Tell whether a sentence speaks of one order, booking or error: what stands around it is about that, too."""
    return rules.pack("cues").fits("case", text)
