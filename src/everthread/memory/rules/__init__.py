"""Rules as data: packs of patterns and vocabularies in YAML, checked when they are loaded.

A pack is a file of this folder, or one of a user's own that adds to it. docs/memory.md describes the format:

    pack: constraints                  # the pack, or the built-in one to add to
    sections:                          # built-in packs only: where a section's patterns have to fit, and what they read
      orders: {where: start, fields: {kind: [constraint, preference]}}
      attacks: {reads: folded, flags: -is}
    words: {polite: please kindly}     # vocabularies, as one string or as a list of phrases
    fragments: {day: "mon|tue"}        # parts of patterns, used as {day}; a vocabulary can be used the same way
    rules:
      orders:
        - name: ask-first              # every rule has a name, one pattern, and an example of either kind
          pattern: ask me before       # on several lines, breaks, indentation and lines with `# ` ahead do not count
          kind: constraint
          catches: Ask me before you book.
          leaves: Did you ask me?

Sections with `reads: folded` are asked of folded text (`memory.folding`), so their examples are folded too. `flags` are
those of `(?flags:…)`, `is` by default.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from threading import Lock
from typing import Any

import yaml

from everthread.errors import SettingsError
from everthread.memory.folding import folded

_FOLDER = Path(__file__).parent
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the C loader is ten times as fast
_FRAGMENT = re.compile(r"\{([a-z_][a-z_0-9]*)\}")
_LOADING = Lock()
_WHERE = ("anywhere", "start", "whole")


@dataclass(frozen=True)
class Rule:
    """One pattern and what it means."""

    name: str
    source: str
    """Of its pattern."""
    where: str
    """Where the pattern has to fit: `anywhere` in the text, at its `start`, or the `whole` of it."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """The fields that the section declares, such as `kind`."""

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The pattern, compiled when it is first asked: most turns need half of those that ship, or fewer."""
        return re.compile(self.source)

    @cached_property
    def match(self) -> Callable[..., re.Match[str] | None]:
        """Return where a text fits, read from its beginning or from the place given as second argument.

        It is the pattern's own method: hundreds of lines of a message meet dozens of rules.
        """
        pattern = self.pattern
        methods = {"anywhere": pattern.search, "start": pattern.match, "whole": pattern.fullmatch}
        return methods[self.where]


@dataclass(frozen=True, eq=False)
class RulePack:
    """The rules of one pack by section, in order, and its vocabularies."""

    name: str
    sections: Mapping[str, tuple[Rule, ...]]
    words: Mapping[str, frozenset[str]]
    schema: "_Schema"

    def match(self, section: str, text: str, start: int = 0) -> tuple[Rule, re.Match[str]] | None:
        """Return the first rule of a section that fits, with its match."""
        for rule in self.sections[section]:
            if match := rule.match(text, start):
                return rule, match
        return None

    def fits(self, section: str, text: str) -> bool:
        """Tell whether any rule of a section fits."""
        return self.match(section, text) is not None

    def pattern(self, name: str) -> re.Pattern[str]:
        """Return the pattern of the rule with this name, for sections whose rules have a place of their own."""
        return self._by_name[name].pattern

    @cached_property
    def _by_name(self) -> dict[str, Rule]:
        return {rule.name: rule for rules in self.sections.values() for rule in rules}


class Rules:
    """The built-in packs, with a user's own files added to them.

    Args:
        paths: YAML files, read and checked at once. A file may hold several packs, one document each.

    Raises:
        SettingsError: a file cannot be read, or a rule of it is wrong; the message names both.
    """

    def __init__(self, paths: Iterable[str | Path] = ()) -> None:
        self._packs: dict[str, RulePack] = {}
        if isinstance(paths, str) or not isinstance(paths, Iterable):
            raise SettingsError(f"`rules` must be a list of YAML files, such as ['mine.yaml'], got {paths!r}")
        for given in paths:
            if not isinstance(given, str | Path):
                raise SettingsError(f"`rules` takes paths of YAML files, got {given!r}")
            path = Path(given)
            for document in _documents(path):
                base = self.pack(_built_in_name(document, path))
                self._packs[base.name] = _extended(base, document, str(path))

    def pack(self, name: str) -> RulePack:
        """Return a pack by its name."""
        if (own := self._packs.get(name)) is not None:
            return own
        with _LOADING:  # `cache` alone lets two threads read the same pack at once
            return built_in(name)


