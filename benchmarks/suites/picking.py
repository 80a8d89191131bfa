"""Which objects of files and folders a suite can score."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from everthread.errors import RecordError
from everthread.evals.picking import LeftOut, Picked, record_files

__all__ = ["Chains", "Wanted", "is_conversation", "pick"]

Object = dict[str, Any]

Chains = Literal["all", "named", "none"]
"""`named`: only in a file that was named, since a folder has most of the chained conversations elsewhere, too."""

_CHAINED = "composite_session"
"""Kind of a record that is a chain of other conversations."""


@dataclass(frozen=True)
class Wanted:
    """Which objects of a file a suite can score."""

    what: str
    """What such an object has, for people, such as `` `gold.updates` ``."""
    suits: Callable[[Object], bool]
    is_formed: Callable[[Object], bool]
    """Whether an object is of the right kind at all; each object of a named file must be."""
    form: str
    """The same for people."""
    chains: Chains = "all"
    """Which chained records are scored."""

    def takes_chains(self, *, is_named: bool) -> bool:
        """Tell whether the chained records of a file are scored."""
        return self.chains == "all" or (self.chains == "named" and is_named)


def is_conversation(value: Object) -> bool:
    """Tell whether an object is a recorded conversation."""
    return "id" in value and isinstance(value.get("messages"), list)


def pick(paths: Sequence[Path], wanted: Wanted, limit: int | None = None) -> Picked[tuple[str, Object]]:
    """Return the objects that a suite can score, each with its place as file and line.

    Raises:
        RecordError: a file cannot be read or has another form, or nothing can be scored.
    """
    objects: list[tuple[str, Object]] = []
    left_out = LeftOut()
    for file, is_named in record_files(paths):
        for where, value in left_out.objects(file, is_named=is_named):
            is_formed = wanted.is_formed(value)
            if is_named and not is_formed:
                raise RecordError(f"{where}: {wanted.form}")
            if not is_formed or not wanted.suits(value):
                left_out.add(f"without {wanted.what}", file)
            elif value.get("kind") == _CHAINED and not wanted.takes_chains(is_named=is_named):
                left_out.add("put together from other conversations", file)
            else:
                objects.append((where, value))
    if not objects:
        raise RecordError(f"{', '.join(map(str, paths)) or 'nothing'}: no record has {wanted.what}")
    return Picked(tuple(objects[:limit]), left_out.remarks())
