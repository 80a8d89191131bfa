"""The widest net: weigh which ideas a sentence joins.

A note tells something about a person. The more a sentence speaks *to* an assistant, about its rules, powers,
listeners, memory or other people's money, the heavier it gets; what people ask for in travel, food and style makes it
lighter. The pack `ideas` has the vocabulary, `ideas.de` and so on those of other languages; `weights.yaml` the weights
of ideas and of pairs of ideas, one set for English and one for all other languages, fitted to sentences of our own by
`scripts/weigh_guard.py`.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import combinations
from pathlib import Path

import yaml

from everthread.memory.folding import View
from everthread.memory.guard.lexicons import LANGUAGES, WORD, ideas_in, known_words
from everthread.memory.guard.verdict import Category, Finding
from everthread.memory.guard.wording import is_harmless
from everthread.memory.rules import Rules

__all__ = ["WEIGHTS_FILE", "features", "is_left", "language_of", "sentences_of", "weighed"]

WEIGHTS_FILE = Path(__file__).with_name("weights.yaml")

_CATEGORIES: tuple[tuple[Category, frozenset[str]], ...] = (
    ("exfil_link", frozenset({"send", "data", "outsider", "sink", "url"})),
    ("system_rule", frozenset({"persona", "obey", "authority", "rank", "markup", "header"})),
    (
        "policy_override",
        frozenset({"control", "check", "leave", "void", "needless", "unasked", "innards", "reveal", "grant"}),
    ),
)
"""What names a heavy sentence: the category with most of its ideas; otherwise it steers."""
_NO_IDEAS = frozenset({"imperatives", "before_imperative", "everyday"})
"""Vocabularies of the pack that stand for no idea."""

_IN_ANY_LANGUAGE = frozenset({"header", "identifier", "markup", "sink", "url"})
"""Ideas whose patterns name no English words."""

_SENTENCE = re.compile(r"[^.!?;。\n]+[.!?;。]*(?:(?<=[.!?;])(?=\S)[^.!?;。\n]*[.!?;。]*)*")
_KANA = re.compile(r"[\u3040-\u30ff]")
_HAN = re.compile(r"[\u4e00-\u9fff]")
_TOKEN = re.compile(r"[^\W_][\w'’-]*")
_CLAUSE = re.compile(r"[,;:]\s+|[.!?]\s+|\b(?:then|and|but|so|or)\b")
_ENDINGS = (
    *(("ies", "y"), ("ied", "y"), ("ing", ""), ("ing", "e"), ("ed", ""), ("ed", "e")),
    *(("es", ""), ("s", ""), ("'s", ""), ("s'", "")),
)
_SHORTEST = 6
_LONG = 120
"""Characters above which a sentence touches many ideas without being about any."""


@dataclass(frozen=True)
class _Weights:
    threshold: float
    bias: float
    weights: Mapping[str, float]


def weighed(view: View, rules: Rules) -> Iterator[Finding]:
    """Yield sentences that weigh too much for a note about a person."""
    language = language_of(view.low, rules)
    fitted = _fitted()["en" if language == "en" else "other"]
    for match in _SENTENCE.finditer(view.low):
        sentence = match.group()
        if is_left(sentence, language, rules):
            continue
        found = _ideas(sentence, language, rules)
        weight = fitted.bias + sum(fitted.weights.get(name, 0.0) for name in _features(found, rules))
        if weight - max(0, len(sentence) - _LONG) / 50 >= fitted.threshold:
            most, category = max(((len(found & own), name) for name, own in _CATEGORIES), key=lambda share: share[0])
            yield Finding(category if most >= 2 else "instruction_payload", "weighing", view.span(*match.span()))


def language_of(low: str, rules: Rules) -> str:
    """Return the language by whose words a folded text is read; `en` where none is known better."""
    if _KANA.search(low):
        return "ja"
    if _HAN.search(low):
        return "zh"
    words, small = WORD.findall(low), rules.pack("wording").words["english"]
    best, most = "en", sum(2 if word in small else bool(_ideas_of(word, rules)) for word in words)
    for language in LANGUAGES:
        if (known := known_words(words, language, rules)) > most:
            best, most = language, known
    return best


def is_left(sentence: str, language: str, rules: Rules) -> bool:
    """Tell whether a folded sentence is not weighed: it is a question, or harmless by how it is built."""
    if len(sentence) < (_SHORTEST if language == "en" else 4) or is_harmless(sentence, rules):
        return True
    question, frame = rules.pack("ideas").pattern("question"), rules.pack("ideas").pattern("frame")
    return language == "en" and question.search(frame.sub("", sentence)) is not None


def features(sentence: str, language: str, rules: Rules) -> frozenset[str]:
    """Return what of a folded sentence can weigh: its ideas, alone and in pairs such as `send + data`."""
    return frozenset(_features(_ideas(sentence, language, rules), rules))


def sentences_of(low: str) -> list[str]:
    """Return the sentences of a folded text."""
    return [match.group() for match in _SENTENCE.finditer(low)]


def _features(found: frozenset[str], rules: Rules) -> Iterator[str]:
    names = sorted(found)
    yield from (name for name in names if name not in rules.pack("ideas").words["everyday"])
    yield from (f"{one} + {other}" for one, other in combinations(names, 2))


def _ideas(sentence: str, language: str, rules: Rules) -> frozenset[str]:
    pack = rules.pack("ideas")
    if language != "en":
        shapes = (rule for rule in pack.sections["ideas"] if rule.name in _IN_ANY_LANGUAGE)
        return ideas_in(sentence, language, rules) | {rule.name for rule in shapes if rule.pattern.search(sentence)}
    text = pack.pattern("own refusal").sub("i avoid ", pack.pattern("frame").sub("", sentence))
    text = pack.pattern("at will").sub("", text).replace("’", "'")
    found = {idea for token in _TOKEN.findall(text) for idea in _ideas_of(token, rules)}
    found.update(rule.name for rule in pack.sections["ideas"] if rule.pattern.search(text))
    if any(_is_order(clause, pack.words) for clause in _CLAUSE.split(text)):
        found.add("order")
    return frozenset(found)


def _is_order(clause: str, words: Mapping[str, frozenset[str]]) -> bool:
    first = next((token for token in _TOKEN.findall(clause) if token not in words["before_imperative"]), "")
    return first in words["imperatives"]


@lru_cache(maxsize=16_384)
def _ideas_of(token: str, rules: Rules) -> frozenset[str]:
    """Return the ideas of a word in any of its endings."""
    words = _vocabulary(rules)
    token = token.strip("'-")
    if token in words:
        return words[token]
    for ending, instead in _ENDINGS:
        if token.endswith(ending) and len(token) > len(ending) + 1:
            stem = token.removesuffix(ending) + instead
            if stem in words:
                return words[stem]
            if ending in ("ing", "ed") and stem[-2:-1] == stem[-1:] and stem[:-1] in words:
                return words[stem[:-1]]  # as in `dropping`
    return frozenset()


@lru_cache(maxsize=8)
def _vocabulary(rules: Rules) -> Mapping[str, frozenset[str]]:
    words: dict[str, frozenset[str]] = {}
    for idea, entries in rules.pack("ideas").words.items():
        for word in entries if idea not in _NO_IDEAS else ():
            words[word] = words.get(word, frozenset()) | {idea}
    return words


@cache
def _fitted() -> Mapping[str, _Weights]:
    """Return the weights for English, `en`, and those for all the `other` languages."""
    sets = yaml.safe_load(WEIGHTS_FILE.read_text(encoding="utf-8"))
    return {name: _Weights(**fitted) for name, fitted in sets.items()}
