"""Chance without chance: the same key gives the same draw, in any process and on any machine."""

import hashlib
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def draw(*key: object) -> float:
    """Return the number in [0, 1) that belongs to a key."""
    digest = hashlib.sha256("\x1f".join(str(part) for part in key).encode()).digest()
    # A float holds 53 bits exactly; more of them could round up to 1.
    return (int.from_bytes(digest[:8], "big") >> 11) / 2**53


def between(low: int, high: int, *key: object) -> int:
    """Return the whole number from `low` to `high`, both included, that belongs to a key."""
    return low + int(draw(*key) * (high - low + 1))


def pick(options: Sequence[T], *key: object) -> T:
    """Return the option that belongs to a key."""
    return options[between(0, len(options) - 1, *key)]
