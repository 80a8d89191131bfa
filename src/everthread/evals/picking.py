"""Which records of files and folders can be used, and one line on what was left out and why.

A file that is named must have the expected form. In a folder, files of other forms are passed over, so that a command
runs on a folder with records of every kind.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from everthread.errors import RecordError
from everthread.evals.recording import exchanges
from everthread.evals.records import Record, objects, read_records

T = TypeVar("T")


@dataclass
class LeftOut:
    """Counts of unused records by reason and file name."""

    by_reason: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    def add(self, reason: str, file: Path, count: int = 1) -> None:
        """Count unused records of a file."""
        self.by_reason[reason][file.name] += count

    def objects(self, file: Path, *, is_named: bool) -> list[tuple[str, dict[str, Any]]]:
        """Return place and value of every line; an empty file is left out, unless it was named.

        Raises:
            RecordError: the file cannot be read, a line is no JSON object, or a named file is empty.
        """
        values = objects(file, may_be_empty=not is_named)
        if not values:
            self.add("empty", file, 0)
        return values

    def remarks(self) -> tuple[str, ...]:
        """Return one line, or none when every record is used."""
        parts = [
            f"{', '.join(f'{count:,} of {name}' if count else name for name, count in files.items())} ({reason})"
            for reason, files in self.by_reason.items()
        ]
        return (f"Left out: {'; '.join(parts)}.",) if parts else ()


@dataclass(frozen=True)
class Picked(Generic[T]):
    """The records that can be used."""

    records: tuple[T, ...]
    remarks: tuple[str, ...] = ()
    """One line on what was left out; none when every record is used."""


def record_files(paths: Sequence[Path]) -> Iterator[tuple[Path, bool]]:
    """Yield each file, and of each folder its `.jsonl` files, with whether the file was named.

    Raises:
        RecordError: a folder has no such file.
    """
    for path in paths:
        if not path.is_dir():
            yield path, True
            continue
        files = sorted(path.rglob("*.jsonl"))
        if not files:
            raise RecordError(f"{path}: there is no `.jsonl` file in this folder")
        yield from ((file, False) for file in files)


def playable(paths: Sequence[Path], limit: int | None = None, toolkits: Path | None = None) -> Picked[Record]:
    """Return the conversations that have something to replay.

    Args:
        paths: files, or folders of them.
        limit: only the first so many.
        toolkits: system prompts and schemas by toolkit; None takes `toolkits.json` beside each file.

    Raises:
        RecordError: a file cannot be read or is malformed, or nothing can be replayed.
    """
    records: list[Record] = []
    left_out = LeftOut()
    for file, is_named in record_files(paths):
        if not is_named and not _has_conversations(file, left_out):
            continue
        for record in read_records(file, toolkits):
            if exchanges(record.messages)[0]:
                records.append(record)
            else:
                left_out.add("without a recorded reply to replay", file)
    if not records:
        raise RecordError(f"{', '.join(map(str, paths)) or 'nothing'}: no record has a recorded reply to replay")
    return Picked(tuple(records[:limit]), left_out.remarks())


def _has_conversations(file: Path, left_out: LeftOut) -> bool:
    """Judge a file of a folder by its first line; mistakes further on are reported when it is read."""
    values = left_out.objects(file, is_named=False)
    if not values or isinstance(values[0][1].get("messages"), list):
        return bool(values)
    left_out.add("without `messages`", file, len(values))
    return False
