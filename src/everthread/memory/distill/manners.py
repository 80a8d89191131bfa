"""Manners of speech: how something was said, and what that is worth."""

from typing import Literal, TypeAlias

from everthread.state.notes import NoteKind

Manner = Literal["asked", "rule", "stated", "taste"]
"""How it was said: asked to be remembered, an order for the future, a plain statement, a mere liking."""

CONFIDENCE: dict[Manner, float] = {"asked": 1.0, "rule": 1.0, "stated": 0.9, "taste": 0.6}
"""What a wording is worth; our choice, so that tastes go first when the notes do not fit."""

Rule: TypeAlias = tuple[Manner, NoteKind | None, str]
"""A wording as a regular expression, with how it says something and the kind of note it makes."""
