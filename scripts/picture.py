"""Draw the README's picture: `everthread demo` as it prints in a terminal, with long replies cut, as an SVG.

python scripts/picture.py            # writes docs/images/demo.svg
"""

import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "demo.svg"

_COLUMNS = 104
_INDENT = " " * 7
"""Behind it stands what belongs to a message."""

_LINES_OF_A_REPLY = 2
_ABOUT_THE_NOTES = ("vegetarian", "aisle seats")
"""What a long reply keeps besides its first lines."""

_FONT = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


def main() -> None:
    """Run the demo and write the picture."""
    lines = [Text.from_ansi(line) for line in _demo().splitlines()]
    # Printed nowhere: only the record counts.
    console = Console(record=True, width=_COLUMNS, file=StringIO(), force_terminal=True)
    console.print(Text("$ make demo", style="bold"))
    for line in _shortened(_without_remarks(lines)):
        console.print(line, no_wrap=True, crop=True)
    PICTURE.parent.mkdir(exist_ok=True)
    svg = console.export_svg(title="everthread demo", theme=MONOKAI)
    # The font would be fetched from a server; without it a reader's own monospaced font is used.
    PICTURE.write_text(_FONT.sub("", svg), encoding="utf-8")


def _demo() -> str:
    """Return what the demo writes on a terminal, colours included."""
    terminal, its_end = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(_COLUMNS)}
    command = [sys.executable, "-m", "everthread", "demo"]
    with subprocess.Popen(command, stdout=its_end, stderr=subprocess.DEVNULL, env=environment) as process:
        os.close(its_end)
        output = b"".join(_chunks(terminal))
    os.close(terminal)
    if process.returncode:
        raise SystemExit(f"the demo failed with exit code {process.returncode}; run `make demo` to see why")
    return output.decode().replace("\r\n", "\n")


def _chunks(terminal: int) -> Iterator[bytes]:
    while True:
        try:
            chunk = os.read(terminal, 65536)
        except OSError:  # how a Linux terminal says that its other end was closed
            return
        if not chunk:
            return
        yield chunk


def _without_remarks(lines: Iterable[Text]) -> Iterator[Text]:
    """Leave out the introduction, all legends but the first, and what the demo checks one by one."""
    has_begun = is_legend = are_claims = False
    legends = 0
    for line in lines:
        has_begun = has_begun or line.plain.startswith("── thread")
        are_claims = are_claims or line.plain == "checked"
        is_legend = line.plain.startswith(_INDENT + ("S " if not is_legend else ""))
        legends += line.plain.startswith(_INDENT + "S ")
        is_claim = are_claims and line.plain.startswith("  ")
        if has_begun and not is_claim and not (is_legend and legends > 1):
            yield line


def _shortened(lines: Iterable[Text]) -> Iterator[Text]:
    """Cut each reply to its first lines and what it says of the notes; an ellipsis stands for the rest."""
    shown, is_reply, is_cut = 0, False, False
    for line in lines:
        if line.plain.startswith("agent  "):
            shown, is_reply, is_cut = 0, True, False
        elif line.plain.startswith(_INDENT + "prompt "):
            is_reply = False
        if is_reply and not line.plain:
            continue
        shown += is_reply
        if not is_reply or shown <= _LINES_OF_A_REPLY or any(words in line.plain for words in _ABOUT_THE_NOTES):
            yield line
            is_cut = False
        elif not is_cut:
            yield Text(_INDENT + "…", style="dim")
            is_cut = True


if __name__ == "__main__":
    main()
