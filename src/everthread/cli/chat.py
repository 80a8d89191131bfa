"""`chat`: talk with an agent."""

from typing import Annotated

import typer

from everthread.cli.options import DEFAULT_DATABASE, DatabaseUrl, ModelName

__all__ = ["chat"]

_WAIT_SECONDS = 20.0
"""How long a turn waits for another run on the thread; longer than the lease of a process that was killed."""


def chat(
    agent: Annotated[
        str | None,
        typer.Option("--agent", metavar="NAME", help="`travel` or `support`.  [default: the thread's, else travel]"),
    ] = None,
    user: Annotated[
        str | None,
        typer.Option("--user", metavar="USER", help="Who is talking.  [default: the thread's user, else local]"),
    ] = None,
    thread: Annotated[
        str | None, typer.Option("--thread", metavar="ID", help="Go on with a thread.  [default: a new one]")
    ] = None,
    model: ModelName = None,
    window: Annotated[
        int | None, typer.Option("--window", metavar="N", help="Input limit in tokens.  [default: the model's own]")
    ] = None,
    database: DatabaseUrl = DEFAULT_DATABASE,
) -> None:
    """Talk with an agent; lines from a pipe work too, one message each.

    Inside: /end ends the session, /notes, /budget, /retry, /help, /quit. Three double quotes on a line of their own
    open and close a message of several lines.
    """
    from everthread.cli.dialogue import Dialogue, Setting
    from everthread.storage.open import open_storage

    # Everything that can be wrong with the words on the command line is found before a file is made.
    setting = Setting.checked(agent, user, thread, model, window)
    with open_storage(database, lock_timeout_seconds=_WAIT_SECONDS) as storage:
        code = Dialogue(setting.opened(storage)).run()
    raise typer.Exit(code)
