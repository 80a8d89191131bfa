"""No pattern of the package takes more than linear time, whatever text it meets."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
import yaml

import everthread.memory.rules
from attack.conftest import AttackRow
from attack.scale import SCALE
from text_growth import LINEAR, cpu_seconds, growth

ROOT = Path(__file__).parents[2]
SIZE = 300 if SCALE <= 1 else 10_000
"""Letters of the smaller text; the larger one is ten times as long."""
SURE_SIZE = max(SIZE, 1_000)
"""Letters of the smaller text for a pattern that seems to grow too fast: a bounded repeat does so in a short text."""
TOO_LONG = 3.0
"""Seconds of CPU for the smaller text after which the growth up to it has to do."""

SHAPES = (
    *("-", " ", "7", "a", "A", "(", "a@", "0-0-", "\n", '"', "'", "<!--", "https://a", "\u200b", "中", "é", "_", "0x"),
    *("a ", "A1 ", "i ", "a, ", "- ", ". ", "1,", "`", "> ", "no, ", "it's ", "%20", "&#", "/a", "a.", "a-", "A-1-"),
    *("\t ", "| ", "'a", "[1] ", "12:30 ", '{"a": ', "ab\n", "\r\n", "to "),
)


def _collected() -> dict[str, list[list[str]]]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    collector = Path(__file__).with_name("pattern_collector.py")
    run = subprocess.run([sys.executable, str(collector)], env=environment, capture_output=True, check=True, text=True)
    patterns: dict[str, list[list[str]]] = json.loads(run.stdout)
    return patterns


@cache
def _examples() -> dict[str, list[str]]:
    """Return what each rule of the packs says that it catches, by the place that the collector gives it."""
    examples = {}
    for path in Path(everthread.memory.rules.__file__).parent.glob("*.yaml"):
        for section, rules in yaml.safe_load(path.read_text("utf-8")).get("rules", {}).items():
            for rule in rules:
                catches = rule["catches"]
                place = f"{path.stem}.yaml: {section}: {rule['name']}"
                examples[place] = [catches] if isinstance(catches, str) else catches
    return examples


def _units(number: int, pattern: str, place: str) -> Iterator[str]:
    """Yield what a text may repeat: shapes, words of the pattern itself, and what a rule catches, cut off.

    In the short form every pattern meets a quarter of the shapes.
    """
    yield from SHAPES if SCALE > 1 else SHAPES[number % 4 :: 4]
    literals = re.findall(r"(?<![\\\w])[A-Za-z]{2,12}(?![\w\]])", pattern)
    yield from (f"{word} " for word in literals[:2])
    yield " ".join(literals[:12]) + " "
    yield " ".join(literals[-6:]) + ", "
    for example in _examples().get(place, [])[:2]:
        yield f"{example.rsplit(' ', 1)[0]} "
        yield f"{example}; "


def _text(unit: str, size: int) -> str:
    return (unit * (size // len(unit) + 1))[:size]


def _growth(pattern: re.Pattern[str], where: str, unit: str) -> float:
    """Return how many times longer a pattern takes for ten times the text; a text that takes too long is not tried."""

    def look(size: int) -> None:
        """Look for the pattern where its rule does: at the start of a text, or all over it."""
        text = _text(unit, size)
        if where == "anywhere":
            for _match in pattern.finditer(text):
                pass
        elif where == "start":
            pattern.match(text)
        else:
            pattern.fullmatch(text)

    times = _growth_at(look, SIZE)
    return times if times <= LINEAR or SIZE == SURE_SIZE else _growth_at(look, SURE_SIZE)


def _growth_at(look: Callable[[int], None], size: int) -> float:
    first, before = cpu_seconds(look, size // 10), 0.0
    if first < TOO_LONG / 10:
        before = cpu_seconds(look, size)
    if first >= TOO_LONG / 10 or before >= TOO_LONG:
        return before / first or float("inf")
    return growth(look, size)


def _files(collected: dict[str, list[list[str]]]) -> set[str]:
    return {place.split(":")[0].rsplit("/", 1)[-1] for _, _, place, _ in collected["patterns"]}


@pytest.fixture(scope="module")
def collected() -> dict[str, list[list[str]]]:
    return _collected()


def test_every_pattern_is_collected(collected: dict[str, list[list[str]]]) -> None:
    assert collected["unseen"] == []  # put together in a function that the collector does not reach
    assert {"identifiers.py", "dates.py", "attacks.yaml", "values.yaml"} <= _files(collected)


@pytest.mark.parametrize("part", range(4))
def test_no_pattern_grows_faster_than_the_text(
    part: int, collected: dict[str, list[list[str]]], attack_row: AttackRow
) -> None:
    grown = []
    tries = 0
    for number, (text, flags, place, where) in enumerate(collected["patterns"][part::4]):
        pattern = re.compile(text, int(flags))
        for unit in dict.fromkeys(_units(number, text, place)):
            tries += 1
            if (times := _growth(pattern, where, unit)) > LINEAR:
                grown.append(f"{place}: {times:.0f} times for ten times {unit!r}: {text[:100]}")
                break
    attack_row("patterns in linear time", tries, len(grown))

    assert not grown, "\n".join(grown)
