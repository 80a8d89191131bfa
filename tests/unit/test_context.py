"""The dials."""

from typing import Any

import pytest
from pydantic import TypeAdapter

from everthread.errors import SettingsError
from everthread.state import Context


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"low_watermark": 0.8, "high_watermark": 0.7}, "low_watermark"),
        ({"high_watermark": 1.0}, "high_watermark"),
        ({"opinion_seconds": 1e10}, "opinion_seconds"),  # no thread can wait for so long
        ({"context_limit": 3, "keep_last_turns": 3}, "keep_last_turns"),
        ({"window": 4000, "max_output_tokens": 4000}, "max_output_tokens"),
        ({"window": 0}, "window"),
        ({"window": 10.5}, "window"),
        ({"window": 10**24}, "`window` is at most 1,000,000,000 tokens"),
        ({"safety_fraction": 0}, "safety_fraction"),
        ({"policy": "lru"}, "policy"),
        ({"distillation": ["always"]}, "distillation"),
        ({"user_id": ""}, "user_id"),
        ({"model": "foo"}, "model"),
        ({"model": 3}, "model"),
        ({"pins": [5]}, "pins"),
        ({"pins": None}, "`pins` takes a list of texts, got None"),
        ({"distillation": None}, "`distillation` takes a list of texts, got None"),
        ({"distillation": 3}, "`distillation` takes a list of texts, got 3"),
        ({"keep_last_turns": True}, "keep_last_turns"),
        ({"keep_checkpoints": 0}, "keep_checkpoints"),
        ({"windw": 1}, "windw"),
    ],
)
def test_nonsense_is_refused_by_name(values: dict[str, Any], told: str) -> None:
    with pytest.raises(SettingsError, match=told):
        Context.from_mapping(values)


def test_the_defaults_are_valid() -> None:
    assert Context().low_watermark < Context().high_watermark


def test_lists_from_json_become_tuples() -> None:
    assert Context(pins=["a"], distillation=["tool", "turn"]).distillation == ("tool", "turn")  # type: ignore[arg-type]


def test_a_single_word_is_a_list_of_one() -> None:
    assert Context(distillation="turn").distillation == ("turn",)  # type: ignore[arg-type]


def test_every_dial_has_a_title_a_description_and_a_default() -> None:
    dials = TypeAdapter(Context).json_schema()["properties"]

    assert all({"title", "description", "default"} <= set(dial) for dial in dials.values())
