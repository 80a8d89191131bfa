"""The runs that go on in this process: each a task of its own, which the client that began it may leave.

Nothing else is kept in memory. A run has the id of the message that began it, so any worker can tell from the thread
what became of it.
"""

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import PydanticSerializationError, to_json

from everthread.graph.turn_parts import Asked, Call, Decision, NodeDone, Part, Result, Text
from everthread.ledger.record import now
from everthread.state.reducer import clean_content
from everthread.web.problems import Problem, other_message, problem_of
from everthread.web.schemas import Run

logger = logging.getLogger(__name__)

_LOOK_SECONDS = 1.0
"""Between two looks at whether another worker was asked to cancel a run."""

_STOPPING = "the server is stopping; try again, another worker may answer"


@dataclass(frozen=True)
class Event:
    """One event of a run's stream."""

    id: str
    kind: str
    data: Any
    """What JSON can hold, or has a text."""

    def encode(self) -> bytes:
        """Return it as `text/event-stream` has it."""
        try:
            data = _json(self.data)
        except PydanticSerializationError:
            # Half of a surrogate pair, which some models send at the end of a token.
            data = _json(clean_content(self.data))
        return b"id: %s\nevent: %s\ndata: %s\n\n" % (self.id.encode(), self.kind.encode(), data)


def _json(data: Any) -> bytes:
    return to_json(data, fallback=str, inf_nan_mode="null")


@dataclass(eq=False)
class LiveRun:
    """A run that goes on, with the events of its stream so far."""

    run_id: str
    thread_id: str
    words: Any = None
    """Of the message that is answered."""
    answers: Any = None
    """With which a turn goes on; None of one that begins."""
    events: list[Event] = field(default_factory=list)
    began: str = field(default_factory=now)
    result: Run | None = None
    """What became of it; None while it goes on, and when it failed."""
    problem: Problem | None = None
    is_over: bool = False
    _attempt: str = field(default_factory=lambda: secrets.token_hex(4))
    _more: asyncio.Event = field(default_factory=asyncio.Event)
    _task: asyncio.Task[None] | None = None
    _is_taken: bool = False
    _stopped: Problem | None = None

    def emit(self, kind: str, data: Any) -> None:
        """Add an event."""
        self.events.append(Event(f"{self._attempt}.{len(self.events)}", kind, data))
        self._wake()

    def take(self) -> None:
        """Say that the run has its thread, and its input is saved."""
        if not self._is_taken:
            self._is_taken = True
            self._wake()

    async def taken(self) -> None:
        """Wait until the run has its thread, however long its first step takes, or is over.

        Raises:
            Problem: it was refused.
        """
        while not self._is_taken and not self.is_over:
            await self._more.wait()
        if self.problem is not None and not self._is_taken:
            raise self.problem

    def _wake(self) -> None:
        # Whoever waits is woken by the old one and waits for the new one next.
        self._more.set()
        self._more = asyncio.Event()

    async def begun(self) -> None:
        """Wait until the run has shown more than its id, or is over.

        Raises:
            Problem: it was refused, which comes before anything else.
        """
        while len(self.events) < 2 and not self.is_over:
            await self._more.wait()
        if self.problem is not None and len(self.events) <= 2:
            raise self.problem

    async def over(self) -> None:
        """Wait until the run is over."""
        while not self.is_over:
            await self._more.wait()

    async def follow(self, last_id: str = "") -> AsyncIterator[Event]:
        """Yield the events behind the one of this id, as they come; all of them when this run has none like it."""
        seen = next((number for number, one in enumerate(self.events, 1) if one.id == last_id), 0)
        while True:
            while seen < len(self.events):
                seen += 1
                yield self.events[seen - 1]
            if self.is_over:
                return
            await self._more.wait()

    def cancel(self) -> None:
        """Stop the run as its client has asked."""
        self.stop(Problem(409, "the run was cancelled; the turn is kept, and `resume` goes on with it"))

    def stop(self, problem: Problem) -> None:
        """End the run: its thread is free when it is over, and its turn can be taken up anywhere."""
        if self._task is not None and not self.is_over:
            self._stopped = self._stopped or problem
            self._task.cancel()


