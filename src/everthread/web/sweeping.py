"""End idle sessions, and delete what is kept no longer, from timers of the worker, where no job does."""

import asyncio
import logging
from collections.abc import Awaitable, Iterable, Mapping
from typing import TypeVar

from everthread.errors import EverthreadError
from everthread.graph.ending import Ending, end_if_idle
from everthread.graph.retaining import aretain
from everthread.state import Agent
from everthread.storage.open import Storage
from everthread.storage.reading import records
from everthread.web.service import in_thread

logger = logging.getLogger(__name__)

T = TypeVar("T")

_DAY_SECONDS = 86_400.0
_MOST = 100
"""Sessions that one round ends; the next round goes on."""


async def sweep_every(storage: Storage, agents: Mapping[str, Agent], idle_seconds: float) -> None:
    """End idle sessions, round by round, until it is cancelled."""
    while True:
        await asyncio.sleep(min(max(idle_seconds / 4, 1.0), 60.0))
        if ended := await _tried(in_thread(sweep, storage, agents, idle_seconds), "idle sessions were not swept"):
            logger.info("ended %d idle sessions", ended)


async def retain_daily(storage: Storage, agents: Iterable[Agent]) -> None:
    """Delete what is kept no longer, now and once a day, until it is cancelled."""
    while True:
        if done := await _tried(aretain(storage, agents, verify=False), "retention could not be seen to"):
            logger.info("retention: %s", done.totals)
        await asyncio.sleep(_DAY_SECONDS)


async def _tried(act: Awaitable[T], failure: str) -> T | None:
    """Return what a round did; None when it failed, since a timer that died would do nothing until the next start."""
    try:
        return await act
    except EverthreadError as error:
        logger.warning("%s: %s", failure, error)
    except Exception:
        logger.exception("%s", failure)
    return None


def sweep(storage: Storage, agents: Mapping[str, Agent], idle_seconds: float) -> int:
    """End the sessions that nobody has gone on with, and return how many; those in use are left alone.

    Args:
        agents: by their names in the records; others count as `recorded_agent` has them.
        idle_seconds: without activity.
    """
    ended = 0
    for record in records(storage.store):
        outcome = end_if_idle(storage, record["thread_id"], idle_seconds, agents)
        if isinstance(outcome, Ending):
            ended += 1
            if outcome.failure:
                logger.warning("thread %r could not be consolidated: %s", outcome.thread_id, outcome.failure)
        if ended == _MOST:
            break
    return ended
