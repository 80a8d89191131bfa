"""Tell whose words a note is made of: the user's own, or those of a tool."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from everthread.memory.text.sentences import sentences
from everthread.memory.text.wording import Wording, wording

__all__ = ["Said", "tool_behind", "user_behind"]

_ENOUGH = 0.5
"""Share of a note's content words that makes somebody its author; the rest is the model's wording of the same."""

_MOST = 0.65
"""Share that makes a tool the author of what the user has not said half of; one common word is none."""

_LONGEST = 20_000
"""Characters of one text that are read."""

_FIELD = re.compile(r"[\"']\s*[,}\]]\s*|\\n")
"""The end of a field of JSON, and a line break inside one."""

_DATE = re.compile(r"\b\d{4}-\d\d-\d\d\b")


@dataclass(frozen=True)
class Said:
    """A message as far as authorship goes."""

    id: str
    text: str
    means: str = ""
    """What it says together with what it answers; empty when that is its text."""


def user_behind(text: str, said: Iterable[Said]) -> Said | None:
    """Return the message of the user that says most of a note; None when none says half of it.

    A name or a number of the note counts only if the user said it, in whatever message.

    Args:
        text: the note.
        said: messages of the user, newest first: of two that say as much the newer one is the source.
    """
    messages = list(said)
    if _unsaid(text, messages):
        return None
    shares = [_share(wording(text), _read(one)) for one in messages]
    best = max(shares, default=0.0)
    return messages[shares.index(best)] if best >= _ENOUGH else None


def tool_behind(text: str, results: Iterable[Said], said: Iterable[Said]) -> Said | None:
    """Return the first result of a tool that a note was taken from; None when there is none.

    That is one with a name or a number that the user never said, or with most of the note in one
    sentence or field: in a long list of hotels every word stands somewhere.

    Args:
        text: a note that is not the user's.
        results: what tools returned.
        said: messages of the user.
    """
    note, unsaid = wording(text), _unsaid(text, list(said))
    for one in results:
        pieces = [wording(piece) for part in _FIELD.split(one.text[:_LONGEST]) for piece in sentences(part)]
        if any(unsaid & piece.words or _share(note, piece) >= _MOST for piece in pieces):
            return one
    return None


def _unsaid(text: str, said: Sequence[Said]) -> frozenset[str]:
    """Return the names and numbers of a note that the user never said; dates are often worked out."""
    note = wording(_DATE.sub("", text))
    exact = note.names | frozenset(note.numbers)
    return exact.difference(*(_read(one).words for one in said)) if exact else exact


def _read(said: Said) -> Wording:
    return wording((said.means or said.text)[:_LONGEST])


def _share(note: Wording, other: Wording) -> float:
    """Return the share of a note's content words that another text has, denied or not as in the note."""
    wanted, found = frozenset(note.signed), frozenset(other.signed)
    return len(wanted & found) / len(wanted) if wanted else 0.0
