"""Rule packs: the built-in ones, and those of a user."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Barrier, BrokenBarrierError
from typing import Any

import pytest
import yaml

from everthread.errors import SettingsError
from everthread.memory import rules
from everthread.memory.rules import Rules, built_in
from everthread.memory.text.constraints import constraints_in

PACKS = sorted(path.stem for path in Path(rules.__file__).parent.glob("*.yaml"))
OWN = """
pack: constraints
words: {heads: [department head, boss]}
rules:
  standing:
    - name: head-agrees
      why: our rule
      pattern: 'wait for the {heads}'
      catches: Please wait for the boss.
      leaves: I am the boss.
"""


@pytest.mark.parametrize("name", PACKS)
def test_every_rule_that_ships_catches_and_leaves_its_examples(name: str) -> None:
    pack = built_in(name, is_checked=True)

    assert pack.sections or pack.words


def test_reading_a_pack_that_ships_compiles_no_rule() -> None:
    pack = built_in.__wrapped__("values")

    assert not any("pattern" in vars(rule) for section in pack.sections.values() for rule in section)


def test_two_threads_read_a_pack_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read, both = [], Barrier(2)
    documents = rules._documents

    def counted(path: Path) -> Any:
        read.append(path)
        with suppress(BrokenBarrierError):
            both.wait(0.05)  # passes at once if the other thread reads too
        return documents(path)

    monkeypatch.setattr(rules, "_documents", counted)
    built_in.cache_clear()
    with ThreadPoolExecutor(2) as threads:
        one, other = threads.map(Rules().pack, ["excuses"] * 2)

    assert one is other
    assert len(read) == 1


@pytest.mark.parametrize("name", PACKS)
def test_a_pack_is_read_without_the_c_loader_too(name: str) -> None:
    path = Path(rules.__file__).with_name(f"{name}.yaml")

    assert yaml.load(path.read_text("utf-8"), yaml.SafeLoader)["pack"] == name


def written(folder: Path, text: str) -> Path:
    path = folder / "own.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_pack_of_ones_own_adds_to_the_built_in_one(tmp_path: Path) -> None:
    mine = Rules([written(tmp_path, OWN)])

    assert constraints_in("They wait for the department head.", mine) == ["They wait for the department head."]
    assert constraints_in("Never call my office.", mine) == ["Never call my office."]
    assert constraints_in("They wait for the department head.") == []


def test_a_pattern_on_several_lines_may_have_comments(tmp_path: Path) -> None:
    lines = "|-\n        # whom to wait for\n        wait for the {heads}\n          |ask {heads}"
    mine = Rules([written(tmp_path, OWN.replace("'wait for the {heads}'", lines))])

    (rule,) = [rule for rule in mine.pack("constraints").sections["standing"] if rule.name == "head-agrees"]
    assert rule.pattern.pattern == "(?is:wait for the (?:department\\ head|boss)|ask (?:department\\ head|boss))"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("pack: nothing", "must be one of"),
        ("- one", "must be a mapping"),
        ("a: [", "not YAML"),
        ("pack: constraints\nextra: 1", "unknown key 'extra'"),
        ("pack: constraints\nwords: {few: 3}", "vocabulary 'few'"),
        ("pack: constraints\nwords: [few]", "`words` must be a mapping"),
        ("pack: constraints\nfragments: few", "`fragments` must be a mapping"),
        ("pack: constraints\nfragments: {few: }", "fragment 'few' must be"),
        ("pack: constraints\nrules: [standing]", "`rules` must be a mapping"),
        ("pack: constraints\nrules: {orders: []}", "no section 'orders'"),
        ("pack: constraints\nrules: {standing: {a: b}}", "a list of rules"),
        ("pack: constraints\nrules: {standing: [pattern]}", "has no name"),
        (OWN.replace("{heads}", "{tails}"), "no fragment or vocabulary 'tails'"),
        (OWN.replace("'wait", "'(wait"), "'head-agrees': not a regular expression"),
        (OWN.replace("the boss.", "the king."), "'head-agrees' does not catch"),
        (OWN.replace("I am the boss", "I wait for the boss"), "'head-agrees' catches"),
        (OWN.replace("why:", "because:"), "'head-agrees': unknown field 'because'"),
        (OWN.replace("      catches: Please wait for the boss.\n", ""), "'head-agrees': `catches` must be"),
        (OWN.replace("head-agrees", "order"), "two rules are called 'order'"),
    ],
)
def test_a_bad_pack_is_refused_by_file_and_rule(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SettingsError, match=r"own\.yaml") as error:
        Rules([written(tmp_path, text)])

    assert message in str(error.value)


def test_one_path_in_place_of_a_list_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"must be a list of YAML files, such as \['mine.yaml'\]"):
        Rules("mine.yaml")


def test_what_is_no_path_is_refused() -> None:
    with pytest.raises(SettingsError, match="takes paths of YAML files, got None"):
        Rules([None])  # type: ignore[list-item]


def test_a_pack_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot read the rules"):
        Rules([tmp_path / "missing.yaml"])
