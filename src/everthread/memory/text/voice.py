"""Whose voice a sentence of a message is in: the user's own, or that of a page, a mail, a role, another person.

Marks of a paste are seen by rules (`own_words`); most pastes have none. What tells them then is what a sentence says,
what stands around it and how the message is laid out, weighed by a model that is fitted to messages of our own.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from everthread.memory.learned import features, places_of, weight_of

_LONGEST = 400
"""Characters of a sentence that are weighed."""

_MOST_AROUND = 4_000
"""Characters of the rest of a message that are weighed."""

_AT_EACH_END = 60
"""Sentences at either end of a message that are weighed, at half a millisecond each; of the others rules decide."""

_MOST = 8
"""From so many on, numbers of sentences and places are one and the same."""

_BEYOND_DOUBT = 7.0
"""Weight from which a sentence is the user's though a rule takes it for somebody else's: in new messages this gives
back one in fourteen of the own sentences that rules doubt, and none of the others. To be measured again after each
fit."""

_WORDS = re.compile(r"\w+")


class Part(NamedTuple):
    """A sentence in its place."""

    start: int
    end: int
    marks: frozenset[str]
    """What rules found about it, such as `handed over`."""
    doubtful: tuple[tuple[int, int], ...]
    """Places of what these rules take for somebody else's."""


def are_own(message: str, parts: Sequence[Part]) -> Sequence[bool | None]:
    """Tell of each sentence of a message whether the user says it; None where it is for rules to decide.

    Args:
        message: all of it.
        parts: its sentences, in order.
    """
    weigh = _are_own if len(message) <= _MOST_AROUND else _are_own.__wrapped__
    return weigh(message, tuple(parts))


@lru_cache(maxsize=64)
def _are_own(message: str, parts: tuple[Part, ...]) -> tuple[bool | None, ...]:
    ends = parts if len(parts) <= 2 * _AT_EACH_END else (*parts[:_AT_EACH_END], *parts[-_AT_EACH_END:])
    clues = parts_told(message, ends)
    told = [_verdict(part, weight_of(one, "own")) for part, one in zip(ends, clues, strict=True)]
    return *told[:_AT_EACH_END], *[None] * (len(parts) - len(ends)), *told[_AT_EACH_END:]


def _verdict(part: Part, weight: float) -> bool | None:
    """Return whether a sentence is the user's; a rule's doubt is only ever lifted, and else stands."""
    if part.doubtful:
        return True if weight >= _BEYOND_DOUBT else None
    return weight >= 0


def parts_told(message: str, parts: Sequence[Part]) -> list[list[frozenset[int]]]:
    """Return what tells the voice of each sentence, as `learned.features` of each clue."""
    texts = [message[part.start : part.end][:_LONGEST] for part in parts]
    if not texts:
        return []
    ahead, behind = ["^^", *texts], [*texts[1:], "$$"]
    first = features(texts[0], "own", "^", has_pieces=False)
    last = features(texts[-1], "own", "$", has_pieces=False)
    around = features(message[:_MOST_AROUND], "own", "*", has_pieces=False)
    return [
        [
            features(text, "own"),
            features(ahead[place], "own", "<", has_pieces=False),
            features(behind[place], "own", ">", has_pieces=False),
            first,
            last,
            around,
            _layout(message, parts, place),
        ]
        for place, text in enumerate(texts)
    ]


def _layout(message: str, parts: Sequence[Part], place: int) -> frozenset[int]:
    """Return where a sentence stands and how it is set."""
    start, end, marks, _ = parts[place]
    text, before = message[start:end], message[:start].rstrip(" ")
    ending = before.rstrip()[-1:] or "^"
    bullet = message[message.rfind("\n", 0, start) + 1 : start].strip()
    is_below_colon = any(message[one.start : one.end].rstrip().endswith(":") for one in parts[:place])
    lines, paragraphs = message.count("\n"), message.count("\n\n")
    begins = "a paragraph" if before.endswith("\n\n") else "a line" if before.endswith("\n") else "inside"
    return places_of(
        {
            *(f"#mark {mark}" for mark in marks),
            f"#of {min(len(parts), _MOST)}",
            f"#from the start {min(place, _MOST)}",
            f"#from the end {min(len(parts) - 1 - place, _MOST)}",
            f"#behind {'a word' if ending.isalnum() else ending}",
            f"#begins {begins}",
            f"#bullet {_WORDS.sub('w', bullet)[:6]}",
            f"#case {'lower' if text[:1].islower() else 'upper' if text[:1].isupper() else 'none'}",
            f"#ends {'a word' if text[-1:].isalnum() else text[-1:]}",
            f"#long {min(len(text) // 30, _MOST)}",
            f"#message {min(len(message) // 150, _MOST)}",
            f"#lines {min(lines, _MOST)}",
            f"#paragraphs {min(paragraphs, _MOST)}",
            f"#below a colon {is_below_colon}",
        },
        "own",
    )
