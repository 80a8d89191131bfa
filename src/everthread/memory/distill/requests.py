"""Wishes inside a request: they hold for this session, until the user says that they always do."""

import re

from everthread.memory.distill.attributes import Attribute, attributes
from everthread.memory.distill.sentences import Sentence

_REQUEST = re.compile(
    r"\b(?:i|we)(?:'d| would| also| really| still| do| will| just|'ll)* (?:like|love|want|need|prefer|rather|take|be "
    r"(?:needing|looking|interested)|require|wanna)\b"
    r"|\b(?:looking|searching|hoping|interested) (?:for|to|in)\b|\b(?:find|search|book|reserve|rent|get|show|"
    r"recommend|suggest|look for|look up)\b"
    r"|\b(?:make (?:it|sure|that)|how about|what about|should (?:have|be|include|also)|must (?:have|be)|needs? to "
    r"(?:have|be)|preferably|ideally|"
    r"is there|are there|do you have|are any|any|with|please|i'm thinking|in the mood|rather than|instead)\b|"
    r"\bwill do\b|\bis fine\b",
    re.IGNORECASE,
)
_FACT = re.compile(
    r"^(?:(?:and|ok|okay|also),? )?(?:does|do|is|are|was|how (?:much|many|long|far)|when|where|who|which|why|"
    r"what(?! about)(?:'s| is| are| time))\b(?! there| you have| any)",
    re.IGNORECASE,
)
_INDIFFERENT = re.compile(
    r"\b(?:don't|doesn't|do not|does not|didn't) (?:really )?(?:care|matter|mind)\b|\bno preference|\bany(?:thing|"
    r"where)? (?:\w+ )?is (?:fine|ok|okay|good)\b",
    re.IGNORECASE,
)


def wishes(sentence: Sentence) -> list[Attribute]:
    """Return the attributes that the user asks for in a sentence; a mere question about a fact asks for none."""
    if _INDIFFERENT.search(sentence.bare) or not _REQUEST.search(sentence.bare):
        return []
    if sentence.is_question and _FACT.match(sentence.bare):
        return []
    return attributes(sentence.bare)
