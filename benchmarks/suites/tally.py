"""Counts over cases."""

from dataclasses import dataclass, fields

__all__ = ["Tally"]


@dataclass
class Tally:
    """Counts by name; a suite names what it counts in a subclass."""

    def add(self, other: "Tally") -> None:
        """Add the counts of another tally of the same names."""
        for one in fields(self):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))
