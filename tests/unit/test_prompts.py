"""Prompt files."""

import pytest

from everthread.errors import SettingsError
from everthread.prompts import render

FIELDS = {"words": "200", "sections": "s", "summary": "x", "messages": "m"}


def test_a_prompt_is_filled() -> None:
    assert "at most 200 words" in render("summarize", **FIELDS)


def test_a_missing_field_is_refused() -> None:
    with pytest.raises(SettingsError, match="needs the field 'messages'"):
        render("summarize", **{name: value for name, value in FIELDS.items() if name != "messages"})


def test_an_unused_field_is_refused() -> None:
    with pytest.raises(SettingsError, match="has no field 'extra'"):
        render("summarize", **FIELDS, extra="?")


def test_braces_in_a_value_are_text() -> None:
    assert "{{words}}" in render("summarize", **{**FIELDS, "messages": "{{words}}"})


def test_an_unknown_prompt_is_refused() -> None:
    with pytest.raises(SettingsError, match="no prompt"):
        render("nothing")
