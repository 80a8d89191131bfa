"""The commands, and the options of the program itself."""

from difflib import get_close_matches
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

import everthread

_HELP = "LangGraph agents whose threads never run out of context and never lose what matters."

# Plain help and plain errors read the same in a terminal, a log and a pipe.
_STYLE: dict[str, Any] = {
    "add_completion": False,
    "pretty_exceptions_enable": False,
    "rich_markup_mode": None,
    "context_settings": {"help_option_names": ["-h", "--help"]},
}

COMMANDS = {
    "demo": ("demo", "Play two short sessions without a key, and check them."),
    "chat": ("chat", "Talk with an agent; lines from a pipe work too, one message each."),
    "threads": ("threads", "List the threads, the latest activity first."),
    "show": ("show", "Show every message of a thread."),
    "search": ("search", "Search what was said in all threads of a user."),
    "adopt": ("adopt", "List the threads of other graphs, or begin one of ours with their messages."),
    "context": ("context", "Show what a model call was sent, message by message."),
    "steer": ("steer", "Change by hand what the next prompts of a thread contain."),
    "why": ("why", "Say where something is now, how it came there, and what depends on it."),
    "ledger": ("ledger", "List the events of a thread."),
    "spend": ("spend", "Show what model calls cost, by user, day, model or thread."),
    "notes": ("notes", "Show what is remembered about a user, or correct it."),
    "profile": ("profile", "Import or show a user's profile."),
    "end": ("end", "End a thread's session: what lasts becomes long-term."),
    "sweep": ("sweep", "End every session without activity for some time."),
    "replay": ("replay", "Send recorded conversations through the real graph and check every prompt."),
    "simulate": ("simulate", "Try policies and windows on recorded conversations, or on threads of a database."),
    "eval": ("evaluate", "Measure on recorded conversations, with baselines beside our figures."),
    "worker": ("worker", "End idle sessions and prune their threads, as jobs on Postgres."),
    "serve": ("serve", "Serve agents over HTTP: threads, runs, streams, notes."),
    "dashboard": ("dashboard", "Show in a browser what the model saw."),
    "serve-key": ("serve_key", "Make an API key for a user of `serve`."),
    "export": ("export", "Export everything held about a user, as JSON."),
    "forget": ("forget", "Erase a user or a thread for good, and verify it."),
    "retain": ("retain", "Delete what is no longer kept: idle threads, old messages, old events."),
    "compact": ("compact", "Prune old checkpoints and reclaim disk space."),
    "migrate": ("migrate", "Copy a database to another one, such as a file to Postgres, and compare both."),
    "guard": ("guard", "Tell which texts may be kept as notes."),
    "doctor": ("doctor", "Check what a conversation needs."),
}
"""Each command's module in `everthread.cli`, whose function or group has the same name, and its line in the help."""


class _Commands(TyperGroup):
    """Imports a command when it is run, so that `--help` and `--version` load no graph and no model."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            close = get_close_matches(cmd_name, COMMANDS, n=1)
            ctx.fail(f"No such command {cmd_name!r}." + (f" Did you mean {close[0]!r}?" if close else ""))
        module, _ = COMMANDS[cmd_name]
        command = getattr(import_module(f"everthread.cli.{module}"), module)
        if not isinstance(command, typer.Typer):
            single = typer.Typer(**_STYLE)
            # `steer T fork -1`: what begins with a dash is no option there, unless it is one.
            single.command(cmd_name, context_settings={"ignore_unknown_options": cmd_name == "steer"})(command)
            command = single
        return get_command(command)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


app = typer.Typer(name="everthread", help=_HELP, cls=_Commands, no_args_is_help=True, **_STYLE)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"everthread {everthread.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and leave.")
    ] = False,
) -> None: ...
