"""A message of the transcript as recall sees it."""

from typing import NamedTuple

TOKEN_CHARACTERS = 4
"""Characters of a token, for ranking only; what is shown is counted exactly."""


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

    @property
    def day(self) -> str:
        """The ISO day; messages of one day count as one session."""
        return self.date[:10]

    @property
    def size(self) -> float:
        """Tokens, roughly."""
        return len(self.text) / TOKEN_CHARACTERS
