"""Spread work over processes: a replay is busy with one core."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from everthread.errors import EverthreadError
from everthread.evals.suites import Tick

T = TypeVar("T")
R = TypeVar("R")


def cores() -> int:
    """Return how many processes can run at once."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def spread(work: Callable[[T], R], items: Sequence[T], jobs: int, tick: Tick | None = None) -> list[R]:
    """Return the result for each item, in the order of the items.

    Args:
        work: a function of a module, or a `partial` of one: another process has to find it.
        items: what to work on; they and the results travel between processes.
        jobs: processes; 1 works in this one.
        tick: called after each item with: done, all, the item's `id`.

    Raises:
        EverthreadError: a process was ended from outside.
    """
    results: dict[int, R] = {}
    for place, result in _as_done(work, items, jobs):
        results[place] = result
        if tick is not None:
            tick(len(results), len(items), str(getattr(items[place], "id", "")))
    return [results[place] for place in range(len(items))]


def _as_done(work: Callable[[T], R], items: Sequence[T], jobs: int) -> Iterator[tuple[int, R]]:
    """Yield the place of each item and its result as soon as it is done."""
    if jobs <= 1 or len(items) <= 1:
        yield from enumerate(map(work, items))
        return
    # A fork would copy the locks of this process's threads as they are; a new interpreter has none.
    fresh = multiprocessing.get_context("spawn")
    # Ctrl-C reaches every process: this one says what happened, the others end without a traceback.
    quiet = (signal.SIGINT, signal.SIG_DFL)
    with ProcessPoolExecutor(min(jobs, len(items)), fresh, initializer=signal.signal, initargs=quiet) as pool:
        try:
            places = {pool.submit(work, item): place for place, item in enumerate(items)}
            for done in as_completed(places):
                yield places[done], done.result()
        except BrokenProcessPool:
            raise EverthreadError(
                "a process was ended from outside, perhaps because memory ran out; try `--jobs 1`"
            ) from None
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
