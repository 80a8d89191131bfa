"""The style of the pages."""

import re
from importlib.resources import files

import pytest

STYLE = files("everthread.evals").joinpath("templates/page.css").read_text(encoding="utf-8")
LIGHT, DARK = (dict(re.findall(r"--(\w+): (#\w{6})", block)) for block in re.findall(r":root \{(.*?)\}", STYLE, re.S))


def brightness(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted((brightness(one), brightness(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_text_stands_out_from_every_ground_by_what_wcag_asks(colours: dict[str, str]) -> None:
    pairs = [(text, ground) for text in ("ink", "soft", "accent", "bad") for ground in ("paper", "card", "ours")]

    assert [pair for pair in pairs if contrast(colours[pair[0]], colours[pair[1]]) < 4.5] == []


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_marks_of_charts_stand_out_by_what_wcag_asks(colours: dict[str, str]) -> None:
    marks = ("c1", "c2", "c3", "c4", "c5", "c6", "c7", "full", "mid", "weak", "bad")

    assert [mark for mark in marks if contrast(colours[mark], colours["card"]) < 3] == []
