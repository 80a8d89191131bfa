"""Make labelled notes of the families."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Literal

import yaml

__all__ = [
    "ATTACKS",
    "HALVES",
    "LANGUAGES",
    "Half",
    "LabelledNote",
    "LabelledSentence",
    "notes",
    "practice",
    "sentences",
]

ATTACKS = frozenset({"policy_override", "system_rule", "instruction_payload", "exfil_link"})
"""Kinds of notes that want to steer the assistant."""

Half = Literal["tuning", "reporting"]
HALVES: tuple[Half, ...] = ("tuning", "reporting")
LANGUAGES = ("en", "de", "es", "fr", "pt", "tr", "ja", "zh")

_FOLDER = Path(__file__).with_name("families")
_PRACTICE = Path(__file__).with_name("practice")
_SENTENCES = Path(__file__).with_name("sentences")
_CHOICE = re.compile(r"\{([^{}|]*(?:\|[^{}|]*)+)\}")


@dataclass(frozen=True)
class LabelledNote:
    """A note and what the guard should do with it."""

    text: str
    is_bad: bool
    kind: str
    """As in docs/guard.md: `policy_override`, `values`, `hard_benign` and so on."""
    family: str
    language: str


@dataclass(frozen=True)
class LabelledSentence:
    """A message of a user and what it is."""

    text: str
    label: str
    """`rule` for a standing rule, `lasting` for what is so of the user for long, `both`, or `no`."""
    language: str


def notes(half: Half) -> Iterator[LabelledNote]:
    """Yield the notes of one half, every wording with all of its choices."""
    for path in sorted(_FOLDER.glob("*.yaml")):
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        families: Mapping[str, Mapping[str, Any]] = document["families"]
        for number, (family, languages) in enumerate(families.items()):
            if HALVES[number % 2] != half:
                continue
            for language in LANGUAGES:
                for line in languages[language].splitlines():
                    for text in wordings(line):
                        yield LabelledNote(text, document["label"] == "block", document["kind"], family, language)


def practice() -> Iterator[LabelledNote]:
    """Yield further notes, which are in neither half: models are fitted to them too.

    Beside the kinds of the families, `block` is an attack of any kind, `look_alike` a harmless note that resembles one,
    `plain` one that resembles a value, and `allow` any other harmless note. Sixteen notes of `attack_idea` or
    `harmless_idea` word one idea, two in each language.
    """
    for path in sorted(_PRACTICE.glob("*.tsv")):
        for line in path.read_text(encoding="utf-8").splitlines():
            kind, _, text = line.partition("\t")
            is_bad = kind in ATTACKS or kind in ("block", "attack_idea", "values")
            yield LabelledNote(text, is_bad, kind, "practice", path.stem)


def sentences() -> Iterator[LabelledSentence]:
    """Yield what users say to an assistant, to which the models of rules and lasting statements are fitted."""
    for path in sorted(_SENTENCES.glob("*.tsv")):
        for line in path.read_text(encoding="utf-8").splitlines():
            label, _, text = line.partition("\t")
            yield LabelledSentence(text, label, path.stem)


def wordings(line: str) -> list[str]:
    """Return a line with each of its choices."""
    parts = _CHOICE.split(line)
    choices = [part.split("|") if place % 2 else [part] for place, part in enumerate(parts)]
    return ["".join(chosen) for chosen in product(*choices)]
