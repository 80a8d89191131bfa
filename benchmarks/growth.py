"""Measure how the time of reading a text grows with its length, on texts that are hard for patterns.

    python benchmarks/growth.py [--short 10000] [--long 100000]

A pattern that goes back over what it has read takes a hundred times as long for ten times the text, and holds the
interpreter meanwhile. Each function reads each shape at both lengths; growth is the ratio of the two times, each the
best of three, and ten is linear. Below a millisecond the clock says little, so such rows count as linear.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence

from everthread.memory.rendering import escape
from everthread.memory.text.constraints import constraints_in
from everthread.memory.text.sentences import sentences
from everthread.window.compaction import read_entries
from everthread.window.identifiers import identifiers_in
from everthread.window.masking import masked_text
from everthread.window.tokens import TokenCounter

GROWTH_MARK = 20
"""Ten times the text may take so many times as long."""

SHAPES = {
    "dashes": "-",
    "dots": ".",
    "letters": "a",
    "capitals": "A",
    "digits": "1",
    "slashes": "/",
    "at signs": "@",
    "underscores": "_",
    "spaces": " ",
    "lines": "\n",
    "quotes": '"',
    "hashes": "#",
    "stars": "*",
    "brackets": "[",
    "dashed letters": "a-",
    "dashed capitals": "A-",
    "dashed digits": "1-",
    "dotted letters": "a.",
    "dotted digits": "1.",
    "dotted words": "ab.cd_",
    "slashed letters": "a/",
    "commas and digits": "1,",
    "half an address": "a@b.",
    "half a link": "http://",
    "half a date": "2026-01-",
    "half a hex number": "0x1g",
    "open JSON": '": "',
    "bullets of spaces": "-  \t",
    "headings": "# a #",
    "bold": "**a",
    "citations": "[1, 2",
    "words": "Order W2378156 ships soon. ",
}


def readers() -> dict[str, Callable[[str], object]]:
    """Return what reads text from outside, by name."""

    def mask(text: str) -> str:
        return masked_text(text, 24, TokenCounter(), handle="h1", full_tokens=1)

    return {
        "identifiers_in": identifiers_in,
        "read_entries": lambda text: read_entries(f"- {text} x", {}),
        "masked_text": mask,
        "escape": lambda text: escape(f"<{text}"),
        "sentences": sentences,
        "constraints_in": constraints_in,
    }


def seconds(read: Callable[[str], object], text: str) -> float:
    """Return the CPU time of the fastest of three runs."""
    best = float("inf")
    for _ in range(3):
        began = time.process_time()
        read(text)
        best = min(best, time.process_time() - began)
    return best


def main(arguments: Sequence[str] | None = None) -> int:
    """Print every row that grows, and exit with 1 when one grows too much."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--short", type=int, default=10_000, help="characters")
    parser.add_argument("--long", type=int, default=100_000, help="characters")
    options = parser.parse_args(arguments)
    worst = 0.0
    print(f"{'function':16} {'shape':20} {'short ms':>9} {'long ms':>9} {'growth':>7}")
    for name, read in readers().items():
        for shape, unit in SHAPES.items():
            short, long = (unit * (size // len(unit) + 1) for size in (options.short, options.long))
            before, after = seconds(read, short), seconds(read, long)
            growth = after / max(before, 1e-3)
            worst = max(worst, growth)
            if growth > 1:
                print(f"{name:16} {shape:20} {before * 1e3:9.2f} {after * 1e3:9.2f} {growth:7.1f}")
    print(f"worst growth: {worst:.1f} (mark: at most {GROWTH_MARK})")
    return worst > GROWTH_MARK


if __name__ == "__main__":
    sys.exit(main())
