"""The sentences that are the user's own, as the rules read them."""

import re
from dataclasses import dataclass

from everthread.memory.text.sentences import sentences

__all__ = ["Sentence", "own_sentences"]

_BLOCKS = re.compile(
    r"<(memories|user_profile|memory_policy|recalled|summary)\b.*?(?:</\1\s*>|\Z)|```.*?(?:```|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_FOREIGN_LINE = re.compile(r"^[ \t]*(?:>.*|- \d{4}-\d{2}-\d{2}: .*)$", re.MULTILINE)
_QUOTED = re.compile(r"\"[^\"]*\"|“[^”]*”|«[^»]*»|(?<!\w)['‘](?=\w)[^'’]*(?:\w[’']\w[^'’]*)*['’](?!\w)")
_DETACHED = re.compile(r"\s+(?=n't\b|['’](?:m|s|d|ve|re|ll)\b|[,.;:!?](?:\s|$))", re.IGNORECASE)
_UNMARKED = re.compile(r"\b(?:(?:do|does|did|is|are|was|would|could|should|ca|wo)nt|[Ii]m|[Ii]ve)\b")
"""`dont` and `im`, as people type them."""


@dataclass(frozen=True)
class Sentence:
    """One sentence of a user."""

    quote: str
    """Word for word."""
    text: str
    """In one line, with plain apostrophes and no space ahead of punctuation."""
    bare: str
    """`text` with quoted spans blanked: the same length, so places agree."""

    @property
    def own_words(self) -> str:
        """Return `quote` with quoted spans blanked."""
        return _QUOTED.sub(" _ ", self.quote)

    @property
    def is_question(self) -> bool:
        """Tell whether it ends with a question mark."""
        return self.text.endswith("?")


def own_sentences(text: str) -> list[Sentence]:
    """Split a message, leaving out memory blocks, code, quoted lines and lines rendered like a note.

    Without that, a user who pastes a prompt, or a client that sends it back, would have injected
    notes learnt again as new ones.
    """
    own = _FOREIGN_LINE.sub("\n", _BLOCKS.sub("\n", text))
    return [_read(part) for part in sentences(own)]


def _read(quote: str) -> Sentence:
    text = _DETACHED.sub("", " ".join(quote.split())).replace("’", "'")
    text = _UNMARKED.sub(_with_apostrophe, text)
    return Sentence(quote, text, _QUOTED.sub(lambda match: "_" * len(match.group()), text))


def _with_apostrophe(match: re.Match[str]) -> str:
    word = match.group()
    return f"{word[:-1]}'t" if word.endswith("nt") else f"{word[0]}'{word[1:]}"
