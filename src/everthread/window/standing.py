"""Find the user's standing instructions: sentences that must hold until the user takes them back."""

import re

_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+|;\s+")
_STANDING = re.compile(
    r"^(?:please,?\s+|and\s+|but\s+|also,?\s+)*(?:never|don't|don’t|do not|always|make sure|be sure|only)\b.{8,}"
    r"|\b(?:before|until|unless|without) (?:i|my|asking|me)\b.{0,30}"
    r"\b(?:approv\w+|confirm\w*|consent|permission|say|ok|okay|agree\w*|ask\w*|me)\b"
    r"|\b(?:ask|check with|confirm with|consult|wait for|get)\s+"
    r"(?:me|my (?:approval|ok|okay|consent|permission|go-ahead))\b.{0,20}(?:\b(?:before|first)\b|$)"
    r"|\b(?:i'm|i’m|i am|is|are) (?:severely |highly )?allergic\b|\ballerg(?:y|ies) to\b"
    r"|\b(?:my|our|the|total) budget\b.{0,20}\d|\bno more than\b.{0,12}\d|\bat most\b.{0,12}\d"
    r"|\b(?:you|it) must(?: not|n't)?\b|\bmust (?:not|never)\b|\bfrom now on\b",
    re.IGNORECASE | re.DOTALL,
)
_LONGEST = 300
_FIRST = re.compile(
    r"\b(?:never|don't|don’t|do not|not|without|before|until|unless|allerg\w+|budget|ask|wait)\b", re.IGNORECASE
)


def is_prohibition(sentence: str) -> bool:
    """Tell whether breaking the rule does harm: a prohibition, a condition, an allergy, a limit."""
    return _FIRST.search(sentence) is not None


def standing_in(text: str) -> list[str]:
    """Return the sentences of a user's message that are standing instructions, word for word.

    Questions are none, and a sentence over 300 characters is a story, not a rule.
    """
    sentences = (sentence.strip() for sentence in _SENTENCE.split(text))
    return [
        sentence
        for sentence in sentences
        if 8 <= len(sentence) <= _LONGEST and not sentence.endswith("?") and _STANDING.search(sentence)
    ]
