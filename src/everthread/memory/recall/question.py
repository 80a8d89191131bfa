"""What the current message asks for, as far as words can tell."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date

from everthread.memory.text.dates import Span, dates_in
from everthread.memory.text.words import content_words, fold, stem, words

_MOST_WORDS = 48
"""Words of a message that are searched for; a pasted page asks for nothing in particular."""

_FEW_WORDS = 2
"""With fewer words of its own a message leans on the one before it."""

_FIRST_PERSON = re.compile(r"\b(?:i|me|my|mine|we|us|our|ours)\b", re.IGNORECASE)

_ADVICE = re.compile(
    r"\b(?:recommend(?:ations?|ed)?|suggest(?:ions?|ed)?|advi[cs]e|should (?:i|we)"
    r"|(?:best|good|great|must)\b.{0,40} for me"
    r"|what (?:are|would be|is|'s) (?:some|the best|my best|a good|good)|where (?:can|could|should) (?:i|we)"
    r"|(?:options?|ideas|tips|choices|ways) (?:for|to|on)|help me (?:find|choose|pick|plan|decide))\b",
    re.IGNORECASE,
)

_LOOKS_BACK = re.compile(
    r"\b(?:did|was|were|had|been|earlier|before|previous(?:ly)?|last|again|already|ago|once|originally"
    r"|remember|recall|remind|forgot(?:ten)?|said|told|mention(?:ed)?|discuss(?:ed)?|talked|agreed|decided|promised)\b",
    re.IGNORECASE,
)
"""Words with which people come back to something."""

_SHORT_NUMBER = re.compile(r"\d{1,3}")

TASTES = (
    "prefer preference usually always never avoid dislike hate love enjoy favorite allergic allergy diet afraid refuse"
)
"""Words with which people state a lasting taste."""


@dataclass(frozen=True)
class Question:
    """A message, read for recall."""

    words: tuple[str, ...]
    """Distinct words with a subject, in order."""
    spans: tuple[Span, ...] = ()
    """Days that it names."""
    is_first_person: bool = False
    """The user asks about themselves, so what they said themselves comes first."""
    looks_back: bool = False
    """It comes back to something said or done."""
    asks_advice: bool = False
    """The user wants a proposal, for which their tastes matter whatever words they are in."""
    speakers: frozenset[str] = frozenset()
    """People of the conversation whom it names, in lower case."""

    @classmethod
    def read(cls, text: str, today: date, *, before: str = "") -> "Question":
        """Read a message.

        Args:
            text: what the user asks.
            today: the day they ask on.
            before: what was said just before; a message such as "And the price?" takes its words from there.
        """
        spans, rest = _without_dates(" ".join(text.split()), today)
        asked = content_words(rest)
        if len(asked) < _FEW_WORDS and not spans and (asked or "?" in text):
            asked += [word for word in content_words(before) if word not in asked]
        return cls(
            words=tuple(asked[:_MOST_WORDS]),
            spans=tuple(spans),
            is_first_person=bool(_FIRST_PERSON.search(text)),
            looks_back=bool(_LOOKS_BACK.search(text)),
            asks_advice=bool(_ADVICE.search(text)),
        )

    def unseen(self, visible: str) -> list[str]:
        """Return the words that a prompt does not have in any form.

        Short numbers are left out: they are everywhere and mean nothing alone.

        Args:
            visible: what the prompt shows without this message.
        """
        shown = fold(visible)
        # Of a stem, `citi` or `hope`, the last vowel stands in some forms of the word only.
        return [
            word for word in self.words if not _SHORT_NUMBER.fullmatch(word) and stem(word).rstrip("ei") not in shown
        ]

    def among(self, speakers: Iterable[str]) -> "Question":
        """Tell the names of speakers from other words.

        A speaker's name stands in what the others say to them, so as a search word it finds the wrong side.
        """
        names = {word for speaker in speakers for word in words(speaker)}
        named = frozenset(names.intersection(self.words))
        rest = tuple(word for word in self.words if word not in named)
        return replace(self, words=rest, speakers=named) if named and (rest or self.spans) else self

    @property
    def query(self) -> str:
        """What to search for; empty when the message holds no subject."""
        return " ".join([*self.words, *(span.words() for span in self.spans)])

    def is_on(self, day: str) -> bool:
        """Tell whether it names an ISO day."""
        return any(span.holds(day) for span in self.spans)


def _without_dates(text: str, today: date) -> tuple[list[Span], str]:
    """Return the days that a question names, and the question without them."""
    mentions = [mention for mention in dates_in(text, today) if mention.span]
    rest, end = [], 0
    for mention in mentions:
        rest.append(text[end : mention.start])
        end = mention.end
    return list(dict.fromkeys(mention.span for mention in mentions if mention.span)), " ".join([*rest, text[end:]])
