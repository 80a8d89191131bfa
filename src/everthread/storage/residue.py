"""Texts by which erased data would be recognised, and the search for them in tables and in raw bytes."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from io import FileIO
from itertools import islice
from pathlib import Path
from typing import Any

from langchain_core.messages import HumanMessage

MOST = 256
"""Texts to search for at most."""

_LEAST, _LONGEST = 8, 40
"""Characters of one text. A longer one could lie across two pages of the file and not be found."""

_CHUNK = 500
"""Rows searched at once."""

_READ = 1 << 20
"""Bytes of a file searched at once."""

_PIECE = re.compile(r"[^\x00-\x1f\"\\\x7f]{8,}")
"""What reads the same in plain text, in JSON and in MessagePack."""

_DISTINCTIVE = re.compile(r"[\s\d@A-Z]|[^\x00-\x7f]")
"""One of these must be in a text: a lowercase word alone may be a word of the program."""

_STAMP = re.compile(r"\d{4}-\d\d-\d\d(?:T[\d:.+Z-]*)?")


@dataclass(frozen=True)
class Hit:
    """A text that is still there."""

    table: str
    row: tuple[str, ...]
    """What names the row: prefix and key of a record, or the thread; empty when the table has neither."""
    text: bytes


Row = tuple[str, tuple[str, ...], bytes]
"""A row of any table: the table, what names the row, see `Hit`, and all its bytes."""


def texts_of(value: Any) -> Iterator[str]:
    """Return every text inside a value: of a record, or the user's own messages of a channel."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, HumanMessage):
        yield str(value.text)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from texts_of(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from texts_of(item)


def samples(texts: Iterable[str]) -> list[bytes]:
    """Choose what to search for: of each text its beginning and its end.

    Args:
        texts: the most telling first; of too many, the first half of `MOST` and an even spread of the rest are taken.
    """
    chosen: dict[str, None] = {}
    for text in texts:
        pieces = [piece.strip() for piece in _PIECE.findall(text)]
        for piece in (pieces[0][:_LONGEST], pieces[-1][-_LONGEST:]) if pieces else ():
            piece = piece.strip()
            if len(piece) >= _LEAST and _DISTINCTIVE.search(piece) and not _STAMP.fullmatch(piece):
                chosen[piece] = None
    every = list(chosen)
    if len(every) > MOST:
        first, rest = every[: MOST // 2], every[MOST // 2 :]
        every = first + [rest[place * len(rest) // (MOST // 2)] for place in range(MOST // 2)]
    return [form for text in every for form in _forms(text)]


def in_rows(rows: Iterable[Row], wanted: Iterable[bytes]) -> tuple[list[Hit], int]:
    """Search rows; return what was found and how many rows were read."""
    sought, hits, count, every = list(wanted), list[Hit](), 0, iter(rows)
    while chunk := list(islice(every, _CHUNK)):
        count += len(chunk)
        # One search of many rows costs less than many searches of one.
        together = b"\x00".join(whole for _, _, whole in chunk)
        for text in (text for text in sought if text in together):
            hits += [Hit(table, name, text) for table, name, whole in chunk if text in whole]
    return hits, count


def in_files(
    path: Path, wanted: Iterable[bytes], opened: Callable[[Path], FileIO]
) -> tuple[dict[str, list[bytes]], dict[str, int]]:
    """Search the bytes of the database, its log and its index; return the finds and the sizes by file name.

    Args:
        wanted: texts, each shorter than a page.
        opened: opens a file, and closes it when it may: see `Database.opened`.
    """
    # The log lies beside the file itself, not beside a link to it.
    sought, path = list(wanted), path.resolve()
    found: dict[str, list[bytes]] = {}
    sizes: dict[str, int] = {}
    for file in (path, path.with_name(path.name + "-wal"), path.with_name(path.name + "-shm")):
        if not file.exists():
            continue
        sizes[file.name] = file.stat().st_size
        if sought and (here := _in_file(opened(file), sought)):
            found[file.name] = here
    return found, sizes


def _in_file(file: FileIO, sought: list[bytes]) -> list[bytes]:
    found, overlap, end = set[bytes](), max(map(len, sought)), b""
    file.seek(0)
    while piece := file.read(_READ):
        piece = end + piece
        found.update(text for text in sought if text in piece)
        end = piece[-overlap:]
    return [text for text in sought if text in found]


def _forms(text: str) -> list[bytes]:
    plain, escaped = text.encode("utf-8", "replace"), json.dumps(text)[1:-1].encode()
    return [plain] if plain == escaped else [plain, escaped]
