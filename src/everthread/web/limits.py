"""How much a worker does, and for whom."""

import math
import sys
import time
from dataclasses import dataclass

from everthread.errors import SettingsError

_MOST_CALLERS = 10_000


@dataclass(frozen=True)
class Limits:
    """The limits of one worker."""

    body_bytes: int = 1_000_000
    """Of a request; a longer one is answered with 413."""

    requests_per_minute: int = 600
    """For each key or token's user, on this worker; 0: as many as they like."""

    runs: int = 100
    """At a time."""

    grace_seconds: float = 30.0
    """For runs that go on when the server is asked to stop; then they are cancelled, and their turns kept."""

    ready_seconds: float = 2.0
    """In which the database has to answer."""

    sweep_idle_seconds: float | None = None
    """Sessions without activity for so long are ended by a timer of this worker; None: by none."""

    def __post_init__(self) -> None:
        """Refuse numbers with which every request would be refused or fail.

        Raises:
            SettingsError: one is too small, or an integer too large for a float; the message names it.
        """
        least = {"body_bytes": 1, "requests_per_minute": 0, "runs": 1, "grace_seconds": 0, "ready_seconds": 0}
        if self.sweep_idle_seconds is not None:
            least["sweep_idle_seconds"] = 0
        for name, smallest in least.items():
            value = getattr(self, name)
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if not is_number or not (smallest <= value <= sys.float_info.max or value == math.inf):
                raise SettingsError(
                    f"`{name}` of `Limits` must be a number from {smallest} on that a float can hold, got {value!r}"
                )


class RateLimit:
    """A bucket for each caller that fills steadily, and holds the requests of one minute.

    Args:
        per_minute: requests; 0 has no limit.
    """

    def __init__(self, per_minute: int) -> None:
        self._per_minute = per_minute
        self._buckets: dict[str, tuple[float, float]] = {}
        """Requests left and when they were counted, by caller."""

    def wait_seconds(self, caller: str) -> float:
        """Count a request; 0.0 when it may go on, else after how many seconds the next one may."""
        if not self._per_minute:
            return 0.0
        at = time.monotonic()
        left, counted_at = self._buckets.get(caller, (float(self._per_minute), at))
        left = min(left + (at - counted_at) * self._per_minute / 60, float(self._per_minute))
        if left < 1:
            return (1 - left) * 60 / self._per_minute
        if len(self._buckets) >= _MOST_CALLERS:
            # A bucket that nobody used for a minute is full, as a new one is.
            self._buckets = {name: one for name, one in self._buckets.items() if at - one[1] < 60}
        self._buckets[caller] = (left - 1, at)
        return 0.0
