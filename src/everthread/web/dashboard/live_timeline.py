"""The timelines that are being watched, each made once for all who watch it.

A page gets the whole timeline when it connects, and then, for each change, the newest prompt and the calls of the
newest turn. What a run here decides is in its own stream, so only what others do is read from the database.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from langgraph.store.base import GetOp

from everthread.ledger import EVENTS, Event
from everthread.ledger.events import PinRepaired, PromptAssembled
from everthread.ledger.record import STREAM_KEY
from everthread.state import namespaces
from everthread.web.dashboard.live import LOOK_SECONDS, TICK_SECONDS, event
from everthread.web.dashboard.render import render
from everthread.web.dashboard.timeline import changes_of, newest_events, timeline, timeline_values
from everthread.web.operations import PING, PING_SECONDS
from everthread.web.problems import problem_of
from everthread.web.runs import LiveRun
from everthread.web.service import Service, in_thread, summary_of

_MOST_WAITING = 64
"""Changes that may wait for a slow reader, whose connection is closed then; the browser opens it again."""


class _Change(NamedTuple):
    """What is sent of a change."""

    since: str
    """When the turn that is now the newest began, as its first event says."""
    past: bytes
    """The calls of the turn that was the newest until now; empty when it still is."""
    now: bytes


class LiveTimelines:
    """The timelines that are being watched on this worker, looked after by one task."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._watched: dict[tuple[str, str], _Watched] = {}
        self._task: asyncio.Task[None] | None = None
        service.runs.on_begin = self._begun

    def _begun(self, run: LiveRun) -> None:
        for watched in self._watched.values():
            if watched.thread_id == run.thread_id:
                watched.begun(run)

    async def follow(self, at: str, record: Mapping[str, Any]) -> AsyncIterator[bytes]:
        """Yield the timeline as `text/event-stream` has it, and each change, until the server stops.

        Args:
            at: where the dashboard is for the watcher.
            record: of the thread, which was found to be the watcher's.
        """
        thread_id, waiting = str(record["thread_id"]), asyncio.Queue[_Change | None]()
        runs = self._service.runs
        watched = self._watched.setdefault((at, thread_id), _Watched(at, record, runs.on_thread(thread_id)))
        # First of all, so that no change is missed; one that the whole timeline has already does no harm.
        watched.waiting.add(waiting)
        try:
            values = await in_thread(timeline_values, self._service.storage, record)
            if not watched.is_ready:
                watched.add(await in_thread(newest_events, self._service.storage, thread_id, ""))
                watched.is_ready = True
            yield event("timeline", render("timeline.html", {"at": at, "thread": summary_of(record), **values}))
            sent = values["newest"].event.at if values["newest"] else ""
            if self._task is None:
                self._task = asyncio.create_task(self._look_after())
            while (change := await waiting.get()) is not None:
                yield change.past + change.now if change.since > sent else change.now
                sent = max(change.since, sent)
        finally:
            watched.waiting.discard(waiting)
            if not watched.waiting and self._watched.get((at, thread_id)) is watched:
                del self._watched[at, thread_id]

    async def _look_after(self) -> None:
        """Send what changes, for as long as somebody watches."""
        clock = asyncio.get_running_loop().time
        looked = told = clock()
        try:
            while self._watched and not self._service.runs.is_closed:
                await asyncio.sleep(TICK_SECONDS)
                for watched in list(self._watched.values()):
                    if watched.is_ready:
                        watched.take()
                if clock() - looked > LOOK_SECONDS:
                    looked = clock()
                    with suppress(Exception):
                        await self._look()
                if clock() - told > PING_SECONDS:
                    told = clock()
                    for watched in list(self._watched.values()):
                        watched.send(_Change("", b"", PING))
        except Exception as error:  # noqa: BLE001 - it is logged; the browsers connect again
            problem_of(error)
        finally:
            self._task = None
            for watched in list(self._watched.values()):
                watched.send(None)

    async def _look(self) -> None:
        """Look what other workers and programs did, at all threads in one reading."""
        every = [one for one in self._watched.values() if one.is_ready]
        reads = [GetOp(namespaces.SESSIONS, one.thread_id) for one in every]
        items: list[Any] = await self._service.storage.store.abatch(reads)
        for watched, item in zip(every, items, strict=True):
            if item is None or item.value.get("user_id") != watched.record.get("user_id"):
                # It was erased.
                watched.send(None)
            elif watched.is_new(item.value):
                found = await in_thread(newest_events, self._service.storage, watched.thread_id, watched.since)
                watched.add(found)


class _Watched:
    """One thread that somebody watches, from one address of the dashboard."""

    def __init__(self, at: str, record: Mapping[str, Any], run: LiveRun | None) -> None:
        self._at = at
        self.thread_id = str(record["thread_id"])
        self.record = record
        self._turn = 0
        """The newest turn that is known; a fork goes back to an earlier one."""
        self.since = self._until = ""
        """When the first and the last of its events were."""
        self.is_ready = False
        """The newest turn was read."""
        self.waiting: set[asyncio.Queue[_Change | None]] = set()
        self._events: dict[str, Event] = {}
        """Of the newest turn, by what they are, since one can come from the run and from the database."""
        self._runs: list[tuple[LiveRun, int]] = [] if run is None else [(run, 0)]
        """Runs here, each with how many of its parts were looked at."""
        self._had_run = False
        """A run went on here since the last look at the database."""

    def begun(self, run: LiveRun) -> None:
        """Hear of a run here."""
        self._runs.append((run, 0))

    def take(self) -> None:
        """Take what runs here decided since the last time."""
        if not self._runs:
            return
        self._had_run = True
        new = [one.data for run, read in self._runs for one in run.events[read:] if one.kind == "ledger"]
        self._runs = [(run, len(run.events)) for run, _ in self._runs if not run.is_over]
        if new:
            self.add([EVENTS.validate_python({k: v for k, v in one.items() if k != STREAM_KEY}) for one in new])

    def is_new(self, record: Mapping[str, Any]) -> bool:
        """Tell whether a record says that something was done elsewhere, and remember it."""
        is_new = record != self.record and not self._had_run
        self.record, self._had_run = record, False
        return is_new

    def add(self, new: Sequence[Event]) -> None:
        """Add events, and send what they change."""
        past: dict[str, Event] = {}
        for one in new:
            if one.turn > self._turn or (one.turn < self._turn and one.at > self._until):
                past, self._events = {**past, **self._events}, {}
                self._turn, self.since, self._until = one.turn, one.at, one.at
            if one.turn == self._turn:
                self._events[f"{one.at} {one.model_dump_json()}"] = one
                self._until = max(self._until, one.at)
        if past or any(isinstance(one, PromptAssembled | PinRepaired) or changes_of([one]) for one in new):
            self.send(self._change(list(past.values())))

    def send(self, change: _Change | None) -> None:
        """Send something to all who watch; None ends their streams."""
        for one in self.waiting:
            one.put_nowait(None if one.qsize() > _MOST_WAITING else change)

    def _change(self, past: Sequence[Event]) -> _Change:
        rows, since = timeline(self._events.values())
        shared = {"at": self._at, "thread": summary_of(self.record)}
        ended = timeline(past)[0]
        done = event("past", render("rows.html", {**shared, "rows": ended[::-1], "since": []})) if ended else b""
        now = event("current", render("rows.html", {**shared, "rows": rows[::-1], "since": since}))
        if rows:
            now += event("newest", render("newest.html", {**shared, "newest": rows[-1]}))
        return _Change(self.since, done, now)