@dataclass(frozen=True)
class _Section:
    """What a built-in pack declares of one of its sections."""

    where: str = "anywhere"
    reads: str = "given"
    flags: str = "is"
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class _Schema:
    """What the rules of a pack may say: in which sections, and with which fragments."""

    sections: Mapping[str, _Section]
    fragments: Mapping[str, str]


@cache
def built_in(name: str, *, is_checked: bool = False) -> RulePack:
    """Read a pack that ships.

    Args:
        is_checked: compile every rule and try it on its examples; the tests do, so that no process has to.
    """
    path = _FOLDER / f"{name}.yaml"
    (document,) = _documents(path)
    source, sections = path.name, document.get("sections", {})
    declared = {section: _Section(**(about or {})) for section, about in sections.items()}
    if wrong := [section for section, about in declared.items() if about.where not in _WHERE]:
        raise SettingsError(f"{source}: `where` of section {wrong[0]!r} must be one of {', '.join(_WHERE)}")
    empty = RulePack(name, dict.fromkeys(declared, ()), {}, _Schema(declared, {}))
    return _extended(empty, document, source, is_checked=is_checked)


def _extended(base: RulePack, document: Mapping[str, Any], source: str, *, is_checked: bool = True) -> RulePack:
    """Add what a document says to a pack."""
    for key in document.keys() - {"pack", "sections", "words", "fragments", "rules"}:
        raise SettingsError(f"{source}: unknown key {key!r}; use pack, words, fragments and rules")
    words = dict(base.words)
    for name, text in _entries(document, "words", source):
        words[name] = words.get(name, frozenset()) | _vocabulary(text, name, source)
    vocabularies = {
        name: "|".join(map(re.escape, sorted(entry, key=len, reverse=True))) for name, entry in words.items()
    }
    fragments = {**base.schema.fragments, **vocabularies}
    for name, text in _entries(document, "fragments", source):
        place = f"{source}: fragment {name!r}"
        if not isinstance(text, str) or not text:
            raise SettingsError(f"{place} must be a part of a pattern, got {text!r}")
        fragments[name] = f"(?:{_filled(text, fragments, place)})"
    schema = _Schema(base.schema.sections, fragments)
    sections = dict(base.sections)
    for section, entries in _entries(document, "rules", source):
        if section not in sections:
            raise SettingsError(
                f"{source}: pack {base.name!r} has no section {section!r}; it has {', '.join(sections)}"
            )
        if not isinstance(entries, list):
            raise SettingsError(f"{source}: section {section!r} must be a list of rules")
        sections[section] += tuple(_rule(entry, section, schema, source, is_checked) for entry in entries)
    names = [rule.name for rules in sections.values() for rule in rules]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise SettingsError(f"{source}: two rules are called {twice!r}")
    return RulePack(base.name, sections, words, schema)


def _entries(document: Mapping[str, Any], key: str, source: str) -> Iterable[tuple[str, Any]]:
    entries = document.get(key) or {}
    if not isinstance(entries, Mapping):
        raise SettingsError(f"{source}: `{key}` must be a mapping of names, got {entries!r:.80}")
    return entries.items()


def _rule(entry: object, section: str, schema: _Schema, source: str, is_checked: bool) -> Rule:
    if not isinstance(entry, Mapping) or not isinstance(entry.get("name"), str):
        raise SettingsError(f"{source}: a rule of section {section!r} has no name: {entry!r}")
    place, about = f"{source}: rule {entry['name']!r}", schema.sections[section]
    values = dict(entry)
    values.pop("why", None)
    name, pattern = values.pop("name"), values.pop("pattern", None)
    catches, leaves = (_examples(values.pop(key, None), f"{place}: `{key}`") for key in ("catches", "leaves"))
    if not (isinstance(pattern, str | list) and pattern and all(isinstance(part, str) for part in pattern)):
        raise SettingsError(f"{place}: `pattern` must be a regular expression, or a list of alternatives")
    alternatives = [pattern] if isinstance(pattern, str) else pattern
    text = "|".join(_filled(part, schema.fragments, place) for part in alternatives)
    values = _values(values, about.fields, schema.fragments, place)
    rule = Rule(name, f"(?{about.flags}:{text})", about.where, values)
    if not is_checked:
        return rule
    _compiled(rule.source, place)
    for example in catches:
        if not rule.match(_as_read(example, about)):
            raise SettingsError(f"{place} does not catch its own example {example!r}")
    for example in leaves:
        if rule.match(_as_read(example, about)):
            raise SettingsError(f"{place} catches {example!r}, which it should leave")
    return rule


