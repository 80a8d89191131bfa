"""Cut a long message to the sentences that a question is about."""

import re

from everthread.memory.recall.passages import TOKEN_CHARACTERS, Passage
from everthread.memory.recall.question import Question
from everthread.memory.text.sentences import sentences
from everthread.memory.text.words import stem, words

GAP = "[…]"
"""Stands where sentences were left out."""

_RECORD = re.compile(r"(?<=[}\]])\s*,\s*(?=[{\[])")
"""Between two records of JSON."""

_LONGEST = 400
"""Characters of one piece; data without sentences is cut at this length."""


def trimmed(passage: Passage, question: Question, tokens: int) -> Passage:
    """Return the passage with the pieces that hold most words of the question, in order, and its first piece.

    Args:
        passage: a message; one that is short enough is returned as it is.
        question: what is asked.
        tokens: about how many may stay.
    """
    room = tokens * TOKEN_CHARACTERS
    if len(passage.text) <= room:
        return passage
    pieces = [piece for text in _RECORD.split(passage.text) for one in sentences(text) for piece in _cut(one)]
    asked = {stem(word) for word in question.words}
    worth = [len(asked.intersection(map(stem, words(piece)))) for piece in pieces]
    kept: set[int] = set()
    for place in sorted(range(len(pieces)), key=lambda place: (-worth[place], place)):
        if len(pieces[place]) + len(GAP) + 2 <= room:
            kept.add(place)
            room -= len(pieces[place]) + len(GAP) + 2
    if not kept:
        return passage._replace(text=f"{passage.text[: max(room, 0)]} {GAP}", is_cut=True)
    return passage._replace(text=_joined(pieces, kept), is_cut=True)


def _cut(text: str) -> list[str]:
    return [text[start : start + _LONGEST] for start in range(0, len(text), _LONGEST)]


def _joined(pieces: list[str], kept: set[int]) -> str:
    shown: list[str] = []
    for place, piece in enumerate(pieces):
        if place in kept:
            shown.append(piece.strip())
        elif not shown or shown[-1] != GAP:
            shown.append(GAP)
    return " ".join(shown)
