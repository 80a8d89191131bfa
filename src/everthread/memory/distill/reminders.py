"""Requests to remember something, and words that set a default for the time to come."""

import re

from everthread.memory.distill.sentences import Sentence

_ASKED = re.compile(
    r"^(?:(?:also|and|but|ok|okay|oh|yes|so|hey|hi|hello|well)?,? ?(?:please |pls |just )?(?:(?:can|could|would|"
    r"will) you )?(?:please |pls |just )?)?"
    r"(?:(?:remember|keep in mind|bear in mind|note|make a note|take note|don't forget|do not forget|never forget)"
    r"(?: for (?:the future|next time|later))?(?P<that> that|,|:)?\s+(?!when\b|what\b|how\b|where\b|who\b|why\b|"
    r"to (?!always|never)|last\b|if\b|the time\b|me\b)"
    r"|(?:for (?:future reference|the future|next time)|from now on|from here on|going forward|in (?:the )?future|"
    r"henceforth|"
    r"just so you know|for the record|for your information|fyi)[,:]?\s+(?:that )?)",
    re.IGNORECASE,
)
_LATER_ON = re.compile(r"\b(?:from now on|going forward|in (?:the )?future|from here on|henceforth)\b", re.IGNORECASE)


def asked_to_remember(sentence: Sentence) -> int | None:
    """Return where the content begins when the user asks to have something kept; None otherwise."""
    found = _ASKED.match(sentence.bare)
    is_asking = sentence.is_question and not (found and re.search(r"\byou\b", found.group(), re.IGNORECASE))
    if found is None or is_asking or not sentence.text[found.end() :].strip(" ."):
        return None
    return found.end()


def speaks_of_later(sentence: Sentence) -> bool:
    """Tell whether the sentence sets a default for the time to come."""
    return _LATER_ON.search(sentence.bare) is not None
