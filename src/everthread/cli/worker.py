"""`worker`: do the jobs of a Postgres database."""

import asyncio
import logging
from importlib.util import find_spec
from typing import Annotated

import typer

from everthread.cli.options import Agents, DatabaseUrl, RetentionPolicy, duration_seconds, load_agent, time_option
from everthread.cli.output import note
from everthread.errors import SettingsError, installing


def worker(
    database: DatabaseUrl,
    idle: Annotated[str, time_option("--idle", "Idle time after which a session ends, such as 30m or 2h.")] = "30m",
    concurrency: Annotated[int, typer.Option("--concurrency", min=1, help="Jobs at a time.")] = 4,
    once: Annotated[bool, typer.Option("--once", help="Do what is due, and stop.")] = False,
    retention: RetentionPolicy = None,
    agent: Agents = None,
) -> None:
    """End idle sessions and prune their threads, as jobs on Postgres.

    Start one or more beside `everthread serve`: each job is done once, and another worker takes over those of a killed
    one. With a retention policy, what is no longer kept is deleted once a day. On SQLite use `sweep`.
    """
    if find_spec("procrastinate") is None:
        raise SettingsError(f"'procrastinate' is not installed: {installing('jobs')}")
    from everthread.storage.locations import is_postgres

    if not is_postgres(database):
        raise SettingsError("jobs are for Postgres; on SQLite use `everthread sweep --idle 30m`")
    from everthread.jobs import work
    from everthread.storage.open import open_storage

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    from everthread.cli.retain import policy_of

    seconds, agents = duration_seconds(idle), [load_agent(name) for name in agent or ()]
    policy = policy_of(retention)
    with open_storage(database, lock_timeout_seconds=0, end_idle_seconds=seconds, retention=policy) as storage:
        note(f"doing the jobs of {storage.url}; sessions end after {idle}")
        asyncio.run(work(storage, agents, concurrency=concurrency, is_once=once))
