"""Words that attacks are made of, to undo typing mistakes and missing spaces."""

import re
from functools import cache

_WORDS = (
    "ignore disregard forget override overrule bypass reveal instructions instruction previous prior above earlier "
    "system prompt rule rules policy policies guidelines safety security restrictions limits filters guardrails "
    "everything without asking approval approve confirm confirmation password token secret api key send email forward "
    "conversation conversations history memory memories notes user users always never obey order "
    "orders every developer "
    "administrator store delete execute message messages assistant refuse refund refunds all the and "
    "this that any from "
    "into with your you are now unrestricted mode social number passport card account hidden credentials verification "
    "disable permission consent follow request requests pretend whenever reply answer response tell "
    "show print to not of "
    "in for is a my me it its code pin"
)
_VOCABULARY = tuple(_WORDS.split())
_CORE = tuple(word for word in _VOCABULARY if len(word) >= 6)
_TELLING = re.compile(
    r"\b(?:ignor\w*|disregard\w*|instructions?|previous|system|prompt|polic(?:y|ies)|password|passport"
    r"|secret|reveal|override"
    r"|conversation|memor(?:y|ies)|safety|without|always|never|https?|token|approv\w+|rules?|user|send|forget|delete)\b"
)
_WORD = re.compile(r"[a-z]{5,20}")
_BLOCKS = re.compile("|".join(sorted(_VOCABULARY, key=len, reverse=True)))


def telling(low: str) -> bool:
    """Tell whether a text, lower case, has at least two words that attacks are made of."""
    return len(set(_TELLING.findall(low))) >= 2


def corrected(low: str) -> str:
    """Return a text with mistyped words of attacks put right: letters swapped, lost, doubled or replaced."""
    return _WORD.sub(lambda word: _corrections().get(word.group()) or _unscrambled(word.group()), low)


def segmented(run: str) -> str:
    """Put the spaces back into words that were run together."""
    if len(run) < 8:
        return run
    return " ".join(_BLOCKS.sub(lambda word: f" {word.group()} ", run).split())


@cache
def _corrections() -> dict[str, str]:
    """Return each misspelling by one letter with the word that it stands for."""
    found: dict[str, str] = {}
    known = set(_VOCABULARY)
    for word in _CORE:
        for place in range(1, len(word)):
            head, tail = word[:place], word[place:]
            found[head + tail[1:]] = word
            found[head + head[-1] + tail] = word
            if len(tail) > 1:
                found[head + tail[1] + tail[0] + tail[2:]] = word
    return {wrong: right for wrong, right in found.items() if wrong not in known and len(wrong) >= 5}


@cache
def _anagrams() -> dict[tuple[str, str, str], str]:
    return {(word[0], word[-1], "".join(sorted(word))): word for word in _CORE}


def _unscrambled(word: str) -> str:
    return _anagrams().get((word[0], word[-1], "".join(sorted(word))), word)
