"""Fill a token budget with passages, the most relevant first."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from everthread.memory.recall.passages import Passage, in_order
from everthread.memory.recall.question import Question
from everthread.memory.recall.relevance import Relevance
from everthread.memory.recall.rendering import day_line, passage_line, render_recalled, session_line
from everthread.memory.recall.trimming import trimmed

_LARGEST_SHARE = 0.5
"""Share of the budget that one message may take; a longer one is cut to what matters."""

_SMALLEST = 48
"""Tokens below which a cut message says too little."""

_MISSES = 24
"""Passages that did not fit in a row, after which the rest is not looked at."""


@dataclass(frozen=True)
class Chosen:
    """What goes into the prompt."""

    text: str
    """The rendered block; empty when nothing was chosen."""
    passages: tuple[Passage, ...] = ()
    """Oldest first."""
    scores: tuple[float, ...] = ()
    """Relevance of each, in the same order."""
    tokens: int = 0
    """Of the block as a message."""


def choose(
    passages: Iterable[Passage],
    relevance: Relevance,
    question: Question,
    *,
    limit: int,
    weigh: Callable[[str], int],
    count: Callable[[str], int],
) -> Chosen:
    """Choose passages for a question.

    Args:
        passages: candidates and their neighbours, without what the prompt shows already.
        relevance: scores them.
        question: what is asked, to cut long messages.
        limit: tokens that the block may take as a message.
        weigh: tokens of a block as a message.
        count: tokens of a text.
    """
    room = limit - weigh(render_recalled([Passage("", 0, "", "", "")])) + count(day_line("")) + count(": ")
    largest = max(int(limit * _LARGEST_SHARE), _SMALLEST)
    taken: list[tuple[Passage, float, int]] = []
    sessions: set[tuple[str, str]] = set()
    misses = 0
    for passage, score in relevance.ranked(passages):
        shown = trimmed(passage, question, largest)
        # No token reaches over a space between two words: most of what does not fit need not be counted.
        cost = len(shown.text.split())
        if cost <= room:
            # With its line break: the two often share a token.
            cost = count(f"{passage_line(shown)}\n")
            cost += 0 if passage.session in sessions else count(f"{session_line(passage)}\n")
        if cost > room:
            misses += 1
            if misses > _MISSES or room < _SMALLEST // 4:
                break
            continue
        room -= cost
        sessions.add(passage.session)
        taken.append((shown, score, cost))
        misses = 0
    return _within(taken, limit, weigh)


def _within(taken: list[tuple[Passage, float, int]], limit: int, weigh: Callable[[str], int]) -> Chosen:
    """Let the least relevant go until the whole block holds the limit: the parts only estimate it."""
    while taken:
        scores = {passage: score for passage, score, _ in taken}
        shown = in_order(scores)
        text = render_recalled(shown)
        tokens = weigh(text)
        if tokens <= limit:
            return Chosen(text, tuple(shown), tuple(scores[passage] for passage in shown), tokens)
        taken.pop()
    return Chosen("")
