"""How the time of a function grows with its input, in CPU seconds: a busy machine changes the clock on the wall."""

import time
from collections.abc import Callable

__all__ = ["LINEAR", "cpu_seconds", "growth"]

LINEAR = 15
"""Times that ten times the input may take; in linear time it is 10."""

_FLOOR = 0.004
"""CPU seconds below which a measurement says nothing."""


def cpu_seconds(work: Callable[[int], object], size: int, repeats: int = 1) -> float:
    """Return the CPU time of this thread for the quickest of a few calls."""
    best = float("inf")
    for _ in range(repeats):
        begin = time.thread_time()
        work(size)
        best = min(best, time.thread_time() - begin)
    return best


def growth(work: Callable[[int], object], size: int) -> float:
    """Return how many times longer ten times the size takes; 0 when even that takes next to nothing.

    Other processes only ever make a call slower, so what looks too slow is measured again, and the quickest counts. Up
    to its bounded repeats (`.{0,500}`) a pattern grows faster than past them, so it meets three times the size as well.
    """
    times = _growth(work, size)
    return times if times <= LINEAR else min(times, _growth(work, 3 * size))


def _growth(work: Callable[[int], object], size: int) -> float:
    before, after = cpu_seconds(work, size), cpu_seconds(work, 10 * size)
    for repeats in (3, 9):
        if after <= max(_FLOOR, LINEAR * before):
            break
        before, after = cpu_seconds(work, size, 3 * repeats), min(after, cpu_seconds(work, 10 * size, repeats))
    return after / before if after > _FLOOR else 0.0
