"""Draw what is in a prompt: one bar for the window, one line of figures."""

from collections.abc import Mapping
from typing import Any

from rich.text import Text

_PARTS: tuple[tuple[str, str, str, str], ...] = (
    ("system", "S", "system", "cyan"),
    ("profile", "P", "profile", "green"),
    ("notes", "N", "notes", "yellow"),
    ("tools", "T", "tools", "blue"),
    ("summary", "Z", "summary", "magenta"),
    ("session_notes", "n", "session notes", "bright_yellow"),
    ("recalled", "R", "recalled", "bright_magenta"),
    ("history", "H", "history", "red"),
    ("free", "·", "free", "dim"),
    ("safety", "-", "safety margin", "dim"),
    ("reply_reserve", "r", "reply reserve", "dim"),
)
"""Categories of a breakdown in the order they are drawn: name, sign, label, style."""

_HISTORY = ("summary", "session_notes", "recalled", "history")


def headline(event: Mapping[str, Any]) -> str:
    """Say how large a prompt is and how much of the budget its history takes."""
    used = sum(event["breakdown"].get(name, 0) for name in _HISTORY)
    return (
        f"prompt {event['tokens']:,} of {event['window']:,} tokens · history {used:,} of {event['budget']:,} "
        f"({event['accuracy']} count)"
    )


def bar(event: Mapping[str, Any], width: int = 60) -> Text:
    """Draw the window as one line of signs, each category as long as its share."""
    drawn = Text("[")
    sizes = cells({name: event["breakdown"].get(name, 0) for name, *_ in _PARTS}, width)
    for name, sign, _, style in _PARTS:
        drawn.append(sign * sizes[name], style)
    return drawn.append("]")


def legend(event: Mapping[str, Any]) -> str:
    """Name the signs that are in the bar, with tokens."""
    sizes = event["breakdown"]
    parts = [f"{sign} {label} {sizes[name]:,}" for name, sign, label, _ in _PARTS if sizes.get(name)]
    # A category that this version does not know is shown by its own name.
    labelled = {name for name, *_ in _PARTS}
    return "  ".join(
        [*parts, *(f"{name} {tokens:,}" for name, tokens in sizes.items() if tokens and name not in labelled)]
    )


def cells(tokens: Mapping[str, int], width: int) -> dict[str, int]:
    """Divide a line among categories: each with tokens gets at least one cell, the largest pays for it."""
    total = sum(tokens.values())
    if total <= 0:
        return dict.fromkeys(tokens, 0)
    shared = {name: max(1, round(width * size / total)) if size else 0 for name, size in tokens.items()}
    largest = max(shared, key=lambda name: shared[name])
    shared[largest] = max(1, shared[largest] + width - sum(shared.values()))
    return shared
