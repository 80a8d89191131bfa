"""Patterns that are written one group of alternatives a line."""

import re


def pattern(*alternatives: str) -> re.Pattern[str]:
    """Compile a pattern that matches any of the alternatives, whatever the case."""
    return re.compile("|".join(alternatives), re.IGNORECASE)


def words(*groups: str) -> str:
    """Return a pattern for whole words; each group holds some, separated by `|`."""
    return rf"\b(?:{'|'.join(groups)})\b"


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(text.split())
