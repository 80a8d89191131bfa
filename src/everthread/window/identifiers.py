"""The identifiers of what left the prompt: codes, numbers, dates, names, paths and links that a later call may need.

A summary keeps the story; a wrong digit in it is worse than none. So exact strings live in an index of
their own, beside the summary, and never pass through a model.
"""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, islice

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from everthread.state.marks import sequence
from everthread.state.summary import Identifier
from everthread.window.remembered import Remembered
from everthread.window.tokens import TokenCounter

_PATTERNS: tuple[tuple[float, str], ...] = (
    # links, mail addresses, paths
    (1.0, r"https?://[^\s\"'<>)\]}]+"),
    (1.0, r"[\w.+-]+@[\w-]+\.[\w.-]*\w"),
    (0.8, r"(?<![\w/])/?(?:[\w.*-]+/)+[\w.*-]+"),
    # times and dates
    (0.4, r"\b\d{4}-\d{2}-\d{2}T[\d:.+-]+Z?"),
    (1.0, r"\b\d{4}-\d{2}-\d{2}\b"),
    # codes such as HAT003, #W2345, KB-1001, 0x80070057, credit_card_9074831
    (1.5, r"(?<![\w#])#?(?=[\w-]*\d)(?=[\w-]*[A-Z])[A-Z0-9][A-Z0-9-]{2,}(?![\w])"),
    (1.5, r"\b0x[0-9A-Fa-f]{3,}\b"),
    (1.5, r"\b(?=\w*_)(?=\w*\d)\w{6,}\b"),
    # numbers and amounts, airport codes, record locators
    (0.9, r"(?<![\w.])[#$€£]?\d[\d,]*(?:[.:-]\d+)*(?![\w])"),
    (0.6, r"\b[A-Z]{3}\b"),
    (0.9, r"\b[A-Z]{5,8}\b"),
    # dotted and underscored names of code
    (0.4, r"\b[A-Za-z]\w*(?:[._][A-Za-z]\w*)+\b"),
)
_ANY = re.compile("|".join(f"(?P<k{place}>{pattern})" for place, (_, pattern) in enumerate(_PATTERNS)))
_WEIGHTS = {f"k{place}": weight for place, (weight, _) in enumerate(_PATTERNS)}
# Most identifiers are a code or a number and nothing else; the same as above, at a fifth of the time.
_ALONE = re.compile(
    r"(?P<k5>[A-Z](?=[A-Z0-9-]*[0-9])[A-Z0-9-]{2,118})|(?P<k8>[0-9]{3,50}(?:\.[0-9]{1,50})?|[0-9]{1,2}\.[0-9]{2,50})"
)
_DIGIT = re.compile("[0-9]")
_JSON_VALUE = re.compile(r": \"(?=[^\"\n]*[A-Za-z])([^\"\n]{2,40})\"")
_JSON_WEIGHT = 0.6
_PUNCTUATION = ".,:;!?()\"'"
_FEWEST_DIGITS = 3
_LONGEST = 120
_KEPT_CHARACTERS = 200
"""Words up to this length are looked at once."""

_MOST_WORDS = 20_000
"""Words that are remembered, some 5 MB; beyond it they are forgotten at once."""

_USED = 0.5
"""Added to the weight of what the user said or a call used."""

_BLOCK = 32
"""Identifiers that are counted together; of the first ones that do not fit together, those that still do are kept."""

_HALF_LIFE = 40
"""Messages after which an identifier that is not mentioned again counts half."""


def identifiers_in(text: str) -> list[tuple[str, float]]:
    """Return every identifier of a text with its weight, in order, repeats included."""
    found = list(chain.from_iterable(map(_words.__getitem__, text.split())))
    if ': "' in text:
        # Short values of JSON: names, cities, streets, classes.
        known = {told for told, _ in found}
        values = (match.group(1) for match in _JSON_VALUE.finditer(text))
        found += [(value, _JSON_WEIGHT) for value in values if value not in known]
    return found


