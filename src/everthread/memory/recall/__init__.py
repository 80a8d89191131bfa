"""Recall: which messages that left the working set the current question needs.

Pure functions, no store, no model, no clock: `question` reads what is asked, `relevance` scores messages,
`choice` fills a token budget, `rendering` writes the block. What each choice is worth is in docs/recall.md.
"""

from everthread.memory.recall.choice import Chosen, choose
from everthread.memory.recall.passages import Passage, in_order
from everthread.memory.recall.question import Question
from everthread.memory.recall.relevance import Relevance
from everthread.memory.recall.rendering import passage_line, render_recalled, session_line

__all__ = [
    "Chosen",
    "Passage",
    "Question",
    "Relevance",
    "choose",
    "in_order",
    "passage_line",
    "render_recalled",
    "session_line",
]
