"""How much of an attack is run: the short form in `make test`, the long one in `make attack`."""

import os
from collections.abc import Sequence
from typing import TypeVar

__all__ = ["PARTS", "SCALE", "part_of", "tries"]

T = TypeVar("T")

SCALE = float(os.environ.get("EVERTHREAD_ATTACK", "1"))
"""1 is the short form, 20 the long one. Read here, since every test unsets the variable."""

LONG = 20

PARTS = range(1 if SCALE <= 1 else 4)
"""A long attack is split into tests, so that processes share it and each tells when it is done."""


def tries(short: int, long: int | None = None) -> int:
    """Return how often to try, at least once.

    Args:
        short: how often the short form does.
        long: how often `make attack` does; None: twenty times as often.
    """
    most = LONG * short if long is None else long
    return max(1, short if SCALE == 1 else round(most * SCALE / LONG))


def part_of(cases: Sequence[T], part: int) -> Sequence[T]:
    """Return the cases that a part of an attack plays."""
    return cases[part :: len(PARTS)]
