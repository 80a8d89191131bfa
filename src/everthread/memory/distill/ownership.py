"""Ownership: whether words are the user's own of today, or supposed, past, or said of others."""

import re

from everthread.memory.distill.fragments import OTHERS

_NOT_REAL = re.compile(
    r"\b(?:(?:even )?if i (?:were|was|had|could|won|got|ever)|were i|suppose|supposing|imagine|imagining|pretend|"
    r"hypothetical(?:ly)?|"
    r"let's say|what if|in theory|i wish|in another life|as if|role-?play)\b",
    re.IGNORECASE,
)
_PAST = re.compile(
    r"\b(?:used to|back (?:when|then)|in the past|years ago|as a (?:kid|child|student|teenager)|when i was)\b",
    re.IGNORECASE,
)
_SINCE_CHANGED = re.compile(r"\b(?:now|these days|nowadays|no longer|anymore)\b", re.IGNORECASE)
_OTHERS_SAY = re.compile(
    r"\b(?:says?|said|tells?|told|thinks?|claims?|insists?|believes?|writes?|wrote|joked|asked|according to)\b(?! "
    r"(?:you|to you))[^,;]{0,30}$",
    re.IGNORECASE,
)
_ANOTHER = re.compile(rf"\b{OTHERS}\b|^(?:he|she|they|it|you)\b", re.IGNORECASE)
_ANOTHER_SUBJECT = re.compile(rf"(?:\b{OTHERS}|\b(?:he|she|they|you))(?: \w+)?$", re.IGNORECASE)
_COMPANY = re.compile(rf"{OTHERS} and $", re.IGNORECASE)


def is_hypothetical(text: str) -> bool:
    """Tell whether a text talks of what is not so."""
    return _NOT_REAL.search(text) is not None


def is_own(before: str, after: str) -> bool:
    """Tell whether a clause is the user's own of today: not what others say, nor what used to be."""
    if _OTHERS_SAY.search(before) or _COMPANY.search(before):
        return False
    clause = after.split(", but ")[0]
    earlier = before[max(before.rfind(sign) for sign in ",;") + 1 :]
    return not (_PAST.search(clause) or (_PAST.search(earlier) and not _SINCE_CHANGED.search(earlier)))


def is_of_another(before: str, quote: str) -> bool:
    """Tell whether a quote speaks of another person, by itself or by the subject ahead of it."""
    return _ANOTHER.search(quote) is not None or _ANOTHER_SUBJECT.search(before) is not None
