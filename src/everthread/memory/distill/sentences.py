"""Split what a user wrote into sentences, and take out what are not the user's own words of now."""

import re
from dataclasses import dataclass

_BLOCKS = re.compile(
    r"<(memories|user_profile|memory_policy|recalled|summary)\b.*?(?:</\1\s*>|\Z)|```.*?(?:```|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_FOREIGN_LINE = re.compile(r"^[ \t]*(?:>.*|- \d{4}-\d{2}-\d{2}: .*)$", re.MULTILINE)
_END = re.compile(r"(?<=[.!?])[\"”')\]]*\s+|\n+")
_ABBREVIATION = re.compile(
    r"(?:\b(?:a\.m|p\.m|e\.g|i\.e|etc|mrs?|ms|dr|st|vs|approx|no|u\.s)\.|\b[A-Z]\.)$", re.IGNORECASE
)
_LONGEST_ABBREVIATION = 12
"""Characters ahead of an end that can make it none."""
_QUOTED = re.compile(r"\"[^\"]*\"|“[^”]*”|«[^»]*»|(?<!\w)['‘](?=\w)[^'’]*(?:\w[’']\w[^'’]*)*['’](?!\w)")
_DETACHED = re.compile(r"\s+(?=n't\b|['’](?:m|s|d|ve|re|ll)\b|[,.;:!?](?:\s|$))", re.IGNORECASE)

_BARE = re.compile(r"\b(?:(?:do|does|did|is|are|was|would|could|should|ca|wo)nt|[Ii]m|[Ii]ve)\b")
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


def sentences(text: str) -> list[Sentence]:
    """Split a message, leaving out memory blocks, code, quoted lines and lines rendered like a note.

    Without that, a user who pastes a prompt, or a client that sends it back, would have injected
    notes learnt again as new ones.
    """
    own = _FOREIGN_LINE.sub("\n", _BLOCKS.sub("\n", text))
    return [_sentence(part) for part in _split(own) if part.strip()]


def _split(text: str) -> list[str]:
    parts: list[str] = []
    begin = 0
    for end in _END.finditer(text):
        if "\n" not in end.group() and _ABBREVIATION.search(
            text[max(begin, end.start() - _LONGEST_ABBREVIATION) : end.start()]
        ):
            continue
        parts.append(text[begin : end.start()])
        begin = end.end()
    return [*parts, text[begin:]]


def _sentence(part: str) -> Sentence:
    quote = part.strip()
    text = _DETACHED.sub("", " ".join(quote.split())).replace("’", "'")
    text = _BARE.sub(_contracted, text)
    return Sentence(quote, text, _QUOTED.sub(lambda found: "_" * len(found.group()), text))


def _contracted(found: re.Match[str]) -> str:
    word = found.group()
    return f"{word[:-1]}'t" if word.endswith("nt") else f"{word[0]}'{word[1:]}"
