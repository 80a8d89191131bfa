"""Build or check the tokeniser ranks that ship as package data.

    python scripts/build_ranks.py --from FOLDER_OR_WHEEL     write src/everthread/window/ranks/*.xz
    python scripts/build_ranks.py --check                    decode what is shipped and compare the hashes

The input is a folder with the raw `o200k_base.tiktoken` and `cl100k_base.tiktoken` files, a tiktoken cache folder
(files named by the SHA-1 of their address), or the llama-index-core wheel, which carries such a cache. Every input
must have the SHA-256 that tiktoken itself publishes; equal inputs give equal bytes. The ranks are under tiktoken's
MIT licence.
"""

import argparse
import base64
import hashlib
import lzma
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, get_args

from everthread.window import ranks
from everthread.window.ranks import SEPARATOR, SHA256, SINGLE_BYTES, EncodingName

TARGET: Final = Path(ranks.__file__).parent

CACHE_NAMES: Final[Mapping[EncodingName, str]] = {
    "o200k_base": "fb374d419588a4632f3f557e76b4b70aebbca790",
    "cl100k_base": "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
}
"""File names in a tiktoken cache: the SHA-1 of the address that tiktoken downloads from."""

FILTERS: Final[list[dict[str, Any]]] = [
    {
        "id": lzma.FILTER_LZMA2,
        "mode": lzma.MODE_NORMAL,
        "mf": lzma.MF_BT4,
        "nice_len": 273,
        "depth": 512,
        "dict_size": 1 << 22,
        "lc": 4,
        "lp": 0,
        "pb": 0,
    }
]
"""Written out in full, so that no change of liblzma's presets moves a byte; lc=4 and pb=0 suit text."""


class RanksError(Exception):
    """The input is not what tiktoken publishes, or the package data is not what it should be."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Build or check the tokeniser ranks that ship as package data.")
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--from", dest="source", type=Path, metavar="FOLDER_OR_WHEEL", help="where the raw files are")
    mode.add_argument("--check", action="store_true", help="decode what is shipped and compare the hashes")
    options = parser.parse_args(arguments)
    try:
        lines = check(TARGET) if options.check else build(options.source, TARGET)
        for line in lines:
            print(line)
    except (RanksError, OSError) as error:
        print(f"build_ranks: {error}", file=sys.stderr)
        return 1
    return 0


def build(source: Path, target: Path) -> Iterator[str]:
    """Write one data file per encoding and read it back."""
    for name in get_args(EncodingName):
        raw = find(source, name)
        expect(raw, name, str(source))
        packed = pack(parse(raw))
        expect(serialise(ranks.unpack(packed)), name, "the packed data")
        (target / ranks.file_name(name)).write_bytes(packed)
        yield f"{name}: {len(raw):,} bytes to {len(packed):,}"


def check(target: Path) -> Iterator[str]:
    """Decode each shipped file and compare it with the published hash."""
    for name in get_args(EncodingName):
        path = target / ranks.file_name(name)
        tokens = ranks.unpack(path.read_bytes())
        expect(serialise(tokens), name, str(path))
        yield f"{name}: {len(tokens):,} tokens, {SHA256[name]}"


def find(source: Path, name: EncodingName) -> bytes:
    """Return the raw file of an encoding from a folder or a wheel."""
    wanted = (f"{name}.tiktoken", CACHE_NAMES[name])
    if source.is_dir():
        for path in sorted(source.rglob("*")):
            if path.name in wanted:
                return path.read_bytes()
    elif zipfile.is_zipfile(source):
        with zipfile.ZipFile(source) as archive:
            for member in sorted(archive.namelist()):
                if member.rpartition("/")[2] in wanted:
                    return archive.read(member)
    else:
        raise RanksError(f"{str(source)!r} is neither a folder nor a wheel")
    raise RanksError(f"{str(source)!r} has no file named {wanted[0]!r} or {wanted[1]!r}")


def expect(raw: bytes, name: EncodingName, origin: str) -> None:
    """Refuse bytes whose hash is not the published one."""
    found = hashlib.sha256(raw).hexdigest()
    if found != SHA256[name]:
        raise RanksError(f"{origin}: {name} has sha256 {found}, expected {SHA256[name]}; use another copy")


def parse(raw: bytes) -> list[bytes]:
    """Return the tokens of a `.tiktoken` file in rank order."""
    tokens = []
    for place, line in enumerate(raw.splitlines()):
        token, rank = line.split()
        if int(rank) != place:
            raise RanksError(f"line {place + 1} has rank {int(rank)}, expected {place}")
        tokens.append(base64.b64decode(token))
    return tokens


def serialise(tokens: Sequence[bytes]) -> bytes:
    """Return the `.tiktoken` file of tokens in rank order."""
    return b"".join(b"%s %d\n" % (base64.b64encode(token), rank) for rank, token in enumerate(tokens))


def pack(tokens: Sequence[bytes]) -> bytes:
    """Return the package data of tokens in rank order.

    Raises:
        RanksError: the tokens do not suit the format.
    """
    singles, others = tokens[:SINGLE_BYTES], tokens[SINGLE_BYTES:]
    if any(len(token) != 1 for token in singles) or any(SEPARATOR in token or not token for token in others):
        raise RanksError("the first 256 tokens must be the single bytes, and no other token may hold the byte 0xFF")
    data = b"".join(singles) + SEPARATOR.join(others)
    return lzma.compress(data, format=lzma.FORMAT_XZ, check=lzma.CHECK_CRC32, filters=FILTERS)


if __name__ == "__main__":
    sys.exit(main())
