"""Text as people may safely see it, in a terminal, in a page, in a log; it loads nothing else."""

import re
from collections.abc import Sequence

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\U000e0000-\U000e007f]")
"""What could move the cursor, change colours, turn text around or hide it, except tab and line feed. Rich removes only
some."""

_GUIDE = re.compile(r"\s{0,9}For [^\n:]{1,60}: https://docs\.langchain\.com\S*\s{0,9}")


def plain(text: str) -> str:
    """Replace control characters in a text of others by a visible one."""
    return CONTROL.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, such as `1 turn` or `2,000 turns`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def enumerated(parts: Sequence[str]) -> str:
    """Return one or more parts as a sentence names them, such as `a, b and c`."""
    return " and ".join([*([", ".join(parts[:-1])] if parts[1:] else []), parts[-1]])


def without_guide(text: str) -> str:
    """Return the text of an error without the link to LangChain's documentation at its end."""
    return _GUIDE.sub("", text)
