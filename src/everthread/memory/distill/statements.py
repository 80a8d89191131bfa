"""What counts as a statement about the user: a clause that one of the wordings fits, theme by theme."""

import re
from dataclasses import dataclass

from everthread.memory.distill.attitudes import ATTITUDES
from everthread.memory.distill.bodies import BODIES
from everthread.memory.distill.circumstances import CIRCUMSTANCES
from everthread.memory.distill.habits import HABITS
from everthread.memory.distill.judgements import JUDGEMENTS
from everthread.memory.distill.manners import Manner, Rule
from everthread.memory.distill.orders import ORDERS
from everthread.memory.distill.ownership import is_hypothetical, is_own
from everthread.memory.distill.sentences import Sentence
from everthread.state.notes import NoteKind


@dataclass(frozen=True)
class Statement:
    """A clause that says something lasting about the user, or limits something to now."""

    begin: int
    """Place of the clause's subject in the sentence."""
    manner: Manner
    kind: NoteKind | None = None
    """None: the wording of the whole note decides."""


_BOUNDARY = (
    r"(?:^|[;!?–—(]\s*|[,:.](?!\d)\s*|\s-+\s|\b(?:and|but|because|since|as|so|though|although|while|'?cause|plus|"
    r"yet|or|then|well|"
    r"also|actually|yes|yeah|no|nope|ok|okay|oh|hey|hi|hello|please|thanks|thank you|cool|great|btw|fyi|honestly|"
    r"personally|"
    r"sure|now|as a rule|in general|usually|generally|normally|typically|overall|remember|ever|(?:just|much) like "
    r"how)\s+)"
)
_MAYBE = r"(?:i (?:think|guess|suppose|believe|feel|must say|have to say|should mention)(?: that)? )?"

# Every rule is a form of English speech, tried where a clause begins, so that `do I prefer`, `she thinks I
# prefer` and `how I prefer` are not taken for `I prefer`. The order decides: the first one that fits counts.
_RULES: tuple[Rule, ...] = (*ORDERS, *BODIES, *ATTITUDES, *JUDGEMENTS, *CIRCUMSTANCES, *HABITS)
_COMPILED = tuple((manner, kind, re.compile(rule, re.IGNORECASE)) for manner, kind, rule in _RULES)
_OPENING = re.compile(_BOUNDARY, re.IGNORECASE)
_FRONTED = re.compile(
    r"(?:(?:and|but|also|so),? )?(?:on|at|in|for|during|with|without|when|whenever|while|after|before|because of|"
    r"due to) "
    r"(?!(?:this|that|these|those|case|the (?:end|moment|meantime|past))\b)(?:[\w'-]+ ){1,5}?(?=(?:i|we|i'm|i've|"
    r"we're) )",
    re.IGNORECASE,
)
"""What stands ahead of the subject without a comma: `on long flights I prefer …`."""
_PREAMBLE = re.compile(_MAYBE, re.IGNORECASE)


def statements(sentence: Sentence) -> list[Statement]:
    """Return the statements of a sentence by where they begin: the first rule that fits a clause counts."""
    if is_hypothetical(sentence.bare):
        return []
    found: dict[int, Statement] = {}
    begins = [opening.end() for opening in _OPENING.finditer(sentence.bare)]
    if (fronted := _FRONTED.match(sentence.bare)) and not sentence.is_question:
        begins.append(fronted.end())
    for begin in begins:
        preamble = _PREAMBLE.match(sentence.bare, begin)
        place = preamble.end() if preamble else begin
        if place in found or not is_own(sentence.bare[:place], sentence.bare[place:]):
            continue
        for manner, kind, rule in _COMPILED:
            if rule.match(sentence.bare, place):
                found[place] = Statement(place, manner, kind)
                break
    return [found[begin] for begin in sorted(found)]
