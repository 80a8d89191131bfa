"""`sweep`: end the sessions that nobody has gone on with."""

from typing import Annotated

from everthread.cli.end import print_ending
from everthread.cli.options import (
    DEFAULT_DATABASE,
    Agents,
    AsJson,
    DatabaseUrl,
    RetentionPolicy,
    duration_seconds,
    load_agent,
    time_option,
)
from everthread.cli.output import counted, note, print_json, progress, say
from everthread.cli.retain import policy_of, print_retained
from everthread.errors import StorageError
from everthread.graph.ending import Ending, end_if_idle
from everthread.graph.retaining import has_policy, retain
from everthread.storage.open import open_storage
from everthread.storage.reading import records


def sweep(
    idle: Annotated[str, time_option("--idle", "Such as 30s, 30m, 2h or 1d.")],
    retention: RetentionPolicy = None,
    agent: Agents = None,
    database: DatabaseUrl = DEFAULT_DATABASE,
    as_json: AsJson = False,
) -> None:
    """End every session without activity for some time.

    Sessions that have already ended, or whose thread is in use, are skipped. With a retention policy, what is
    no longer kept is then deleted without asking; `retain --dry-run` shows it.
    """
    idle_seconds = duration_seconds(idle)
    agents = {one.name: one for one in map(load_agent, agent or ())}
    endings: list[Ending] = []
    skipped = {"active": 0, "ended": 0, "busy": 0}
    # A session whose thread is locked is not idle, so nothing is waited for.
    with open_storage(database, create=False, lock_timeout_seconds=0, retention=policy_of(retention)) as storage:
        sessions = records(storage.store)
        with progress(f"sweeping {counted(len(sessions), 'session')}") as report:
            for place, record in enumerate(sessions):
                report("sweeping", place, len(sessions))
                outcome = end_if_idle(storage, record["thread_id"], idle_seconds, agents)
                if isinstance(outcome, Ending):
                    endings.append(outcome)
                else:
                    skipped[outcome] += 1
            retained = None
            if has_policy(storage, agents.values()):
                retained = retain(storage, agents.values(), verify=False, progress=report)
    failed = [ending.thread_id for ending in endings if ending.failure]
    if as_json:
        result = {"idle_seconds": idle_seconds, "ended": [ending.as_json() for ending in endings], "skipped": skipped}
        print_json(result | ({"retained": retained.as_json()} if retained else {}))
    else:
        for ending in endings:
            say(f"thread {ending.thread_id} · user {ending.user_id}", "bold")
            print_ending(ending)
        note(
            f"{counted(len(endings) - len(failed), 'session')} ended; skipped: {skipped['active']} active, "
            f"{skipped['ended']} already ended, {skipped['busy']} busy"
        )
        if retained:
            print_retained(retained)
    if failed:
        raise StorageError(
            f"{counted(len(failed), 'session')} could not be consolidated, the first on thread {failed[0]!r}"
        )
