"""The lock of a thread while a run has it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Self

from langchain_core.runnables import RunnableConfig

from everthread.errors import SettingsError
from everthread.storage.open import Storage
from everthread.storage.worker import RunScope


class RunHold:
    """The lock of a thread that a run holds, refused where the run would wait for itself.

    A `with` names it twice, see `Hold`: what Ctrl-C cuts off in one release is done in the other.
    """

    def __init__(self, storage: Storage, thread_id: str) -> None:
        self.thread_id = thread_id
        self.scope = RunScope()
        self.is_left = False
        """The reader of its stream went away, so that the event loop closes it without being asked."""
        self._lock = storage.locks.hold(thread_id)

    def __enter__(self) -> None:
        try:
            self._refuse(_holds_of(self.thread_id))
            self._lock.__enter__()
            self._note()
        except BaseException:
            self._release()
            raise

    def __exit__(self, *_: object) -> None:
        self._release()

    async def __aenter__(self) -> Self:
        for _ in range(_TURNS_OF_THE_LOOP):
            if not _holds_of(self.thread_id):
                break
            await asyncio.sleep(0)
        self._refuse([one for one in _holds_of(self.thread_id) if not one.is_left])
        await self._lock.__aenter__()
        self._note()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._release()

    def _refuse(self, around: list["RunHold"]) -> None:
        if any(one is not self for one in around):
            raise SettingsError(
                f"thread {self.thread_id!r} is being run by the run or the unfinished stream that calls this one, "
                "which would wait for itself; leave `thread_id` out to run as part of it, finish the stream, or name "
                "another thread"
            )

    @property
    def is_held(self) -> bool:
        """Whether the lock is still held."""
        return self._lock.is_held

    def _note(self) -> None:
        _held_threads.set((*(one for one in _held_threads.get() if one.is_held and one is not self), self))

    def _release(self) -> None:
        self._lock.release()
        # Not by a token: streams that are read in turn end in any order, and an abandoned one in another context.
        _held_threads.set(tuple(one for one in _held_threads.get() if one is not self))


_TURNS_OF_THE_LOOP = 4
"""After `break` in an `async for`, the event loop begins to close the stream two turns later."""

_held_threads: ContextVar[tuple[RunHold, ...]] = ContextVar("held_threads", default=())
"""Of the current run and of the runs around it; one that is not held any more was left behind in another context."""


def is_guarded(config: RunnableConfig) -> bool:
    """Tell whether a guarded run on a config's thread is under way here: its user was found to be the owner before."""
    return bool(_holds_of(str(config.get("configurable", {}).get("thread_id"))))


def _holds_of(thread_id: str) -> list[RunHold]:
    return [one for one in _held_threads.get() if one.thread_id == thread_id and one.is_held]


@asynccontextmanager
async def hold_async(storage: Storage, thread_id: str) -> AsyncIterator[RunHold]:
    """Hold the lock of a thread until what the run saves is saved."""
    async with RunHold(storage, thread_id) as hold:
        # LangGraph goes on saving after a cancellation. The lock is kept until the saves under way are done, and
        # later ones are refused. A tool that runs in a thread goes on: nothing can stop it.
        try:
            yield hold
        finally:
            hold.scope.close()
            await hold.scope.drain()
