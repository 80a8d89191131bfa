"""Nodes and tools that call a model, written once for `invoke` and `ainvoke`.

Each is a generator: it yields each `ModelCall` it wants made and gets the reply back, or the exception of the call
raised at the `yield`. What it returns is the update or the result. Only `make_calls` and `amake_calls` know which kind
of run it is.
"""

import asyncio
import contextvars
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig

T = TypeVar("T")


@dataclass(frozen=True)
class ModelCall:
    """A call that a node or a tool wants made."""

    model: Runnable[Any, Any]
    prompt: Sequence[BaseMessage]
    is_reply: bool = False
    """The user reads its tokens: only these are streamed by `stream_mode="messages"`."""
    seconds: float | None = None
    """After which nobody waits for its reply any more; None: the client's own limit alone."""

    def config(self, config: RunnableConfig) -> RunnableConfig:
        """Return the config of the call."""
        return config if self.is_reply else {**config, "callbacks": None, "tags": [*config.get("tags", []), "nostream"]}


ModelCalls = Generator[ModelCall, Any, T]


def make_calls(calls: ModelCalls[T], config: RunnableConfig) -> T:
    """Make the calls of a generator one after the other and return its result."""
    step = _advance(calls, None)
    while isinstance(step, ModelCall):
        try:
            reply = _within(step.seconds, partial(step.model.invoke, list(step.prompt), step.config(config)))
        except Exception as error:  # noqa: BLE001 - the node decides what a failure means
            reply = error
        step = _advance(calls, reply)
    return step.value


async def amake_calls(calls: ModelCalls[T], config: RunnableConfig) -> T:
    """Do what `make_calls` does without blocking the event loop."""
    step = await asyncio.to_thread(_advance, calls, None)
    while isinstance(step, ModelCall):
        try:
            async with asyncio.timeout(step.seconds):
                reply = await step.model.ainvoke(list(step.prompt), step.config(config))
        except Exception as error:  # noqa: BLE001 - as in `make_calls`
            reply = error
        step = await asyncio.to_thread(_advance, calls, reply)
    return step.value


def _within(seconds: float | None, call: Callable[[], T]) -> T:
    """Make a call, and wait so long at the most.

    Clients count their own limits by try and by byte, so one that is late goes on in a thread that nobody waits for.

    Raises:
        TimeoutError: it was late.
    """
    if seconds is None:
        return call()
    outcome: Future[T] = Future()

    def run() -> None:
        try:
            outcome.set_result(call())
        except BaseException as error:  # noqa: BLE001 - raised again where the result is waited for
            outcome.set_exception(error)

    # A daemon, unlike the threads of an executor: a program that ends does not wait for it either.
    threading.Thread(target=contextvars.copy_context().run, args=(run,), daemon=True).start()
    return outcome.result(timeout=seconds)


@dataclass(frozen=True)
class _Result(Generic[T]):
    value: T


def _advance(calls: ModelCalls[T], reply: Any) -> ModelCall | _Result[T]:
    """Run a generator up to its next call or its end."""
    try:
        return calls.throw(reply) if isinstance(reply, Exception) else calls.send(reply)
    except StopIteration as done:
        return _Result(done.value)
