"""Yes, no, and anything else."""

import re
from typing import Literal

from everthread.memory.rules import BUILT_IN
from everthread.memory.text.words import STOP_WORDS, fold, words

_YES = (
    r"yes|yeah|yep|yup|sure|correct|right|exactly|absolutely|definitely|indeed|of course|please do(?! not|n'?t)|do it"
    r"|i do|i am|go ahead|go for it|sounds good|that'?s (?:right|correct|true)|confirm(?:ed)?|approved?|agreed|proceed"
    # Alone, or with thanks; `okay, that'll be all` and `please find me a taxi` agree to nothing.
    r"|(?:ok(?:ay)?|please|do)"
    r"(?=(?:\W{1,9}(?:please|yes|sure|thanks?|thank you|go ahead|do it|sounds good|great)){0,6}\W{0,9}$)"
)
_NO = r"no|nope|nah|n|not really|i don'?t|i'?m not|none|cancel|declined?|reject(?:ed)?|stop|don'?t"
_OPENING = re.compile(rf"\W{{0,20}}(?:(?P<yes>{_YES}|y)|(?P<no>{_NO}))\b[\s,.!]*", re.IGNORECASE)
_RESERVATION = re.compile(
    r"\b(?:but|not|no|never|nothing|\w{1,20}n'?t|except|unless|however|without|if|only)\b|\?", re.IGNORECASE
)
_OWN_ORDER = re.compile(r"\W{0,20}(?:correct|confirm|approve)\s{1,9}(?:it|that|this|them|the|my)\b", re.IGNORECASE)
"""`Correct that` and `confirm the price` ask for something, and agree to nothing."""

_LONGEST_AGREEMENT = 80
"""Characters up to which an answer only agrees; a longer one says things of its own."""

_FEWEST_OWN_WORDS = 2
"""Words behind a yes or no that make it a statement."""

_CLEAR = frozenset("yes y yep yeah approve approved confirm confirmed absolutely definitely proceed".split())  # noqa: SIM905
_CLEAR_PHRASES = (
    *("go ahead", "go for it", "do it", "please do", "of course"),
    *("book it", "book that", "do book", "please book"),
)
_POLITE = frozenset(
    """a ahead and book booking course do for go i it me now of ok okay please sure thank thanks that the this to
    you""".split()  # noqa: SIM905
)
"""Words that leave a yes a yes; with any other word, such as `but`, an approval is not clear."""


def answer_of(text: str) -> tuple[Literal["yes", "no", ""], str]:
    """Return how a reply begins, and what it says after that."""
    opening = _OPENING.match(text.replace("’", "'"))
    if opening is None:
        return "", text
    return "yes" if opening["yes"] else "no", text[opening.end() :]


def is_answer(sentence: str) -> bool:
    """Tell whether a sentence answers, and means little without what was asked.

    `No, not them` does; `No emails` answers nothing, and `Yes, but only window seats` says something of its own.
    """
    answer, rest = answer_of(sentence)
    if not answer or (rest and sentence[: len(sentence) - len(rest)].rstrip()[-1:] not in (",", ".", "!")):
        return False
    return sum(word not in STOP_WORDS for word in words(rest)) < _FEWEST_OWN_WORDS


def agrees(text: str, question: str = "") -> bool:
    """Tell whether a reply does no more than agree to what was asked.

    `Ok` does, `yes, but …` does not, and neither does what only begins like a yes: `right now I want the hotel`.

    Args:
        text: the reply.
        question: what was asked; a yes may repeat its words.
    """
    answer, rest = answer_of(text)
    if answer != "yes" or len(text) > _LONGEST_AGREEMENT or "?" in text or _OWN_ORDER.match(text):
        return False
    plain = rest.replace("’", "'")
    repeated = frozenset(words(question))
    further = [word for word in words(plain) if word not in BUILT_IN.pack("provenance").words["assent"]]
    return _RESERVATION.search(plain) is None and repeated.issuperset(further)


def approves(text: str) -> bool:
    """Tell whether a reply is a clear yes to an act that cannot be undone: `go ahead` is, `ok` alone is not."""
    said = "".join(sign if sign.isalnum() else " " for sign in fold(text).replace("'", "").replace("’", "")).split()
    if "?" in text or not set(said) <= _CLEAR | _POLITE:
        return False
    return not _CLEAR.isdisjoint(said) or any(phrase in " ".join(said) for phrase in _CLEAR_PHRASES)
