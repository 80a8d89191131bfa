"""A conversation with the graph: run a turn, watch what happens in it, answer what it asks."""

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.types import Command, Interrupt

from everthread.graph.ending import is_open
from everthread.graph.guard import GuardedGraph
from everthread.graph.turn_parts import STREAM_MODES, Asked, Call, Decision, Part, Result, TurnReader
from everthread.state import Context

T = TypeVar("T")

Decide = Callable[[Interrupt], Any]
"""Shows what a run asks and returns the answer that the run resumes with."""


@dataclass
class Turn:
    """What happened in a turn."""

    reply: str = ""
    calls: dict[str, Call] = field(default_factory=dict)
    """By call id, in the order they were made."""
    results: dict[str, str] = field(default_factory=dict)
    """What the calls that ran returned, by call id."""
    events: list[dict[str, Any]] = field(default_factory=list)
    asked: list[tuple[Any, Any]] = field(default_factory=list)
    """What the run asked and what was answered."""

    def named(self, event: str) -> list[dict[str, Any]]:
        """Return the events of one kind, oldest first."""
        return [one for one in self.events if one.get("event") == event]

    @property
    def prompt(self) -> dict[str, Any] | None:
        """Return the `prompt_assembled` event of the last model call; None when no model was called."""
        return next(reversed(self.named("prompt_assembled")), None)


class Conversation:
    """One thread of one user; use it with `with` for more than one turn.

    Ctrl-C stops a turn at once, whatever it waits for: turns run asynchronously, and what hangs in a thread, such as a
    model without an async client, is left behind. What it would still save is refused.

    Args:
        decide: answers interrupts, one after the other.
        watch: sees what a turn tells while it happens.
    """

    def __init__(
        self,
        graph: GuardedGraph,
        thread_id: str,
        context: Context,
        decide: Decide,
        watch: Callable[[Part], None] = lambda part: None,
    ) -> None:
        self._graph = graph
        self._context = context
        self._decide = decide
        self._watch = watch
        self._config: RunnableConfig = {"configurable": {"thread_id": thread_id}}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._opened = ExitStack()

    def __enter__(self) -> Self:
        # One loop for all turns: clients keep connections open, which belong to a loop.
        self._loop = self._opened.enter_context(_event_loop())
        return self

    def __exit__(self, *_: object) -> None:
        self._loop = None
        self._opened.close()

    def is_unfinished(self) -> bool:
        """Tell whether a turn has no answer yet; the thread is not run."""
        return is_open(self._graph.get_state(self._config))

    def say(self, text: str) -> Turn:
        """Run a turn with a new message of the user; when this returns, the turn is in the database."""
        return self._run({"messages": [{"role": "user", "content": text}]}, Turn())

    def go_on(self) -> Turn:
        """Finish the turn that a crash, a failure or an unanswered approval left open."""
        turn = Turn()
        asked = self._asked()
        return self._run(self._answers(asked, turn) if asked else None, turn)

    def _run(self, payload: Any, turn: Turn) -> Turn:
        while self._stream(payload, turn):
            payload = self._answers(self._asked(), turn)
        return turn

    def _asked(self) -> Sequence[Interrupt]:
        """Return the open approvals in the order of their calls; a stream brings them as they come."""
        return self._graph.get_state(self._config).interrupts

    def _answers(self, asked: Sequence[Interrupt], turn: Turn) -> Command[Any]:
        """Ask for every open approval; each answer goes to its own interrupt."""
        answers = {interrupt.id: self._decide(interrupt) for interrupt in asked}
        turn.asked += [(interrupt.value, answers[interrupt.id]) for interrupt in asked]
        return Command(resume=answers)

    def _stream(self, payload: Any, turn: Turn) -> bool:
        """Run the graph until it ends or asks; tell whether it asks."""
        with nullcontext(self._loop) if self._loop else _event_loop() as loop:
            return _interruptible(loop, self._streamed(payload, turn))

    async def _streamed(self, payload: Any, turn: Turn) -> bool:
        asks, reader = False, TurnReader()
        # With "sync" every step is in the database before the next one begins.
        parts: Any = self._graph.astream(
            payload, self._config, context=self._context, stream_mode=STREAM_MODES, durability="sync"
        )
        async for mode, part in parts:
            for piece in reader.read(mode, part):
                self._watch(piece)
                match piece:
                    case Call():
                        turn.calls[piece.id] = piece
                    case Result():
                        turn.results[piece.call_id] = piece.text
                    case Decision():
                        turn.events.append(piece.event)
                    case Asked():
                        asks = True
        turn.reply = reader.reply or turn.reply
        return asks


@contextmanager
def _event_loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    try:
        yield loop
    finally:
        loop.run_until_complete(_cancel_tasks())
        loop.run_until_complete(loop.shutdown_asyncgens())
        # It does not wait for its threads, in which a call that was stopped may hang.
        loop.close()


async def _cancel_tasks() -> None:
    """End what a stopped run left behind, such as a save; asyncio would complain of each."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _interruptible(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine; Ctrl-C cancels it.

    Raises:
        KeyboardInterrupt: after it was cancelled.
    """
    task = loop.create_task(work)
    before = signal.getsignal(signal.SIGINT)
    # Python lets only the main thread set a handler, and a shell lets what it runs in its background ignore the signal.
    is_heard = threading.current_thread() is threading.main_thread() and before not in (None, signal.SIG_IGN)
    if is_heard:
        # It also wakes a loop that waits: a signal that comes just before would be heard after it only.
        loop.add_signal_handler(signal.SIGINT, task.cancel)
        # A second one ends what does not listen, such as a model that blocks the loop.
        signal.signal(signal.SIGINT, lambda *_: signal.signal(signal.SIGINT, before))
    try:
        return loop.run_until_complete(task)
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    finally:
        if is_heard:
            loop.remove_signal_handler(signal.SIGINT)
            signal.signal(signal.SIGINT, before)
