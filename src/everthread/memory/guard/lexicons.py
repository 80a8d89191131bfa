"""Ideas of sentences in other languages than English, by the vocabularies of the packs `ideas.de` and so on.

One engine for all of them: a language with spaces is read word by word, Chinese and Japanese by what a text contains.
The ideas are those of the pack `ideas`, so that one set of weights serves every language.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from everthread.memory.folding import folded
from everthread.memory.rules import Rules

__all__ = ["LANGUAGES", "WORD", "ideas_in", "known_words"]

LANGUAGES = ("de", "es", "fr", "pt", "tr")
"""Those with spaces that have a pack; Chinese and Japanese are told by their script."""

WORD = re.compile(r"[^\W\d_]+")
_CLAUSE = re.compile(r"[,;:.!?、。,:;!?()()]+\s*")
_TITLE = re.compile(r"[\"«„“「『《](?=.{2,40}[\"»“”」』》])[^\"»”」』》\n]{2,40}[\"»“”」』》]")
_AT_START = 3
"""Words of a clause among which the verb of an order stands."""
_AT_END = 8
"""Letters of a Japanese clause in which its verb stands."""
_PLACED = frozenset({"order", "own"})
"""Ideas that are verbs: where they stand tells a statement from an order."""


@dataclass(frozen=True)
class _Lexicon:
    """The vocabulary of a language: whole words, and the beginnings, endings and inner parts of words."""

    whole: Mapping[str, frozenset[str]]
    beginnings: Mapping[str, frozenset[str]]
    endings: Mapping[str, frozenset[str]]
    parts: Mapping[str, frozenset[str]]
    small: frozenset[str]


def known_words(words: Sequence[str], language: str, rules: Rules) -> int:
    """Return how much of a text a language knows: small words count twice, words of its vocabulary once."""
    small = _lexicon(language, rules).small
    return sum(2 if word in small else bool(_ideas_of(word, language, rules)) for word in words)


def ideas_in(sentence: str, language: str, rules: Rules) -> frozenset[str]:
    """Return the ideas of a folded sentence in one of `LANGUAGES`."""
    text = _TITLE.sub(" ", sentence)
    found = {"quoted"} if text != sentence else set()
    if language in ("ja", "zh"):
        found.update(_contained(text, language, rules))
    else:
        for clause in _CLAUSE.split(text):
            for place, word in enumerate(WORD.findall(clause)):
                ideas = _ideas_of(word, language, rules)
                found.update(ideas if place < _AT_START else ideas - {"order"})
                if place < _AT_START and "own" in ideas:
                    found.add("states")
    return frozenset(found)


def _contained(text: str, language: str, rules: Rules) -> Iterator[str]:
    lexicon = _lexicon(language, rules)
    for clause in _CLAUSE.split(text):
        for term, ideas in lexicon.parts.items():
            place = clause.rfind(term)
            if place < 0:
                continue
            is_verb = place + len(term) > len(clause) - _AT_END if language == "ja" else place < _AT_START
            yield from ideas if is_verb else ideas - {"order"}
            if is_verb and "own" in ideas:
                yield "states"


@lru_cache(maxsize=16_384)
def _ideas_of(word: str, language: str, rules: Rules) -> frozenset[str]:
    lexicon = _lexicon(language, rules)
    found = set(lexicon.whole.get(word, ()))
    for end in range(2, len(word) + 1):
        found |= lexicon.beginnings.get(word[:end], frozenset())
        found |= lexicon.endings.get(word[-end:], frozenset())
    if lexicon.parts:
        for start in range(len(word) - 3):
            for end in range(start + 4, len(word) + 1):
                found |= lexicon.parts.get(word[start:end], frozenset())
    return frozenset(found)


@lru_cache(maxsize=32)
def _lexicon(language: str, rules: Rules) -> _Lexicon:
    whole: dict[str, frozenset[str]] = {}
    beginnings: dict[str, frozenset[str]] = {}
    endings: dict[str, frozenset[str]] = {}
    parts: dict[str, frozenset[str]] = {}
    vocabularies = rules.pack(f"ideas.{language}").words
    for idea, entries in vocabularies.items():
        if idea == "small":
            continue
        for entry in entries:
            stem = folded(entry.strip("*")).low
            if language in ("ja", "zh") or (entry.startswith("*") and entry.endswith("*")):
                into = parts
            elif entry.endswith("*"):
                into = beginnings
            else:
                into = endings if entry.startswith("*") else whole
            into[stem] = into.get(stem, frozenset()) | {idea}
    small = frozenset(folded(word).low for word in vocabularies.get("small", ()))
    return _Lexicon(whole, beginnings, endings, parts, small)
