"""Server-sent events for whoever watches a thread: HTML that the page puts in place."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from starlette.responses import StreamingResponse

from everthread.web.dashboard.render import render
from everthread.web.dashboard.timeline_page import timeline_values
from everthread.web.dashboard.views import Visit
from everthread.web.problems import Problem
from everthread.web.runs import LiveRun
from everthread.web.service import in_thread, summary_of

__all__ = ["live_timeline", "stream", "watch"]

_TICK_SECONDS = 0.1
_LOOK_SECONDS = 1.0
"""Between two looks at what another worker, or another program, does on the thread."""

_PING_SECONDS = 15.0


def live_timeline(visit: Visit, thread_id: str) -> StreamingResponse:
    """Send the timeline at once, and again whenever the ledger of a run grows."""

    async def changed(live: LiveRun | None) -> AsyncIterator[tuple[str, str]]:
        record = await visit.service.record(visit.identity, thread_id)
        values = await in_thread(timeline_values, visit.service.storage, record)
        shared = {**visit.shared, "thread": summary_of(record), "is_live": live is not None, **values}
        yield "timeline", render("timeline.html", shared)

    read, decisions = 0, 0

    def state(live: LiveRun | None) -> object:
        nonlocal read, decisions
        new = live.events[read:] if live else []
        # Only what is new is looked at: a long reply has thousands of events.
        read, decisions = read + len(new) if live else 0, decisions + sum(event.kind == "ledger" for event in new)
        return live and live.run_id, decisions

    return stream(watch(visit, thread_id, state, changed))


async def watch(
    visit: Visit,
    thread_id: str,
    state: Callable[[LiveRun | None], object],
    changed: Callable[[LiveRun | None], AsyncIterator[tuple[str, str]]],
) -> AsyncIterator[bytes]:
    """Yield events as `text/event-stream` has them, until the server stops.

    Args:
        visit: who watches.
        thread_id: the thread.
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
            if now - looked > _LOOK_SECONDS:
                newest, looked = await visit.service.record(visit.identity, thread_id), now
            if (state(live), newest) != sent:
                sent, record, told = (state(live), newest), newest, now
                async for kind, html in changed(live):
                    yield _event(kind, html)
            elif now - told > _PING_SECONDS:
                told = now
                yield b": still there\n\n"
            await asyncio.sleep(_TICK_SECONDS)
    except Problem:
        # The thread was erased meanwhile.
        return


def _event(kind: str, html: str) -> bytes:
    lines = "".join(f"data: {line}\n" for line in html.splitlines())
    return f"event: {kind}\n{lines}\n".encode()


def stream(events: AsyncIterator[bytes]) -> StreamingResponse:
    """Return the events as a response."""
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return StreamingResponse(events, media_type="text/event-stream", headers=headers)
