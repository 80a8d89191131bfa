"""The identifiers of what left the prompt: codes, numbers, dates, names, paths and links that a later call may need.

A summary keeps the story; a wrong digit in it is worse than none. So exact strings live in an index of
their own, beside the summary, and never pass through a model.
"""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from everthread.state.marks import sequence
from everthread.state.summary import Identifier
from everthread.window.tokens import TokenCounter

# A match either begins where no earlier character could have been part of it, or is of a bounded length: the time for a
# long word grows with its length and not with its square.
_PATTERNS: tuple[tuple[float, str], ...] = (
    # links, mail addresses, paths
    (1.0, r"https?://[^\s\"'<>)\]}]+"),
    (1.0, r"(?<![\w.+-])[\w.+-]+@[\w-]+\.[\w.-]*\w"),
    (0.8, r"(?<![\w.*/-])/?(?:[\w.*-]+/)+[\w.*-]+"),
    # times and dates
    (0.4, r"\b\d{4}-\d{2}-\d{2}T[\d:.+-]+Z?"),
    (1.0, r"\b\d{4}-\d{2}-\d{2}\b"),
    # codes such as HAT003, #W2345, KB-1001, 0x80070057, credit_card_9074831
    (1.5, r"(?<![\w#])#?(?=[A-Z0-9])(?=[\w-]{0,118}\d)(?=[\w-]{0,118}[A-Z])[A-Z0-9][A-Z0-9-]{2,118}(?![\w])"),
    (1.5, r"\b0x[0-9A-Fa-f]{3,}\b"),
    (1.5, r"\b(?=\w*_)(?=\w*\d)\w{6,}\b"),
    # numbers and amounts, airport codes, record locators
    (0.9, r"(?<![\w.])[#$€£]?\d[\d,]{0,60}(?:[.:-]\d{1,40}){0,12}(?![\w])"),
    (0.6, r"\b[A-Z]{3}\b"),
    (0.9, r"\b[A-Z]{5,8}\b"),
    # dotted and underscored names of code
    (0.4, r"\b[A-Za-z]\w*(?:[._][A-Za-z]\w*+)++\b"),
)
_ANY = re.compile("|".join(f"(?P<k{place}>{pattern})" for place, (_, pattern) in enumerate(_PATTERNS)))
_WEIGHTS = {f"k{place}": weight for place, (weight, _) in enumerate(_PATTERNS)}
_DIGIT = re.compile("[0-9]")
_JSON_VALUE = re.compile(r": \"(?=[^\"\n]{0,40}[A-Za-z])([^\"\n]{2,40})\"")
_JSON_WEIGHT = 0.6
_PUNCTUATION = ".,:;!?()\"'"
_FEWEST_DIGITS = 3
_LONGEST = 120
_SHORT = 200
"""Characters of a word whose identifiers are remembered; a blob is not worth keeping."""

_USED = 0.5
"""Added to the weight of what the user said or a call used."""

_MISFITS = 8
"""Identifiers that do not fit after which no shorter one is looked for."""

_HALF_LIFE = 40
"""Messages after which an identifier that is not mentioned again counts half."""


def identifiers_in(text: str) -> list[tuple[str, float]]:
    """Return every identifier of a text with its weight, in order, repeats included."""
    words = text.split()
    identifiers = [match for word in words for match in (_known_matches if len(word) <= _SHORT else _matches)(word)]
    if ': "' in text:
        # Short values of JSON: names, cities, streets, classes.
        known = {name for name, _ in identifiers}
        values = (match.group(1) for match in _JSON_VALUE.finditer(text))
        identifiers += [(value, _JSON_WEIGHT) for value in values if value not in known]
    return identifiers


