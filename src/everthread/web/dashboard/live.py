"""Server-sent events for whoever watches a thread: HTML that the page puts in place."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from everthread.web.dashboard.views import Visit
from everthread.web.operations import PING, PING_SECONDS
from everthread.web.problems import Problem
from everthread.web.runs import LiveRun

TICK_SECONDS = 0.1
LOOK_SECONDS = 1.0
"""Between two looks at what another worker, or another program, does on the thread."""


async def watch(
    visit: Visit,
    thread_id: str,
    state: Callable[[LiveRun | None], object],
    changed: Callable[[LiveRun | None], AsyncIterator[tuple[str, str]]],
) -> AsyncIterator[bytes]:
    """Yield events as `text/event-stream` has them, until the server stops.

    Args:
        visit: who watches.
        state: what the page depends on, as far as this worker's run tells.
        changed: what to send when that is different, or when another worker did something.
    """
    sent: object = ...
    record: Mapping[str, Any] | None = None
    looked = told = 0.0
    try:
        while not visit.service.runs.is_closed:
            now, live = time.monotonic(), visit.service.runs.on_thread(thread_id)
            newest = record
            if now - looked > LOOK_SECONDS:
                newest, looked = await visit.service.record(visit.identity, thread_id), now
            if (state(live), newest) != sent:
                sent, record, told = (state(live), newest), newest, now
                async for kind, html in changed(live):
                    yield event(kind, html)
            elif now - told > PING_SECONDS:
                told = now
                yield PING
            await asyncio.sleep(TICK_SECONDS)
    except Problem:
        # The thread was erased meanwhile.
        return


def event(kind: str, html: str) -> bytes:
    """Return a server-sent event."""
    lines = "".join(f"data: {line}\n" for line in html.splitlines())
    return f"event: {kind}\n{lines}\n".encode()
