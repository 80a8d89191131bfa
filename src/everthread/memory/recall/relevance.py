"""Score messages for a question: their own match, that of their surroundings, and who said them when."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from everthread.memory.recall.passages import Passage
from everthread.memory.recall.question import Question

_TASTE = re.compile(
    r"\b(?:prefer\w*|usually|always|never|tend to|avoid\w*|dislike|hate|love|enjoy|favou?rite|allerg\w+|diet\w*"
    r"|afraid|scared|refuse|vegan|vegetarian|can(?:'|’)?t (?:stand|eat|have)|rather than|instead of)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Weights:
    """How much each clue counts, against 1 for the best match of the words. Figures: docs/recall.md."""

    neighbour: float = 0.3
    """Share of a message's match that the messages just beside it get."""
    fading: float = 0.6
    """Factor for every further message."""
    reach: int = 5
    """Messages on either side that share in a match."""
    session: float = 0.3
    """Share of the best match of a day that all messages of that day get."""
    speaker: float = 0.2
    """For a message of somebody whom the question names."""
    first_person: float = 0.2
    """Added share for what the user said themselves when they ask about themselves."""
    taste: float = 0.5
    """For a taste that the user stated when they ask for advice."""
    dated: float = 1.0
    """For a message of a day that the question names."""
    opening: float = 2.0
    """For the first message of such a day, half for the second, and so on: people begin with why they came."""
    floor: float = 400.0
    """Tokens added to every size: relevance is per token, or one long text would crowd out ten short ones."""


class Relevance:
    """The relevance of any message of a thread, once the search has spoken.

    Args:
        candidates: what the search found, in any order.
        question: what is asked.
        weights: of the clues.
    """

    DEFAULT: ClassVar[Weights] = Weights()

    def __init__(self, candidates: Sequence[Passage], question: Question, weights: Weights = DEFAULT) -> None:
        self._question = question
        self._weights = weights
        top = max((passage.score for passage in candidates), default=0.0) or 1.0
        self._days: dict[tuple[str, str], _Day] = {}
        # Shares are dealt out once, day by day, since a match does not reach into another day.
        around = (step for step in range(-weights.reach, weights.reach + 1) if step)
        steps = [(step, weights.neighbour * weights.fading ** (abs(step) - 1)) for step in around]
        for passage in candidates:
            day, seq, match = self._on(passage), passage.seq, self._match(passage) / top
            day.matches[seq] = match
            day.best = max(day.best, match)
            day.opens = seq if day.opens is None else min(day.opens, seq)
            shares = day.shares
            for step, share in steps:
                shares[seq + step] = shares.get(seq + step, 0.0) + share * match

    def of(self, passage: Passage) -> float:
        """Return the relevance of a message per token; higher is better, and only the order means something."""
        weights, question, seq = self._weights, self._question, passage.seq
        day = self._on(passage)
        score = day.matches.get(seq, 0.0) + weights.session * day.best + day.shares.get(seq, 0.0)
        if question.speakers and passage.speaker.casefold() in question.speakers:
            score += weights.speaker
        if question.asks_advice and passage.role == "human" and _TASTE.search(passage.text):
            score += weights.taste
        if day.is_asked:
            place = max(seq - (seq if day.opens is None else day.opens), 0)
            score += weights.dated + weights.opening / (1 + place)
        return score / (passage.size + weights.floor)

    def _on(self, passage: Passage) -> "_Day":
        known = self._days.get(passage.session)
        if known is None:
            known = self._days[passage.session] = _Day(is_asked=self._question.is_on(passage.day))
        return known

    def ranked(self, passages: Iterable[Passage]) -> list[tuple[Passage, float]]:
        """Return passages with their relevance, the best first; of equals the newer first."""
        scored = [(passage, self.of(passage)) for passage in passages]
        return sorted(scored, key=lambda pair: (-pair[1], -pair[0].seq, pair[0].id))

    def _match(self, passage: Passage) -> float:
        is_own = self._question.is_first_person and passage.role == "human"
        return passage.score * (1 + self._weights.first_person if is_own else 1)


@dataclass
class _Day:
    """What the messages of one day in one thread share."""

    is_asked: bool
    """The question names it."""
    best: float = 0.0
    """The best match."""
    opens: int | None = None
    """Place of the first candidate; None without one."""
    matches: dict[int, float] = field(default_factory=dict)
    """By place, the match of each candidate."""
    shares: dict[int, float] = field(default_factory=dict)
    """By place, what the matches around give to it."""
