"""Async calls to a synchronous database: one hop per call, to a worker thread of the storage.

LangGraph goes on saving after `ainvoke` has raised `CancelledError`. A run that holds a thread's lock therefore sets
`current_run` to a `RunScope`; before it gives the lock back, it closes the scope and waits for what is under way.
"""

import asyncio
import os
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from functools import partial
from typing import ParamSpec, TypeVar

from everthread.errors import StorageError

P = ParamSpec("P")
T = TypeVar("T")


class RunScope:
    """The calls of one run to its storage: those in flight are finished, later ones are refused.

    Safe to share between threads; `drain` is for the event loop of the run.
    """

    def __init__(self) -> None:
        self.closed = False
        self._in_flight: set[Future[None]] = set()
        self._lock = threading.Lock()

    def close(self) -> None:
        """Refuse every later call."""
        with self._lock:
            self.closed = True

    @contextmanager
    def current(self) -> Iterator[None]:
        """Count the calls of the block as calls of this run."""
        token = current_run.set(self)
        try:
            yield
        finally:
            # A coroutine whose loop was closed is ended in another context.
            with suppress(ValueError):
                current_run.reset(token)

    async def stream(self, parts: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
        """Yield what a stream of this run yields; what its reader does in between is not of the run."""
        try:
            while True:
                with self.current():
                    try:
                        part = await anext(parts)
                    except StopAsyncIteration:
                        return
                yield part
        finally:
            with self.current():
                await parts.aclose()

    async def drain(self) -> None:
        """Wait for the calls in flight, also while the caller is cancelled; then the cancellation goes on."""
        cancelled: asyncio.CancelledError | None = None
        while calls := [asyncio.wrap_future(call) for call in list(self._in_flight)]:
            try:
                await asyncio.shield(asyncio.wait(calls))
            except asyncio.CancelledError as error:
                cancelled = error
        if cancelled is not None:
            raise cancelled

    def enter(self) -> Callable[[], None]:
        """Count a call as in flight; return what is called when it is done.

        Raises:
            StorageError: the scope is closed.
        """
        with self._lock:
            if self.closed:
                raise StorageError("the run was cancelled and its thread given back, so nothing more of it is saved")
            call: Future[None] = Future()
            self._in_flight.add(call)

        def leave() -> None:
            self._in_flight.discard(call)
            call.set_result(None)

        return leave


current_run: ContextVar[RunScope | None] = ContextVar("everthread_current_run", default=None)
"""The scope of the run that calls; None outside of a guarded run, and inside a call that was let in already."""


def check_process(opened_by: int | None) -> None:
    """Refuse to work on a closed storage, and in a forked child.

    SQLite must not be carried over a fork, and the worker thread is not there.

    Args:
        opened_by: id of the process that opened the storage; None when it is closed.

    Raises:
        StorageError: it is not open in this process.
    """
    if opened_by is None:
        raise StorageError("the storage is closed: open the database again")
    if opened_by != os.getpid():
        raise StorageError(
            f"the database was opened by process {opened_by}, which this one was forked from, and cannot be shared; "
            "open it again in this process"
        )


def _enter() -> Callable[[], None]:
    """Count a call of the current run, if there is one; return what is called when it is done."""
    scope = current_run.get()
    return scope.enter() if scope is not None else lambda: None


@contextmanager
def let_in() -> Iterator[None]:
    """Count the block as one call of the current run.

    Raises:
        StorageError: the run is over.
    """
    leave = _enter()
    try:
        yield
    finally:
        leave()


class Worker:
    """The threads on which a storage answers async calls.

    Args:
        threads: how many; one for SQLite, which does one thing at a time anyway.
    """

    def __init__(self, threads: int = 1) -> None:
        self._process: int | None = os.getpid()
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="everthread-storage")

    async def call(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function on the worker, with the caller's context variables; it ends even if the caller is cancelled.

        Raises:
            StorageError: the run that calls is over, or the storage is not open in this process.
        """
        check_process(self._process)
        context = copy_context()
        # It counts from now on, so the write inside need not ask again.
        context.run(current_run.set, None)
        leave = _enter()
        try:
            future: Future[T] = self._executor.submit(partial(context.run, work, *args, **kwargs))
        except BaseException:
            leave()
            raise
        future.add_done_callback(lambda _: leave())
        return await asyncio.shield(asyncio.wrap_future(future))

    def close(self) -> None:
        """Finish what was asked for, and stop."""
        self._process = None
        self._executor.shutdown()
