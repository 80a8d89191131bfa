"""`steer`: decide by hand what the next prompts of a thread have."""

from dataclasses import asdict
from shlex import quote
from typing import Annotated

import typer

from everthread.cli.options import (
    DEFAULT_DATABASE,
    WAIT_SECONDS,
    AgentName,
    AsJson,
    DatabaseUrl,
    ThreadId,
    agent_of,
    call_named,
    operator,
)
from everthread.cli.output import note, print_json, say, shortened
from everthread.cli.reading import note_busy, when
from everthread.errors import SettingsError
from everthread.forks import fork
from everthread.graph.agent import build_graph
from everthread.steering import ACTIONS, Steering, steering
from everthread.storage.open import open_storage
from everthread.storage.reading import record_of
from everthread.storage.to_read import storage_to_read

_DONE = {
    "bring_back": "comes back with the next message; `withdraw` takes that back",
    "mask": "is masked with the next message; `withdraw` takes that back, `bring-back` undoes it later",
    "pin": "is in every prompt from now on; `withdraw` unpins it",
}


def steer(
    thread: ThreadId,
    action: Annotated[
        str | None,
        typer.Argument(metavar="bring-back|mask|pin|pin-message|withdraw|fork", help="What to do."),
    ] = None,
    what: Annotated[
        str | None,
        typer.Argument(metavar="WHAT", help="Id of a message, the sentence to pin, id in the list, or a call."),
    ] = None,
    agent: AgentName = None,
    database: DatabaseUrl = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """Change by hand what the next prompts of a thread contain.

    Without an action: what is pinned, and what waits for the next message. `bring-back` shows a message again that left
    the prompt or was masked, `mask` keeps a few words of a tool result, `pin` a sentence or `pin-message` a message in
    every prompt, `withdraw` takes one of these back, `fork` goes on from where a call was made. `everthread context
    THREAD --json` has the ids of messages and the names of calls.
    """
    if options := [one for one in (thread, action, what) if one and one.startswith("--")]:
        raise SettingsError(f"no such option: {options[0]}")
    if action not in (None, "fork", *ACTIONS):
        raise SettingsError(f"unknown action {action!r}; choose one of {', '.join((*ACTIONS, 'fork'))}")
    if action and not what:
        raise SettingsError(f"`{action}` what? `everthread steer {quote(thread)} {action} WHAT`")
    if action is None or not what:
        with storage_to_read(database) as storage:
            _list(thread, steering(storage, thread), as_json=as_json)
        return
    with open_storage(database, create=False, lock_timeout_seconds=WAIT_SECONDS) as storage:
        note_busy(storage, [thread])
        if action == "fork":
            graph = build_graph(
                agent_of(record_of(storage.store, thread) or {}, agent), model="offline", storage=storage
            )
            made = fork(graph, thread, call_named(what), actor=operator())
            if as_json:
                print_json({"thread_id": thread, "call": made.call, "left_call": made.left_call})
            else:
                note(
                    f"the thread goes on from call {made.call}; `fork {made.left_call}` goes back to the branch it left"
                )
        else:
            asked = ACTIONS[action](storage, thread, what, actor=operator())
            if as_json:
                print_json({**asdict(asked), "withdrawn": action == "withdraw"})
            else:
                note("taken back" if action == "withdraw" else f"{asked.id}: it {_DONE[asked.action]}")


def _list(thread: str, asked: list[Steering], *, as_json: bool) -> None:
    if as_json:
        print_json([asdict(one) for one in asked])
        return
    if not asked:
        note(f"nothing is pinned in thread {thread!r}, and nothing waits for its next message")
    for one in asked:
        what = f"{one.speaker}: {one.text}" if one.speaker else one.text or f"message {one.message_id}"
        say(f"  {one.id}  {one.action.replace('_', ' '):<10}  {shortened(what, 80)}  ({one.actor}, {when(one.at)})")