class Runs:
    """Begins, finds and ends runs.

    Args:
        is_cancelled: tells whether another worker was asked to cancel a run.
        most: runs at a time; more are refused.
    """

    def __init__(self, is_cancelled: Callable[[LiveRun], Awaitable[bool]], *, most: int) -> None:
        self._is_cancelled = is_cancelled
        self._most = most
        self._live: dict[tuple[str, str], LiveRun] = {}
        self.on_begin: Callable[[LiveRun], None] = lambda live: None
        """Hears of each run as it begins: a short one is over before anybody who looks from time to time sees it."""
        self.is_closed = False
        """New runs are refused: the server is stopping."""

    def find(self, thread_id: str, run_id: str) -> LiveRun | None:
        """Return a run that goes on here."""
        return self._live.get((thread_id, run_id))

    def on_thread(self, thread_id: str) -> LiveRun | None:
        """Return the run on a thread that goes on here."""
        return next((live for (thread, _), live in self._live.items() if thread == thread_id), None)

    def is_live(self, thread_id: str) -> bool:
        """Tell whether a run on a thread goes on here."""
        return self.on_thread(thread_id) is not None

    def begin(
        self,
        new: LiveRun,
        parts: Callable[[], AsyncIterator[Part]],
        outcome: Callable[[], Awaitable[Run]],
    ) -> LiveRun:
        """Begin a run, or return the one of the same id that goes on already.

        Args:
            new: the run.
            parts: runs the graph, and tells what happens.
            outcome: reads afterwards what became of the run.

        Raises:
            Problem: 409, the run that goes on answers another message; 503, the server is stopping or has too many
                runs.
        """
        if (live := self.find(new.thread_id, new.run_id)) is not None:
            if live.words != new.words:
                raise other_message()
            return live
        if self.is_closed:
            raise Problem(503, _STOPPING, Retry_After="1")
        if len(self._live) >= self._most:
            raise Problem(503, f"this worker has {self._most:,} runs already; try again", Retry_After="5")
        self._live[new.thread_id, new.run_id] = new
        new.emit("run", {"id": new.run_id, "thread_id": new.thread_id})
        new._task = asyncio.create_task(self._run(new, parts, outcome))
        # Not in the task itself: one that is cancelled before its first step runs no line of it.
        new._task.add_done_callback(lambda _: self._end(new))
        self.on_begin(new)
        return new

    async def _run(
        self,
        live: LiveRun,
        parts: Callable[[], AsyncIterator[Part]],
        outcome: Callable[[], Awaitable[Run]],
    ) -> None:
        watch = asyncio.create_task(self._watch(live))
        try:
            async for part in parts():
                live.emit(*_event_of(part))
            live.result = await outcome()
        except Exception as error:  # noqa: BLE001 - a tool or a model of the user's may raise anything
            live.problem = problem_of(error)
        finally:
            watch.cancel()

    def _end(self, live: LiveRun) -> None:
        del self._live[live.thread_id, live.run_id]
        if live.result is None and live.problem is None:
            live.problem = live._stopped or Problem(503, _STOPPING)
        live.is_over = True
        if live.problem is None:
            live.emit("done", live.result)
        else:
            logger.info("run %r of thread %r: %s", live.run_id, live.thread_id, live.problem.detail)
            live.emit("error", live.problem.as_json())

    async def _watch(self, live: LiveRun) -> None:
        with suppress(Exception):
            while True:
                await asyncio.sleep(_LOOK_SECONDS)
                if await self._is_cancelled(live):
                    live.cancel()

    async def close(self, grace_seconds: float) -> None:
        """Take no new runs, let those that go on finish, and cancel what is left when the time is over."""
        self.is_closed = True
        going = list(self._live.values())
        if not going:
            return
        logger.info("stopping: %d runs have %g s to finish", len(going), grace_seconds)
        over = asyncio.gather(*(live.over() for live in going))
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(over), grace_seconds)
        for live in going:
            live.stop(Problem(503, "the server stopped; the turn is kept, and `resume` goes on with it"))
        await over


def _event_of(part: Part) -> tuple[str, Any]:
    match part:
        case Text():
            return "token", {"text": part.text, "message_id": part.message_id}
        case Call():
            return "tool_call", {"id": part.id, "name": part.name, "args": part.arguments}
        case Result():
            status = "error" if part.failed else "success"
            return "tool_result", {"id": part.call_id, "name": part.name, "status": status, "content": part.text}
        case Decision():
            return "ledger", part.event
        case NodeDone():
            return "update", {"node": part.node}
        case Asked():
            return "interrupt", {"interrupts": [{"id": one.id, "value": one.value} for one in part.interrupts]}
