"""Correct our counts by what the provider reports, so that an estimate becomes an anchored one.

The provider's count of the last prompt is the anchor; what was added or removed since is counted by us and scaled by
a slope: 1 with the model's own tokeniser, learned from the last reports with any other. A report is the prompt's
`input_tokens`, never `total_tokens`: hidden reasoning is billed and not sent again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import median
from typing import Any, Final, NamedTuple

from everthread.window.tokens import Accuracy

SLOPES: Final = (0.5, 3.0)
"""No tokeniser is further than this from ours; a slope outside comes from a fault in the reports."""

FIRST_SLOPES: Final = (0.8, 1.5)
"""With one report only, more than this is an overhead of the provider's, such as tools we have not seen."""

LARGEST_OVERHEAD: Final = 4_096
"""Tokens that a provider may add to a prompt of ours on its own; a report beyond is a fault."""

KEPT: Final = 8
"""Reports that are kept; on logs of three Claude models 16 do no better and 4 are worse."""


class Anchor(NamedTuple):
    """A prompt of which both counts are known."""

    counted: int
    """Our count."""
    reported: int
    """The provider's count."""


@dataclass(frozen=True)
class Calibration:
    """What the reports of one model have taught; immutable, and JSON by `to_json` and `from_json`."""

    exact: bool = False
    """The counts come from the model's own tokeniser, so only the offset is learned."""
    anchors: tuple[Anchor, ...] = ()
    """The last reports, oldest first."""

    @property
    def accuracy(self) -> Accuracy:
        """How far `apply` can be trusted."""
        if self.anchors:
            return "anchored"
        return "exact" if self.exact else "estimated"

    @property
    def slope(self) -> float:
        """The provider's tokens for each of ours: the median over all pairs of reports, so that no odd one counts.

        Source: Theil-Sen estimator.
        """
        if self.exact or not self.anchors:
            return 1.0
        slopes = [
            (later.reported - earlier.reported) / (later.counted - earlier.counted)
            for earlier, later in combinations(self.anchors, 2)
            if later.counted != earlier.counted
        ]
        if slopes:
            return _within(median(slopes), SLOPES)
        last = self.anchors[-1]
        return _within(last.reported / last.counted, FIRST_SLOPES)

    def apply(self, counted: int) -> int:
        """Return what the provider would report for a prompt that we count so."""
        if not self.anchors:
            return counted
        last = self.anchors[-1]
        estimate = round(last.reported + (counted - last.counted) * self.slope)
        # Far below the anchor an offset could take everything away; the slope's own limit holds there.
        return max(estimate, round(counted * SLOPES[0]))

    def inverse(self, reported: int) -> int:
        """Return the largest count of ours that stands for at most so many of the provider's tokens."""
        if not self.anchors:
            return max(reported, 0)
        last, slope = self.anchors[-1], self.slope
        counted = int(min(last.counted + (reported - last.reported) / slope, reported / SLOPES[0]))
        # Rounding moves the border by a token or two.
        while counted > 0 and self.apply(counted) > reported:
            counted -= 1
        while self.apply(counted + 1) <= reported:
            counted += 1
        return max(counted, 0)

    def observe(self, counted: int, reported: int) -> "Calibration":
        """Return the calibration that also knows this report.

        A report that no tokeniser could give is left out: zero, or less than half of our count, as from a provider
        that leaves out what it read from its cache; or far more than any prompt of that size can have. So is one
        that an exact count has foreseen, since only the offset is learned and it is the same: every change of the
        calibration is saved with the thread.
        """
        if counted <= 0 or not counted * SLOPES[0] <= reported <= counted * SLOPES[1] + LARGEST_OVERHEAD:
            return self
        if self.exact and self.anchors and reported - counted == self.anchors[-1].reported - self.anchors[-1].counted:
            return self
        return replace(self, anchors=(*self.anchors, Anchor(counted, reported))[-KEPT:])

    def observe_overflow(self, counted: int, limit: int) -> "Calibration":
        """Return the calibration after the provider refused a prompt as too long: its size was above the limit.

        Args:
            counted: our count of the refused prompt.
            limit: the provider's limit in tokens.
        """
        if counted <= 0 or self.apply(counted) > limit:
            return self
        return self.observe(counted, limit + 1)

    def to_json(self) -> dict[str, Any]:
        """Return JSON that `from_json` takes back."""
        return {"exact": self.exact, "anchors": list(map(list, self.anchors))}

    @classmethod
    def from_json(cls, values: Mapping[str, Any] | None) -> "Calibration":
        """Return the calibration that was kept, or a new one when nothing was."""
        if not values:
            return cls()
        return cls(bool(values["exact"]), tuple(Anchor(*pair) for pair in values["anchors"]))


def _within(value: float, limits: tuple[float, float]) -> float:
    return min(max(value, limits[0]), limits[1])
