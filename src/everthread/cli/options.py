"""Options that several commands share."""

from typing import Annotated

import typer

__all__ = ["AsJson", "DatabaseUrl", "ModelName", "OneUser", "duration_seconds"]

DEFAULT_DATABASE = "sqlite:///everthread.db"

DatabaseUrl = Annotated[
    str, typer.Option("--database", envvar="EVERTHREAD_DATABASE", metavar="URL", help="Database of the threads.")
]
ModelName = Annotated[
    str | None,
    typer.Option(
        "--model",
        envvar="EVERTHREAD_MODEL",
        metavar="NAME",
        help="`offline` or `provider:name`, such as `openai:gpt-5-mini`.  [default: offline]",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on stdout and nothing else there.")]
OneUser = Annotated[str | None, typer.Option("--user", metavar="USER", help="Only this user's.")]

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def duration_seconds(text: str) -> float:
    """Read a length of time such as `30s`, `30m`, `2h` or `1d`.

    Raises:
        typer.BadParameter: it has another form.
    """
    number, unit = text.strip()[:-1], text.strip()[-1:].lower()
    try:
        seconds = float(number) * _UNITS[unit]
    except (ValueError, KeyError):
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise typer.BadParameter(f"{text!r} is no length of time; write it as 30s, 30m, 2h or 1d")
    return seconds
