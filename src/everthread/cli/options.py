"""Options that several commands share, and how their values are read."""

import getpass
import os
import sys
import sysconfig
import traceback
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from dataclasses import replace
from importlib import import_module
from pathlib import Path, PurePath
from shlex import join
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from everthread.errors import SettingsError
from everthread.plain import without_guide
from everthread.state import Agent, Spend, namespaces
from everthread.storage.locations import is_postgres

if TYPE_CHECKING:
    from everthread.graph.thread_checks import AgentLike

DEFAULT_DATABASE = "sqlite:///everthread.db"

WAIT_SECONDS = 20.0
"""How long a command waits for another run on its thread, or for another change of the same user's notes."""


def _checked(name: str) -> Callable[[str | None], str | None]:
    """Return a check that refuses an id which no store can hold, by the name of its option or argument."""
    return lambda user: None if user is None else namespaces.checked(name, user)


def user_option(text: str) -> Any:
    """Return `--user`, which says in the help what it is for."""
    return typer.Option("--user", metavar="USER", callback=_checked("--user"), help=text)


def thread_option(text: str, metavar: str = "ID") -> Any:
    """Return `--thread`, which says in the help what it is for; an empty id, as of an unset variable, is refused."""
    return typer.Option("--thread", metavar=metavar, callback=_checked("--thread"), help=text)


def command_line(*words: str, database: str = DEFAULT_DATABASE, **options: object) -> str:
    """Return a command to copy, such as `everthread chat --thread t-1 --user ann`.

    Args:
        words: the command and its arguments.
        database: left out where the command has it without saying; a password is not shown.
        options: by their names; those that are None are left out.
    """
    if database != (os.environ.get("EVERTHREAD_DATABASE") or DEFAULT_DATABASE):
        if is_postgres(database):
            # Taken when called: its driver is an extra.
            from everthread.storage.postgres.location import locate_postgres

            database = locate_postgres(database).url
        options["database"] = database
    named = [part for name, value in options.items() if value is not None for part in (f"--{name}", str(value))]
    return join(["everthread", *words, *named])


def operator() -> str:
    """Return who sits at the command line, for the ledger; empty where the system does not know."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return ""


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
AgentName = Annotated[
    str | None,
    typer.Option(
        "--agent", metavar="NAME", help="`travel`, `support` or `module:attribute`.  [default: the thread's, or travel]"
    ),
]
ThreadId = Annotated[str, typer.Argument(metavar="THREAD", help="Id of the thread.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on stdout and nothing else there.")]
OneUser = Annotated[str | None, user_option("Only this user's.")]
UserId = Annotated[str, typer.Argument(metavar="USER", callback=_checked("USER"), help="Id of the user.")]
RetentionPolicy = Annotated[
    str | None,
    typer.Option(
        "--retention",
        envvar="EVERTHREAD_RETENTION",
        metavar="POLICY",
        help="What is kept for how long, such as `idle_days=90,transcript_days=30,ledger_turns=500`.",
    ),
]
Agents = Annotated[
    list[str] | None,
    typer.Option("--agent", metavar="NAME", help="`module:attribute` with a policy of its own; can be repeated."),
]
SpendLimits = Annotated[
    str | None,
    typer.Option(
        "--spend",
        envvar="EVERTHREAD_SPEND",
        metavar="LIMITS",
        help="Count what calls cost, and ask at a limit, such as `user_day=2.00,thread=1.00`.  [default: the agent's]",
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
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


def call_named(text: str) -> int | str:
    """Return a call's number, or the name that the ledger has for it."""
    return int(text) if text.lstrip("-").isdigit() and len(text) < 12 else text


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
        raise typer.BadParameter(f"{text!r} is not a length of time; write it as 30s, 30m, 2h or 1d")
    return seconds


def time_option(name: str, text: str) -> Any:
    """Return an option that takes a length of time as text, such as `30m`."""

    def checked(value: str) -> str:
        duration_seconds(value)
        return value

    return typer.Option(name, metavar="TIME", callback=checked, help=text)


