"""What a worker may be limited to."""

import math
from typing import Any

import pytest

from everthread.errors import SettingsError
from everthread.web import Limits


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("runs", 0),
        ("body_bytes", 0),
        ("requests_per_minute", -1),
        ("grace_seconds", math.nan),
        ("ready_seconds", "2s"),
        ("sweep_idle_seconds", math.nan),
        ("sweep_idle_seconds", -1),
        pytest.param("ready_seconds", 10**400, id="huge"),
    ],
)
def test_a_limit_that_nothing_could_pass_is_refused(name: str, value: Any) -> None:
    with pytest.raises(SettingsError, match=f"`{name}` of `Limits` must be a number from"):
        Limits(**{name: value})