def _in_word(word: str) -> tuple[tuple[str, float], ...]:
    plain = word.strip(_PUNCTUATION)
    if plain.isalpha() and plain.islower():
        return ()
    # A point ahead of a number makes it a part of another one.
    if (alone := _ALONE.fullmatch(plain)) and (alone.lastgroup == "k5" or word.startswith(plain)):
        return ((plain, _WEIGHTS[str(alone.lastgroup)]),)
    found = []
    for match in _ANY.finditer(word):
        told = match.group().rstrip(".,:;")
        is_number = told[:1].isdigit() and not any(map(str.isalpha, told))
        if len(told) <= _LONGEST and not (is_number and sum(map(str.isdigit, told)) < _FEWEST_DIGITS):
            found.append((told, _WEIGHTS[str(match.lastgroup)]))
    return tuple(found)


class _Words(dict[str, tuple[tuple[str, float], ...]]):
    """What words hold: texts repeat their words, and most have nothing. Blobs are not worth keeping."""

    def __missing__(self, word: str) -> tuple[tuple[str, float], ...]:
        found = _in_word(word)
        if len(word) > _KEPT_CHARACTERS:
            return found
        if len(self) >= _MOST_WORDS:
            self.clear()
        return self.setdefault(word, found)


_words = _Words()


def merged(index: Sequence[Identifier], messages: Iterable[BaseMessage]) -> list[Identifier]:
    """Add the identifiers of messages to an index.

    Args:
        index: what is known, in order of first mention.
        messages: complete messages that are about to be masked or folded.
    """
    found = {entry.text: entry for entry in index}
    seen: dict[str, tuple[float, int, int]] = {}
    messages = list(messages)
    for message, mentioned in zip(messages, _of_message.all(messages), strict=True):
        bonus = _USED if isinstance(message, HumanMessage | AIMessage) else 0.0
        place = max(sequence(message), 0)
        for text, weight in mentioned:
            told = seen.get(text)
            if told is None:
                old = found.get(text)
                if old is None:  # as nearly all are
                    seen[text] = (weight + bonus, 1, place)
                    continue
                told = (old.weight, old.mentions, old.last)
            seen[text] = (max(weight + bonus, told[0]), told[1] + 1, max(place, told[2]))
    found |= {text: Identifier(text, *told) for text, told in seen.items()}
    return list(found.values())


def shown_in(text: str, messages: Sequence[BaseMessage]) -> Callable[[str], bool]:
    """Return what tells whether an identifier stands in a text or in messages.

    An index has hundreds, so those with a digit are looked for among the identifiers there and not in every word.
    """
    whole = "\n".join([text, *map(_text, messages)])
    mentioned = "\n".join(told for found in (identifiers_in(text), *_of_message.all(messages)) for told, _ in found)
    return lambda told: told in (mentioned if _DIGIT.search(told) else whole)


def within(
    index: Sequence[Identifier],
    limit: int,
    counter: TokenCounter,
    *,
    is_shown: Callable[[str], bool] = lambda told: False,
) -> list[Identifier]:
    """Return the identifiers that fit, in order of first mention; the least likely needed go.

    Args:
        index: identifiers in order of first mention.
        limit: tokens of the rendered index.
        counter: counts tokens.
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
    while left > 0 and (block := list(islice(hidden, _BLOCK))):
        sizes = counter.words([f" {index[place].text}" for place in block])
        is_over = sum(sizes) > left
        for place, size in zip(block, sizes, strict=True):
            if size <= left:
                kept.add(place)
                left -= size
        if is_over:
            break
    return [entry for place, entry in enumerate(index) if place in kept]


def render_identifiers(index: Sequence[Identifier]) -> str:
    """Render the index as one section of the summary; empty when there is none."""
    if not index:
        return ""
    return "## Identifiers seen earlier\n" + " ".join([entry.text for entry in index])


def _found(message: BaseMessage) -> tuple[tuple[str, float], ...]:
    # The garbage collector does not look at a tuple that holds nothing but text and numbers.
    return tuple(identifiers_in(_text(message)))


_of_message = Remembered(_found)


def _text(message: BaseMessage) -> str:
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    return f"{message.text}\n" + "\n".join(str(call["args"]) for call in calls)
