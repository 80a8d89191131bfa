"""The notes that the guard is measured on."""

import json
from collections.abc import Iterator
from pathlib import Path

from .measuring import NoteCase

__all__ = ["note_cases"]

_UNSEEN = Path(__file__).parents[2] / "tests/unit/memory/guard/unseen.jsonl"


def note_cases() -> Iterator[NoteCase]:
    """Yield labelled notes."""
    for line in _UNSEEN.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        yield NoteCase("en", row["text"], row["label"] == "block")
