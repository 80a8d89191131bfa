"""How much of an attack is run."""

import os

__all__ = ["SCALE", "tries"]

SCALE = float(os.environ.get("EVERTHREAD_ATTACK", "1"))
"""Factor on the tries of the short form; `make attack` sets 20. Read here, since every test unsets the variable."""


def tries(short: int) -> int:
    """Return how often to try, given how often the short form does; at least once."""
    return max(1, round(short * SCALE))
