"""Options that `replay`, `simulate` and `eval` share."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["AsDocument", "CountAs", "Jobs", "Limit", "Page", "Toolkits"]

Limit = Annotated[
    int | None, typer.Option("--limit", min=1, metavar="K", help="Only the first K records.  [default: all]")
]
Jobs = Annotated[int | None, typer.Option("--jobs", min=1, metavar="N", help="Processes.  [default: one a core]")]
Toolkits = Annotated[
    Path | None,
    typer.Option("--toolkits", metavar="FILE", help="Prompts and schemas.  [default: toolkits.json beside FILE]"),
]
CountAs = Annotated[
    str | None, typer.Option("--count-as", metavar="NAME", help="Model whose tokens are counted.  [default: o200k]")
]
Page = Annotated[Path | None, typer.Option("--html", metavar="OUT", help="Write a report to open in a browser.")]
AsDocument = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]
