"""The ranks of OpenAI's tokenisers as package data, so that counting never needs the network.

The ranks are tiktoken's, under its MIT licence (LICENSE in this folder). A file is the xz of one byte string: the 256
single bytes in rank order, then every longer token in rank order, separated by 0xFF. No longer token holds that byte,
since UTF-8 never does, and one `split` is the fastest way to take 200,000 tokens apart. `scripts/build_ranks.py`
writes the files and checks them against tiktoken's own hashes.
"""

import lzma
from importlib import resources
from typing import Final, Literal

EncodingName = Literal["o200k_base", "cl100k_base"]
"""The two vocabularies that are shipped: gpt-4o and later, gpt-4 and gpt-3.5."""

SHA256: Final[dict[EncodingName, str]] = {
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
}
"""Hash of each raw `.tiktoken` file, as published in `tiktoken_ext.openai_public`."""

SINGLE_BYTES: Final = 256
"""The first ranks are the single bytes."""

SEPARATOR: Final = b"\xff"


def file_name(name: EncodingName) -> str:
    """Return the name of the data file of an encoding."""
    return f"{name}.xz"


def read(name: EncodingName) -> list[bytes]:
    """Return the tokens of an encoding in rank order, from the package data."""
    return unpack(resources.files(__name__).joinpath(file_name(name)).read_bytes())


def unpack(packed: bytes) -> list[bytes]:
    """Return the tokens in rank order."""
    data = lzma.decompress(packed)
    singles = [data[rank : rank + 1] for rank in range(SINGLE_BYTES)]
    return singles + data[SINGLE_BYTES:].split(SEPARATOR)
