"""What a suite can score in files and folders, and one line on what it passed over and why.

A file that somebody names has the form that the suite reads, or is refused. In a folder, files of other forms are
passed over, so that every suite runs on a folder that holds the records of all.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from everthread.errors import RecordError
from everthread.evals.records import Record, objects, read_records
from everthread.evals.tape import exchanges

__all__ = ["Chains", "Picked", "Wanted", "is_conversation", "pick", "playable"]

T = TypeVar("T")
Object = dict[str, Any]

Chains = Literal["all", "named", "none"]
"""`named`: only those in a file that somebody named, since a folder has most of their conversations elsewhere."""

_CHAINED = "composite_session"
"""Kind of a record that was put together from other conversations."""


@dataclass
class _LeftOut:
    """Records that a suite does not use, by the reason and the file."""

    by_reason: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    def add(self, reason: str, file: Path, count: int = 1) -> None:
        """Count records of a file."""
        self.by_reason[reason][file.name] += count

    def remarks(self) -> tuple[str, ...]:
        """Return one line, or none when every record is used."""
        told = [
            f"{', '.join(f'{count:,} of {name}' if count else name for name, count in files.items())} ({reason})"
            for reason, files in self.by_reason.items()
        ]
        return (f"Left out: {'; '.join(told)}.",) if told else ()


@dataclass(frozen=True)
class Picked(Generic[T]):
    """What a suite can score."""

    records: tuple[T, ...]
    remarks: tuple[str, ...] = ()
    """One line on what was left out; none when every record is used."""


@dataclass(frozen=True)
class Wanted:
    """Which objects of a file a suite can score."""

    what: str
    """What such an object has, for people, such as `` `gold.updates` ``."""
    suits: Callable[[Object], bool]
    is_formed: Callable[[Object], bool]
    """Whether an object is of the right kind at all; one in a file that somebody named must be."""
    form: str
    """The same for people."""
    chains: Chains = "all"
    """Which records that were put together from others are scored."""

    def takes_chains(self, *, is_named: bool) -> bool:
        """Tell whether chains of other conversations in a file are scored."""
        return self.chains == "all" or (self.chains == "named" and is_named)


def is_conversation(value: Object) -> bool:
    """Tell whether an object is a recorded conversation."""
    return "id" in value and isinstance(value.get("messages"), list)


def _files(paths: Sequence[Path]) -> Iterator[tuple[Path, bool]]:
    """Yield the files, and of each folder its `.jsonl` files, with whether somebody named the file.

    Raises:
        RecordError: a folder has no such file.
    """
    for path in paths:
        if not path.is_dir():
            yield path, True
            continue
        found = sorted(path.rglob("*.jsonl"))
        if not found:
            raise RecordError(f"{path}: there is no `.jsonl` file in this folder")
        yield from ((file, False) for file in found)


def pick(paths: Sequence[Path], wanted: Wanted, limit: int | None = None) -> Picked[tuple[str, Object]]:
    """Return the objects that a suite can score, each with its place as file and line.

    Raises:
        RecordError: a file cannot be read or has another form, or nothing can be scored.
    """
    found: list[tuple[str, Object]] = []
    left = _LeftOut()
    for file, is_named in _files(paths):
        for where, value in _objects(file, left, is_named=is_named):
            is_formed = wanted.is_formed(value)
            if is_named and not is_formed:
                raise RecordError(f"{where}: {wanted.form}")
            if not is_formed or not wanted.suits(value):
                left.add(f"without {wanted.what}", file)
            elif value.get("kind") == _CHAINED and not wanted.takes_chains(is_named=is_named):
                left.add("put together from other conversations", file)
            else:
                found.append((where, value))
    if not found:
        raise RecordError(f"{_shown(paths)}: no record has {wanted.what}")
    return Picked(tuple(found[:limit]), left.remarks())


def playable(paths: Sequence[Path], limit: int | None = None, toolkits: Path | None = None) -> Picked[Record]:
    """Return the conversations that have something to replay.

    Args:
        paths: files, or folders of them.
        limit: only the first so many.
        toolkits: system prompts and schemas by toolkit; None takes `toolkits.json` beside each file.

    Raises:
        RecordError: a file cannot be read or is malformed, or nothing can be replayed.
    """
    found: list[Record] = []
    left = _LeftOut()
    for file, is_named in _files(paths):
        if not is_named and not _has_conversations(file, left):
            continue
        for record in read_records(file, toolkits):
            if exchanges(record.messages)[0]:
                found.append(record)
            else:
                left.add("without a recorded reply to replay", file)
    if not found:
        raise RecordError(f"{_shown(paths)}: no record has a recorded reply to replay")
    return Picked(tuple(found[:limit]), left.remarks())


def _has_conversations(file: Path, left: _LeftOut) -> bool:
    """Tell whether a file of a folder is worth reading; one with a mistake further on is refused when it is read."""
    known = _objects(file, left, is_named=False)
    if not known or isinstance(known[0][1].get("messages"), list):
        return bool(known)
    left.add("without `messages`", file, len(known))
    return False


def _objects(file: Path, left: _LeftOut, *, is_named: bool) -> list[tuple[str, Object]]:
    found = objects(file, may_be_empty=not is_named)
    if not found:
        left.add("empty", file, 0)
    return found


def _shown(paths: Sequence[Path]) -> str:
    return ", ".join(map(str, paths)) or "nothing"
