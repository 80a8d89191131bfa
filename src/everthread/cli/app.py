"""The commands and the options of the program itself."""

from typing import Annotated

import typer

import everthread
from everthread.cli.chat import chat
from everthread.cli.compact import compact
from everthread.cli.demo import demo
from everthread.cli.doctor import doctor
from everthread.cli.evaluate import evaluate
from everthread.cli.export import export
from everthread.cli.forget import forget
from everthread.cli.guard import guard
from everthread.cli.ledger import ledger
from everthread.cli.notes import notes
from everthread.cli.profile import profile
from everthread.cli.replay import replay
from everthread.cli.sessions import end, sweep
from everthread.cli.simulate import simulate
from everthread.cli.threads import show, threads
from everthread.cli.why import why

__all__ = ["app"]

# Plain help and plain errors read the same in a terminal, a log and a pipe.
app = typer.Typer(
    name="everthread",
    help="LangGraph agents whose threads never run out of context and never lose what matters.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"everthread {everthread.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and leave.")
    ] = False,
) -> None:
    """LangGraph agents whose threads never run out of context and never lose what matters."""


for command in (
    demo,
    chat,
    threads,
    show,
    why,
    ledger,
    notes,
    end,
    sweep,
    replay,
    simulate,
    export,
    forget,
    compact,
    guard,
    doctor,
):
    app.command()(command)
app.command("eval")(evaluate)
app.add_typer(profile, name="profile")
