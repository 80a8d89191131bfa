"""`doctor --threads`: which threads the agents of today could not continue."""

from collections.abc import Sequence

import typer

from everthread.cli.options import load_agent_or_graph
from everthread.cli.output import counted, note, print_json, progress, say
from everthread.graph.thread_checks import ThreadChecks, check_threads
from everthread.storage.to_read import storage_to_read

__all__ = ["report_threads"]


def report_threads(database: str, agents: Sequence[str], *, as_json: bool) -> None:
    """Check the threads of a database.

    Raises:
        typer.Exit: with 1, when one of them could not go on.
    """
    given = [load_agent_or_graph(name) for name in agents]
    with storage_to_read(database) as storage, progress("checking threads") as report:
        checks = check_threads(storage, given, progress=report)
    result = checks.as_json()
    if as_json:
        print_json(result)
    else:
        _print(checks)
    if not result["ok"]:
        raise typer.Exit(1)


def _print(checks: ThreadChecks) -> None:
    stopped = [one for one in checks.checked if not one.can_continue]
    for one in checks.checked:
        for problem in one.problems:
            say(f"{'fail' if problem.stops else 'warn'}  thread {one.thread_id} of {one.agent}: {problem.detail}")
    say(f"{counted(len(checks.checked), 'thread')} checked; {len(stopped):,} could not go on as they are.", "bold")
    for name, number in checks.others.items():
        note(f"{counted(number, 'thread')} of the agent {name!r}, which was not given: `--agent module:attribute`")
    if checks.foreign:
        threads = counted(checks.foreign, "thread")
        note(f"{threads} of graphs with EverthreadMiddleware or a guard, which go on in their own app: not checked")
