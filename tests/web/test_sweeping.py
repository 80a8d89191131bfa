"""The timers of a worker outlive what goes wrong in a round."""

import asyncio
import logging
from typing import Any

import pytest

from everthread.web import sweeping


@pytest.mark.parametrize("failure", [OSError("the disk is gone"), KeyError("thread_id")])
async def test_a_timer_outlives_a_round_that_fails(
    failure: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    rounds = asyncio.Queue[None]()

    async def failing(*_: Any, **__: Any) -> None:
        rounds.put_nowait(None)
        raise failure

    monkeypatch.setattr(sweeping, "aretain", failing)
    monkeypatch.setattr(sweeping, "_DAY_SECONDS", 0.0)
    caplog.set_level(logging.ERROR)
    storage: Any = None  # nothing reads it here

    timer = asyncio.create_task(sweeping.retain_daily(storage, ()))
    for _ in range(2):
        await asyncio.wait_for(rounds.get(), 5)
    timer.cancel()

    assert "retention could not be seen to" in caplog.text
