"""Score messages for a question: their own match, that of their surroundings, and who said them when."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
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
        self._matches = {passage.seq: self._match(passage) / top for passage in candidates}
        self._best: dict[str, float] = {}
        self._opens: dict[str, int] = {}
        for passage in candidates:
            day = passage.day
            self._best[day] = max(self._best.get(day, 0.0), self._matches[passage.seq])
            self._opens[day] = min(self._opens.get(day, passage.seq), passage.seq)
        # Shares are dealt out once, day by day, since a match does not reach into another day.
        self._shares: dict[str, dict[int, float]] = {day: defaultdict(float) for day in self._best}
        steps = [(step, weights.neighbour * weights.fading ** (abs(step) - 1)) for step in _around(weights.reach)]
        for passage in candidates:
            dealt, seq, match = self._shares[passage.day], passage.seq, self._matches[passage.seq]
            for step, share in steps:
                dealt[seq + step] += share * match

    def of(self, passage: Passage) -> float:
        """Return the relevance of a message per token; higher is better, and only the order means something."""
        weights, day = self._weights, passage.day
        score = self._matches.get(passage.seq, 0.0) + weights.session * self._best.get(day, 0.0)
        score += self._shares.get(day, {}).get(passage.seq, 0.0)
        if self._question.speakers and passage.speaker.casefold() in self._question.speakers:
            score += weights.speaker
        if self._question.asks_advice and passage.role == "human" and _TASTE.search(passage.text):
            score += weights.taste
        if self._question.spans and self._question.is_on(day):
            place = max(passage.seq - self._opens.get(day, passage.seq), 0)
            score += weights.dated + weights.opening / (1 + place)
        return score / (passage.size + weights.floor)

    def ranked(self, passages: Iterable[Passage]) -> list[tuple[Passage, float]]:
        """Return passages with their relevance, the best first; of equals the newer first."""
        scored = [(passage, self.of(passage)) for passage in passages]
        return sorted(scored, key=lambda pair: (-pair[1], -pair[0].seq, pair[0].id))

    def _match(self, passage: Passage) -> float:
        is_own = self._question.is_first_person and passage.role == "human"
        return passage.score * (1 + self._weights.first_person if is_own else 1)


def _around(reach: int) -> list[int]:
    return [step for step in range(-reach, reach + 1) if step]
