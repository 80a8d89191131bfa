"""`adopt`: the threads of other graphs in a database, and ours that begin with their messages."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from everthread.cli.options import (
    DEFAULT_DATABASE,
    WAIT_SECONDS,
    AgentName,
    AsJson,
    DatabaseUrl,
    agent_of,
    command_line,
    user_option,
)
from everthread.cli.output import counted, note, print_json, print_table, say
from everthread.cli.reading import when
from everthread.errors import NotFoundError, SettingsError
from everthread.state import Context
from everthread.storage.foreign_threads import ForeignThread, foreign_threads
from everthread.storage.reader import open_reader

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

_COLUMNS = ("thread", "user", "turns", "messages", "checkpoints", "kB", "waits for", "state keys", "last activity")
_TEXT = ("thread", "user", "waits for", "state keys", "last activity")


def adopt(
    thread: Annotated[
        str | None, typer.Argument(metavar="THREAD", help="A thread of another graph.  [default: list all]")
    ] = None,
    into: Annotated[
        str | None, typer.Option("--into", metavar="NEW", help="Begin the thread NEW of ours with its messages.")
    ] = None,
    back: Annotated[
        bool, typer.Option("--back", help="With --into: what was said in NEW since, to hand it back to THREAD.")
    ] = False,
    user: Annotated[str, user_option("Whose thread NEW is.")] = Context.user_id,
    agent: AgentName = None,
    database: DatabaseUrl = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """List the threads of other graphs, or begin one of ours with their messages.

    A thread of another graph goes on in that graph: add EverthreadMiddleware to it. Nothing here changes such a thread,
    and listing does not change a byte of the file.
    """
    if into is None:
        if back:
            raise SettingsError("which thread of ours? `everthread adopt THREAD --into NEW --back`")
        _list(thread, database, as_json=as_json)
        return
    if thread is None:
        raise SettingsError("which thread should it begin with? `everthread adopt THREAD --into NEW`")
    # Taken when called: a list needs none of them.
    from everthread.graph.adoption import begin_with
    from everthread.graph.agent import build_graph
    from everthread.storage.adoption import new_messages
    from everthread.storage.open import open_storage

    with open_storage(database, create=False, lock_timeout_seconds=WAIT_SECONDS) as storage:
        if back:
            new = new_messages(storage, thread, into)
        else:
            taken = begin_with(build_graph(agent_of({}, agent), model="offline", storage=storage), thread, into, user)
    if back:
        _print_new(new, thread, into, database, as_json=as_json)
    elif as_json:
        print_json({"thread_id": into, "user_id": user, "adopted": thread, "messages": taken})
    else:
        say(f"Thread {into} of user {user} begins with {counted(taken, 'message')} of thread {thread}.", "bold")
        again = command_line("chat", thread=into, user=user, agent=agent, database=database)
        note(f"thread {thread} is as it was; go on with `{again}`")


_HAND_BACK = """
from everthread import open_storage
from everthread.storage.adoption import new_messages

with open_storage({database!r}) as storage:
    new = new_messages(storage, {thread!r}, {ours!r})
app.update_state({{"configurable": {{"thread_id": {thread!r}}}}}, {{"messages": new}})"""


def _print_new(messages: "Sequence[BaseMessage]", thread: str, ours: str, database: str, *, as_json: bool) -> None:
    """Print the messages for a program, or how the app takes them."""
    from langchain_core.messages import messages_to_dict

    if as_json:
        print_json({"thread_id": thread, "messages": messages_to_dict(messages)})
    elif not messages:
        say(f"Nothing was said in thread {ours} since it began with the messages of thread {thread}.")
    else:
        say(f"{counted(len(messages), 'message')} of thread {ours} are new. The app's own graph takes them:", "bold")
        say(_HAND_BACK.format(database=database, thread=thread, ours=ours))


def _list(wanted: str | None, database: str, *, as_json: bool) -> None:
    with open_reader(database) as reader:
        threads = [one for one in foreign_threads(reader) if wanted in (None, one.thread_id)]
    if wanted is not None and not threads:
        raise NotFoundError(f"no other graph has a thread {wanted!r} in this database; `everthread adopt` lists them")
    if as_json:
        print_json([asdict(thread) for thread in threads])
    elif not threads:
        note("no thread of another graph is in this database")
    else:
        print_table(_COLUMNS, list(map(_row, threads)), words=_TEXT)
        if has_run := sum(thread.user_id is not None for thread in threads):
            note(f"{has_run:,} with a user: run with EverthreadMiddleware or a guard, and in `everthread threads` too")
        note(
            "they go on in the graph that made them, with EverthreadMiddleware or without; "
            "`everthread adopt THREAD --into NEW` begins a thread of ours with the messages of one"
        )


def _row(thread: ForeignThread) -> Sequence[str]:
    waiting = counted(len(thread.waiting_for), "approval") if thread.waiting_for else "–"
    figures = (thread.turns, thread.messages, thread.checkpoints)
    return [
        thread.thread_id,
        thread.user_id or "–",
        *(f"{figure:,}" for figure in figures),
        f"{thread.bytes / 1000:,.1f}",
        waiting,
        ", ".join(thread.keys) or "–",
        when(thread.last_activity),
    ]