def _matches(word: str) -> tuple[tuple[str, float], ...]:
    plain = word.strip(_PUNCTUATION)
    if plain.isalpha() and plain.islower():
        return ()
    identifiers = []
    for match in _ANY.finditer(word):
        name = match.group().rstrip(".,:;")
        is_number = name[:1].isdigit() and not any(map(str.isalpha, name))
        if len(name) <= _LONGEST and not (is_number and sum(map(str.isdigit, name)) < _FEWEST_DIGITS):
            identifiers.append((name, _WEIGHTS[str(match.lastgroup)]))
    return tuple(identifiers)


# Texts repeat their words, and most have nothing.
_known_matches = lru_cache(maxsize=20_000)(_matches)


def mentioned_in(text: str) -> list[Identifier]:
    """Return the identifiers of a text, in order of first mention."""
    return list(_merge({}, identifiers_in(text)).values())


def merged(index: Sequence[Identifier], messages: Iterable[BaseMessage]) -> list[Identifier]:
    """Add the identifiers of messages to an index.

    Args:
        index: what is known, in order of first mention.
        messages: complete messages that are about to be masked or folded.
    """
    by_text = {entry.text: entry for entry in index}
    for message in messages:
        bonus = _USED if isinstance(message, HumanMessage | AIMessage) else 0.0
        mentions = [(text, weight + bonus) for text, weight in identifiers_in(_text(message))]
        _merge(by_text, mentions, max(sequence(message), 0))
    return list(by_text.values())


def _merge(
    by_text: dict[str, Identifier], mentions: Iterable[tuple[str, float]], place: int = 0
) -> dict[str, Identifier]:
    for text, weight in mentions:
        old = by_text.get(text)
        by_text[text] = (
            Identifier(text, weight, 1, place)
            if old is None
            else Identifier(text, max(weight, old.weight), old.mentions + 1, max(place, old.last))
        )
    return by_text


def shown_in(text: str, messages: Sequence[BaseMessage]) -> Callable[[str], bool]:
    """Return a test for whether a text or messages show an identifier.

    An index has hundreds, so those with a digit are looked for among the identifiers there and not in every word.
    """
    words = "\n".join([text, *map(_text, messages)])
    identifiers = "\n".join(name for name, _ in identifiers_in(words))
    return lambda name: name in (identifiers if _DIGIT.search(name) else words)


def within(
    index: Sequence[Identifier],
    limit: int,
    counter: TokenCounter,
    *,
    is_shown: Callable[[str], bool] = lambda name: False,
) -> list[Identifier]:
    """Return the identifiers that fit, in order of first mention; the least likely needed go.

    Args:
        index: identifiers in order of first mention.
        limit: tokens of the rendered index.
        is_shown: whether the prompt shows a text in any case, which then needs no place in the index.
    """
    newest = max((entry.last for entry in index), default=0)
    left = limit - counter.text(render_identifiers([Identifier(text="", weight=0)]))
    # Mentioned again counts more, mentioned long ago less.
    scores = [
        (entry.weight if entry.mentions == 1 else entry.weight * (1 + math.log(entry.mentions)))
        / (1 + (newest - entry.last) / _HALF_LIFE)
        for entry in index
    ]
    ranked = sorted(range(len(index)), key=scores.__getitem__, reverse=True)
    # Looked for one by one and not ahead: an index is far longer than what fits.
    hidden = (place for place in ranked if not is_shown(index[place].text))
    kept: set[int] = set()
    misfits = 0
    for place in hidden:
        size = counter.text(f" {index[place].text}")
        if size <= left:
            kept.add(place)
            left -= size
            continue
        # A shorter one may still fit where a longer one did not.
        misfits += 1
        if misfits == _MISFITS:
            break
    return [entry for place, entry in enumerate(index) if place in kept]


def render_identifiers(index: Sequence[Identifier]) -> str:
    """Render the index as one section of the summary; empty when there is none."""
    if not index:
        return ""
    return "## Identifiers seen earlier\n" + " ".join([entry.text for entry in index])


def _text(message: BaseMessage) -> str:
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    return f"{message.text}\n" + "\n".join(str(call["args"]) for call in calls)
