"""`doctor`: is everything here that a conversation needs."""

import typer

from everthread.cli.options import DEFAULT_DATABASE, AsJson, DatabaseUrl, ModelName
from everthread.cli.output import out, plain, print_json

__all__ = ["doctor"]

_STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}


def doctor(model: ModelName = None, database: DatabaseUrl = DEFAULT_DATABASE, as_json: AsJson = False) -> None:
    """Check what a conversation needs; exit 1 if it fails.

    Packages, SQLite, token counting, the model, keys (never their values), the database.
    """
    from rich.text import Text

    from everthread.cli.checkup import examine

    findings = examine(model, database)
    failed = any(found.status == "fail" for found in findings)
    if as_json:
        print_json({"ok": not failed, "checks": [found.as_json() for found in findings]})
    else:
        console = out()
        for found in findings:
            line = Text.assemble((f"{found.status:4}", _STYLES[found.status]), f"  {found.name}: {plain(found.detail)}")
            console.print(line, soft_wrap=True)
    if failed:
        raise typer.Exit(1)
