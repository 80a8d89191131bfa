"""Words of a question: which of them tell messages apart."""

import re
from functools import lru_cache

WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
"""A run of letters or digits, with an apostrophe inside."""

_STOP_WORDS = frozenset(
    WORD.findall(
        """
    a an and are as at be been being but by can could did do does doing done for from had has have having he her
    hers him his how i if in into is it its just like me mine more most my no nor not of off on once only or other
    our ours out over own same she should so some such than that the their theirs them then there these they this
    those through to too under until up us very was we were what when where which while who whom whose why will
    with would you your yours about am also any im ive id ill youre shall may might must please thanks thank ok
    okay yes hi hello hey tell again ever
    """
    )
)
"""English words that hold no subject; dropping them costs nothing in other languages."""


def words_of(text: str) -> list[str]:
    """Return the words of a text in order, in lower case, without what an apostrophe adds."""
    return [re.split("['’]", word)[0] if word[-2:-1] in "'’" else word for word in WORD.findall(text.casefold())]


def content_words(text: str) -> list[str]:
    """Return the distinct words that hold a subject, in order."""
    words = words_of(text)
    return list(
        dict.fromkeys(word for word in words if word.replace("'", "").replace("’", "") not in _STOP_WORDS and word)
    )


@lru_cache(maxsize=4096)
def root(word: str) -> str:
    """Cut the common English endings off a word, to compare two forms of it."""
    if len(word) < 4 or not (word.isascii() and word.isalpha()):
        return word
    for ending, instead in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)] + instead
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiouls":
        word = word[:-1]
    return word[:-1] if word.endswith("e") and len(word) > 3 else word


_ENDINGS = (("ies", "y"), ("ied", "y"), ("sses", "ss"), ("ss", "ss"), ("ing", ""), ("ed", ""), ("es", ""), ("s", ""))
