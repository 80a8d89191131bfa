"""`serve-key`: make an API key for a user of `serve`."""

import os
from pathlib import Path
from typing import Annotated

import typer

from everthread.cli.options import UserId
from everthread.cli.output import note, say
from everthread.cli.serve import needs_web
from everthread.errors import SettingsError


def serve_key(
    user: UserId,
    api_keys: Annotated[
        Path | None,
        typer.Option("--api-keys", metavar="FILE", help="Add its line to this file.  [default: print the line]"),
    ] = None,
) -> None:
    """Make an API key for a user of `serve`.

    The key is printed once; the file has only its SHA-256. Remove its line to withdraw it: a running server notices.
    """
    needs_web()
    from everthread.web.auth import new_key

    key, line = new_key(user)
    if api_keys is None:
        note("the line for the file of `--api-keys`:")
        note(line)
    else:
        try:
            with open(os.open(api_keys, os.O_CREAT | os.O_APPEND | os.O_RDWR, 0o600), "a+b") as file:
                file.seek(0)
                kept = file.read()
                # Some editors leave the last line without its end.
                end = b"\n" if kept and not kept.endswith(b"\n") else b""
                file.write(end + f"{line}\n".encode())
        except OSError as error:
            raise SettingsError(f"cannot write {str(api_keys)!r}: {error.strerror}") from error
        note(f"{str(api_keys)!r} has the key of user {user!r}; this is the only time that it is shown:")
    say(key)