def _as_read(example: str, about: _Section) -> str:
    return folded(example).low if about.reads == "folded" else example


def _values(
    values: Mapping[str, Any], allowed: Mapping[str, Any], fragments: Mapping[str, str], place: str
) -> dict[str, Any]:
    """Check the fields of a rule against those that its section declares.

    Args:
        values: the fields.
        allowed: by name a list of values, `number`, `text` or `pattern`; with `?` behind it, the field may be missing.
        fragments: parts of patterns.
        place: file and rule, for errors.

    Returns:
        The fields, patterns compiled.
    """
    read = {}
    for key, value in values.items():
        kind = allowed.get(key)
        if kind is None:
            raise SettingsError(
                f"{place}: unknown field {key!r}; allowed are {', '.join(['name', 'pattern', *allowed])}"
            )
        kind = kind if isinstance(kind, list) else kind.removesuffix("?")
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        fits = value in kind if isinstance(kind, list) else is_number if kind == "number" else isinstance(value, str)
        if not fits:
            expected = f"one of {', '.join(map(str, kind))}" if isinstance(kind, list) else f"a {kind}"
            raise SettingsError(f"{place}: {key!r} is {value!r} but must be {expected}")
        read[key] = _compiled(_filled(value, fragments, place), place) if kind == "pattern" else value
    for key in allowed.keys() - values.keys():
        if not str(allowed[key]).endswith("?"):
            raise SettingsError(f"{place}: field {key!r} is missing")
    return read


def _compiled(pattern: str, place: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise SettingsError(f"{place}: not a regular expression: {error}") from error


def _examples(value: object, place: str) -> Sequence[str]:
    examples = [value] if isinstance(value, str) else value
    if not isinstance(examples, list) or not examples or not all(isinstance(one, str) for one in examples):
        raise SettingsError(f"{place} must be an example, or a list of examples")
    return examples


def _filled(pattern: str, fragments: Mapping[str, str], place: str) -> str:
    """Put fragments and vocabularies into a pattern, where it names them; line breaks, indentation and comments go."""

    def fragment(match: re.Match[str]) -> str:
        if match[1] not in fragments:
            raise SettingsError(f"{place}: there is no fragment or vocabulary {match[1]!r}")
        return f"(?:{fragments[match[1]]})"

    if "\n" in pattern:
        lines = (line.strip() for line in pattern.splitlines())
        pattern = "".join(line for line in lines if not line.startswith("# "))
    return _FRAGMENT.sub(fragment, pattern)


def _vocabulary(text: object, name: str, source: str) -> frozenset[str]:
    if isinstance(text, str):
        return frozenset(text.split())
    if isinstance(text, list) and all(isinstance(phrase, str) for phrase in text):
        return frozenset(text)
    raise SettingsError(f"{source}: vocabulary {name!r} must be a string of words or a list of phrases")


def _built_in_name(document: Mapping[str, Any], path: Path) -> str:
    names = sorted(file.stem for file in _FOLDER.glob("*.yaml"))
    name = document.get("pack")
    if name not in names:
        raise SettingsError(f"{path}: `pack` is {name!r} but must be one of {', '.join(names)}")
    return str(name)


def _documents(path: Path) -> Iterator[Mapping[str, Any]]:
    try:
        documents = list(yaml.load_all(path.read_text("utf-8"), Loader=_LOADER))
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"cannot read the rules in {path}: {error}") from error
    except yaml.YAMLError as error:
        raise SettingsError(f"{path} is not YAML: {error}") from error
    for document in documents:
        if not isinstance(document, Mapping):
            raise SettingsError(f"{path}: a rule pack must be a mapping, not {type(document).__name__}")
    yield from documents


BUILT_IN = Rules()
"""The rules that come with Everthread."""
