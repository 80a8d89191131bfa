"""What is done outside of runs, on Postgres: sessions end that nobody has gone on with, and their threads are pruned;
once a day, what is kept no longer goes.

Any number of workers take the jobs of one database; each job is done by one of them, and those of a worker that was
killed by another one within a minute. All of them can be done again: a session is consolidated in one transaction,
under the locks of its thread and of its user's notes.

On SQLite `everthread sweep` does the same when it is called, and `everthread serve` by itself.
"""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from procrastinate import App, PsycopgConnector, RetryStrategy

from everthread.errors import SettingsError, ThreadBusyError
from everthread.graph.ending import Ending, end_if_idle, has_open_session
from everthread.graph.retaining import has_policy, retain
from everthread.state import Agent
from everthread.storage.open import Storage
from everthread.storage.postgres.timers import END, QUEUE, RETAIN, TIMER, SessionTimers
from everthread.storage.pruning import dial_of
from everthread.storage.reading import record_of, records

logger = logging.getLogger(__name__)

_HEARTBEAT_SECONDS = 5.0
_STALLED_SECONDS = 20.0
"""Without a sign of life, after which a worker's jobs are taken over."""
_LOOK_SECONDS = 10.0
"""Between two looks for such jobs."""
_CATCH_UP_SECONDS = 3_600.0
"""Between two looks for open sessions without a timer, such as those of an app that sets none."""
_BETWEEN_RETENTIONS = timedelta(hours=23)
"""So that a worker that is started once a day finds it due."""
_LATER_SECONDS = 60.0
"""After which a thread that was in use, or could not be consolidated, is looked at again at the earliest."""


async def work(storage: Storage, agents: Sequence[Agent] = (), *, concurrency: int = 4, is_once: bool = False) -> None:
    """Do the jobs of a database until SIGTERM or Ctrl-C; what is being done is finished.

    Args:
        storage: on Postgres, opened with `end_idle_seconds`; its `retention` is seen to once a day.
        agents: those with a retention of their own.
        concurrency: jobs at a time.
        is_once: do what is due and return.

    Raises:
        SettingsError: the storage sets no timers.
    """
    timers = storage.timers
    if timers is None:
        raise SettingsError("jobs need Postgres and `end_idle_seconds`: open_storage(url, end_idle_seconds=1800)")
    app = _app(storage, timers, agents, concurrency)
    async with app.open_async():
        await _rescue(app)
        await asyncio.to_thread(_catch_up, storage, timers)
        if has_policy(storage, agents):
            await asyncio.to_thread(timers.ask_for_retention)
        watching = asyncio.create_task(_watch(app, storage, timers))
        try:
            is_done = False
            while not is_done:
                await app.run_worker_async(
                    queues=[QUEUE],
                    concurrency=concurrency,
                    wait=not is_once,
                    delete_jobs="successful",
                    update_heartbeat_interval=_HEARTBEAT_SECONDS,
                    stalled_worker_timeout=_STALLED_SECONDS,
                )
                # A job may have asked for another one, or waits for one of the same user at another worker.
                is_done = not is_once or not await _is_any_due(app)
        finally:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching


def _app(storage: Storage, timers: SessionTimers, agents: Sequence[Agent], concurrency: int) -> App:
    """Return the tasks on a storage."""
    # A job holds a connection only while it is fetched or finished; one more listens.
    app = App(connector=PsycopgConnector(conninfo=timers.conninfo, min_size=1, max_size=concurrency + 3))
    # A database that does not answer for a while: two hours of tries.
    retry = RetryStrategy(max_attempts=15, linear_wait=60)

    @app.task(name=TIMER, queue=QUEUE, retry=retry)
    def look(thread_id: str, idle_seconds: float) -> None:
        record = record_of(storage.store, thread_id)
        if record is None or not has_open_session(storage, record, thread_id):
            return
        due = datetime.fromisoformat(str(record["last_activity"])) + timedelta(seconds=idle_seconds)
        if due > datetime.now(UTC):
            timers.arm(thread_id, due, idle_seconds=idle_seconds)
        else:
            timers.ask_for_end(thread_id, str(record["user_id"]), idle_seconds)

    @app.task(name=END, queue=QUEUE, retry=retry)
    def end_session(thread_id: str, idle_seconds: float) -> None:
        outcome = end_if_idle(storage, thread_id, idle_seconds)
        if isinstance(outcome, Ending):
            logger.info("ended the session of thread %r", thread_id)
            _prune(storage, thread_id)
        if outcome == "ended" or (isinstance(outcome, Ending) and not outcome.failure):
            return
        if isinstance(outcome, Ending):
            logger.warning("thread %r could not be consolidated: %s", thread_id, outcome.failure)
        wait = idle_seconds if outcome == "active" else max(idle_seconds, _LATER_SECONDS)
        timers.arm(thread_id, datetime.now(UTC) + timedelta(seconds=wait), idle_seconds=idle_seconds)

    @app.task(name=RETAIN, queue=QUEUE, retry=retry)
    def delete_what_is_old() -> None:
        wait = _BETWEEN_RETENTIONS
        if has_policy(storage, agents):
            done = retain(storage, agents, verify=False)
            logger.info("retention: %s", done.totals)
            if done.kept.get("busy"):
                wait = timedelta(seconds=_LATER_SECONDS)
        timers.ask_for_retention(datetime.now(UTC) + wait)

    return app


def _prune(storage: Storage, thread_id: str) -> None:
    """Prune the checkpoints of a thread as its last run said, unless somebody runs it."""
    with suppress(ThreadBusyError), storage.locks.hold(thread_id, timeout_seconds=0):
        keep = dial_of(storage.checkpointer.last_run(thread_id))
        if keep is not None:
            storage.checkpointer.prune_turns(thread_id, keep)


def _catch_up(storage: Storage, timers: SessionTimers) -> None:
    """Set the timers of open sessions that may have none; those that have one keep it."""
    waiting = timers.waiting()
    for record in records(storage.store):
        thread_id = str(record["thread_id"])
        if thread_id not in waiting and has_open_session(storage, record, thread_id):
            since = datetime.fromisoformat(str(record["last_activity"]))
            timers.arm(thread_id, since + timedelta(seconds=timers.idle_seconds))


async def _is_any_due(app: App) -> bool:
    at = datetime.now(UTC)
    left = await app.job_manager.list_jobs_async(queue=QUEUE, status="todo")
    return any(job.scheduled_at is None or job.scheduled_at <= at for job in left)


async def _watch(app: App, storage: Storage, timers: SessionTimers) -> None:
    """Take over the jobs of workers that are gone, and set missing timers, again and again."""
    loop = asyncio.get_running_loop()
    next_catch_up = loop.time() + _CATCH_UP_SECONDS
    while True:
        await asyncio.sleep(_LOOK_SECONDS)
        try:
            await _rescue(app)
            if loop.time() >= next_catch_up:
                await asyncio.to_thread(_catch_up, storage, timers)
                next_catch_up = loop.time() + _CATCH_UP_SECONDS
        except Exception as error:  # noqa: BLE001 - the database is away for a while; the worker waits for it too
            logger.warning("could not look for jobs that were left: %s", error)


async def _rescue(app: App) -> None:
    """Put the jobs of killed workers back into the queue."""
    for job in await app.job_manager.get_stalled_jobs(queue=QUEUE, seconds_since_heartbeat=_STALLED_SECONDS):
        logger.warning("job %s was left by its worker and is taken over", job.id)
        await app.job_manager.retry_job(job)
