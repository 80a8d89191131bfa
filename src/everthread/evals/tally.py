"""Counts over cases, and shares of them."""

from dataclasses import dataclass, fields

__all__ = ["Tally", "share"]


@dataclass
class Tally:
    """Counts by name; a suite names what it counts in a subclass."""

    def add(self, other: "Tally") -> None:
        """Add the counts of another tally of the same names."""
        for one in fields(self):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))


def share(part: float, whole: float, *, empty: float = 0.0) -> float:
    """Return a part of a whole; `empty` of nothing."""
    return part / whole if whole else empty
