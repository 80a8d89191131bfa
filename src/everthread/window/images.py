"""Count what an image costs in tokens, from its size where the block or its first bytes tell it."""

import base64
import struct
from collections.abc import Mapping
from typing import Any, Final

IMAGE_LOW: Final = 85
"""An image in low detail, and the base of one in high detail. Source: OpenAI's image guide, gpt-4o."""
IMAGE_TILE: Final = 170
"""Each tile of 512 pixels square of an image in high detail. Source: as above."""
IMAGE_UNKNOWN: Final = IMAGE_LOW + 4 * IMAGE_TILE
"""An image whose size is not known: that of 1,024 pixels square."""
_IMAGE_HEAD: Final = 64_000
"""Characters of base64, a multiple of four, in which the size of an image is looked for."""


def image_tokens(block: Mapping[str, Any]) -> int:
    """Return the tokens of an image: flat in low detail, else by tiles of 512 pixels once it is scaled down.

    Source: OpenAI's image guide, gpt-4o: fit into 2,048 square, then the shorter side to 768.
    """
    inner = block.get("image_url")
    detail = inner.get("detail") if isinstance(inner, Mapping) else block.get("detail")
    if detail == "low":
        return IMAGE_LOW
    size = _image_size(block)
    if size is None:
        return IMAGE_UNKNOWN
    scale = min(1.0, 2048 / max(size), 768 / min(size))
    width, height = (max(1, round(side * scale)) for side in size)
    return IMAGE_LOW + IMAGE_TILE * -(-width // 512) * -(-height // 512)


def _image_size(block: Mapping[str, Any]) -> tuple[int, int] | None:
    width, height = block.get("width"), block.get("height")
    if isinstance(width, int) and isinstance(height, int) and width > 0 and height > 0:
        return width, height
    return _size_in(_image_head(block))


def _image_head(block: Mapping[str, Any]) -> bytes:
    """Return the first bytes of an image that is in the block itself."""
    inner, source = block.get("image_url"), block.get("source")
    url = inner.get("url") if isinstance(inner, Mapping) else inner or block.get("url")
    data = source.get("data") if isinstance(source, Mapping) else block.get("base64") or block.get("data")
    if isinstance(url, str) and url.startswith("data:"):
        data = url.partition(",")[2]
    if not isinstance(data, str):
        return b""
    try:
        return base64.b64decode(data[:_IMAGE_HEAD])
    except ValueError:
        return b""


def _size_in(head: bytes) -> tuple[int, int] | None:
    """Return width and height of a PNG, GIF or JPEG."""
    width = height = 0
    if head.startswith(b"\x89PNG\r\n\x1a\n") and len(head) >= 24:
        width, height = struct.unpack_from(">II", head, 16)
    elif head.startswith(b"GIF8") and len(head) >= 10:
        width, height = struct.unpack_from("<HH", head, 6)
    elif head.startswith(b"\xff\xd8"):
        place = 2
        while place + 9 <= len(head) and head[place] == 0xFF:
            # Start of frame is 0xC0 to 0xCF, but for three markers that are tables.
            if 0xC0 <= head[place + 1] <= 0xCF and head[place + 1] not in (0xC4, 0xC8, 0xCC):
                height, width = struct.unpack_from(">HH", head, place + 5)
                break
            place += 2 + int.from_bytes(head[place + 2 : place + 4], "big")
    return (width, height) if width and height else None