def load_agent(name: str) -> Agent:
    """Return a ready agent by its name, or one's own as `module:attribute`.

    A module is looked for in the current folder too.

    Raises:
        SettingsError: there is no such agent.
    """
    if ":" not in name:
        # Taken when called: the agents' tools bring LangChain, which most commands do without.
        from everthread.agents import agent_named

        return agent_named(name)
    agent = load_attribute("agent", name)
    if not isinstance(agent, Agent):
        raise SettingsError(
            f"{name!r} is of type `{type(agent).__name__}` and not an everthread.Agent; a graph of your own, such as "
            "one of `create_agent`, runs in your own code"
        )
    return agent


def load_agent_or_graph(name: str) -> "AgentLike":
    """Return what `load_agent` does, or else a graph of one's own.

    Raises:
        SettingsError: there is no such agent or graph.
    """
    if ":" not in name:
        return load_agent(name)
    from langgraph.graph import StateGraph
    from langgraph.pregel.protocol import PregelProtocol

    found = load_attribute("agent", name)
    if not isinstance(found, Agent | StateGraph | PregelProtocol):
        raise SettingsError(f"{name!r} is of type `{type(found).__name__}` and neither an everthread.Agent nor a graph")
    return cast("AgentLike", found)


def with_spend(agent: Agent, limits: str | None) -> Agent:
    """Return an agent with the limits of a command line.

    Raises:
        SettingsError: they cannot be read.
    """
    return agent if limits is None else replace(agent, spend=Spend.from_text(limits))


def load_attribute(kind: str, name: str) -> Any:
    """Return what `module:attribute` names; a module is looked for in the current folder too.

    What the module prints goes to stderr: stdout is the command's own, and JSON with `--json`.

    Raises:
        SettingsError: there is no such thing; `kind` says what it was to be.
    """
    module, _, attribute = name.partition(":")
    if "/" in module or module.endswith(".py"):
        example = f"{PurePath(module).stem}:{attribute}"
        raise SettingsError(f"cannot load the {kind} {name!r}: write a module name and not a path, such as `{example}`")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        with redirect_stdout(sys.stderr):
            return getattr(import_module(module), attribute)
    except Exception as failure:  # a module of the user's may raise anything
        reason = " ".join(without_guide(str(failure)).split()) or type(failure).__name__
        raise SettingsError(f"cannot load the {kind} {name!r}: {reason}{_place(failure)}") from failure


def _place(failure: Exception) -> str:
    """Say where in the user's own files something failed; empty when it was in none of them."""
    if isinstance(failure, SyntaxError):
        return ""  # its text says so
    packages = (
        *(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")),
        str(Path(__file__).parents[1]),
    )
    frames = reversed(traceback.extract_tb(failure.__traceback__))
    own = next((one for one in frames if not one.filename.startswith(("<", *packages))), None)
    return f" ({own.filename}, line {own.lineno})" if own is not None else ""


def agent_of(record: Mapping[str, Any], name: str | None = None) -> Agent:
    """Return the agent that a command names, else the one of a thread's record.

    An agent that is not ours has left only its name: it stands without tools and without a profile schema.

    Args:
        record: of the thread's session; may be empty.
        name: as for `load_agent`.
    """
    if name is not None:
        return load_agent(name)
    from everthread.graph.agent import recorded_agent

    return recorded_agent(record)


def ready_agent(record: Mapping[str, Any], thread_id: str) -> Agent:
    """Return the agent that a thread runs with when none is named.

    Raises:
        SettingsError: it is none of the ready ones.
    """
    from everthread.graph.agent import ready_agents

    agent = agent_of(record)
    if agent.name not in ready_agents():
        raise SettingsError(
            f"thread {thread_id!r} is run by the agent {agent.name!r}, which only your code has; name it by "
            "`--agent module:attribute`"
        )
    return agent
