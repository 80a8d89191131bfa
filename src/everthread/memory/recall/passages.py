"""A message of the transcript as recall sees it."""

from collections.abc import Iterable
from typing import NamedTuple

TOKEN_CHARACTERS = 4
"""Characters of a token, for ranking only; what is shown is counted exactly."""


def in_order(passages: Iterable["Passage"]) -> list["Passage"]:
    """Return passages oldest first: those of one thread by their place, those of several by day and thread."""
    ordered = sorted(passages, key=lambda one: (one.seq, one.id))
    if any(passage.thread for passage in ordered):
        ordered.sort(key=lambda one: (one.day, one.thread))
    return ordered


class Passage(NamedTuple):
    """One archived message, or what is left of a long one.

    A question makes some 400 of them, and a tuple is made in a quarter of the time of a frozen dataclass.
    """

    id: str
    seq: int
    """Place in the thread, from 0."""
    role: str
    """`human`, `ai` or `tool`."""
    speaker: str
    """Who said it, as the prompt names them."""
    text: str
    date: str = ""
    """ISO 8601; empty when unknown."""
    score: float = 0.0
    """Score of the search, higher is better; 0 for a neighbour that the search did not find."""
    previous: str | None = None
    """Id of the message just before; None when unknown."""
    next: str | None = None
    """Id of the message just after; None when unknown."""
    is_cut: bool = False
    """Parts of the text were left out."""
    thread: str = ""
    """Id of the other thread that it is from; empty for the current one."""

    @property
    def day(self) -> str:
        """The ISO day."""
        return self.date[:10]

    @property
    def session(self) -> tuple[str, str]:
        """Thread and day: messages of one day in one thread count as one session."""
        return self.thread, self.date[:10]

    @property
    def size(self) -> float:
        """Tokens, roughly."""
        return len(self.text) / TOKEN_CHARACTERS
