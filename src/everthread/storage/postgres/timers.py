"""Timers of sessions: jobs of procrastinate, in a schema of their own beside the tables.

A run sets the timer of a session that begins. A timer that goes off looks whether the thread has been quiet for long
enough; else it is set again for the moment when it would be. So a turn costs nothing, and a session has one timer.
"""

import logging
import re
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

from procrastinate import App, SyncPsycopgConnector
from procrastinate.exceptions import AlreadyEnqueued, ConnectorException
from psycopg import Connection
from psycopg_pool import PoolTimeout

from everthread.errors import StorageError
from everthread.storage.postgres.database import connect
from everthread.storage.postgres.location import PostgresLocation
from everthread.storage.postgres.locks import lock_number

logger = logging.getLogger(__name__)

QUEUE = "everthread"
TIMER = "everthread.timer"
"""Looks whether a session is idle; takes `thread_id` and `idle_seconds`."""
END = "everthread.end_session"
"""Ends a session; takes the same."""

RETAIN = "everthread.retain"
"""Deletes what is kept no longer."""

_OPEN_SECONDS = 10.0

_COMMENT = "jobs of everthread, by procrastinate "
"""Begins the comment of the schema: one without it is another program's, and is never dropped."""
_OURS = re.compile(re.escape(_COMMENT) + r"(\d{1,9})\.(\d{1,9})")


class SessionTimers:
    """Sets timers.

    Args:
        idle_seconds: without activity, after which a session ends.

    Raises:
        StorageError: the tables of procrastinate cannot be made, or are of a newer version.
    """

    def __init__(self, location: PostgresLocation, idle_seconds: float) -> None:
        self.idle_seconds = idle_seconds
        self._location = location
        with connect(location, direct=True) as session:
            row = session.execute("SELECT current_schema()").fetchone()
            # A name has 63 bytes at the most.
            self._schema = f"{str(row[0] if row else 'public')[:58]}_jobs"
            _set_up(session, self._schema)

    @property
    def conninfo(self) -> str:
        """What `psycopg.connect` takes to work on the jobs; never a pooler's, since workers listen."""
        return replace(self._location, schema=self._schema).conninfo(direct=True)

    @cached_property
    def _app(self) -> App:
        connector = SyncPsycopgConnector(conninfo=self.conninfo, min_size=0, max_size=2, timeout=_OPEN_SECONDS)
        app = App(connector=connector)
        app.open()
        return app

    def arm(self, thread_id: str, at: datetime | None = None, *, idle_seconds: float | None = None) -> None:
        """Set the timer of a thread's session, unless it is set; a failure is logged, since no turn may fail for it.

        Args:
            at: when it goes off; None: after the idle time.
            idle_seconds: of this session; None: as here.
        """
        idle = self.idle_seconds if idle_seconds is None else idle_seconds
        when = at or datetime.now(UTC) + timedelta(seconds=idle)
        job = self._app.configure_task(TIMER, queue=QUEUE, queueing_lock=thread_id, schedule_at=when)
        self._defer(job, thread_id, idle)

    def ask_for_end(self, thread_id: str, user_id: str, idle_seconds: float) -> None:
        """Have a session ended now; the sessions of one user end one after the other."""
        # A number: an erased user's id must not stay behind in a job.
        user = str(lock_number(self._schema, user_id))
        job = self._app.configure_task(END, queue=QUEUE, queueing_lock=f"end {thread_id}", lock=user)
        self._defer(job, thread_id, idle_seconds)

    def ask_for_retention(self, at: datetime | None = None) -> None:
        """Have what is old deleted, now or later; one such job waits at a time."""
        job = self._app.configure_task(RETAIN, queue=QUEUE, queueing_lock=RETAIN, lock=RETAIN, schedule_at=at)
        with suppress(AlreadyEnqueued):
            job.defer()

    def waiting(self) -> set[str]:
        """Return the threads whose timer is set."""
        jobs = self._app.job_manager.list_jobs(queue=QUEUE, task=TIMER, status="todo")
        return {str(job.queueing_lock) for job in jobs}

    def close(self) -> None:
        """Close the connections."""
        if "_app" in vars(self):
            self._app.close()

    def _defer(self, job: Any, thread_id: str, idle_seconds: float) -> None:
        try:
            job.defer(thread_id=thread_id, idle_seconds=idle_seconds)
        except AlreadyEnqueued:
            pass
        except (ConnectorException, PoolTimeout) as error:
            logger.warning("no timer was set for the session of thread %r: %s", thread_id, error.__cause__ or error)


def _set_up(session: Connection[Any], schema: str) -> None:
    """Make the tables of procrastinate, one worker at a time; older ones are made anew.

    Nothing is lost with them: a worker sets the timers of all open sessions when it begins.
    """
    from procrastinate import __version__ as version

    known = tuple(int(part) for part in version.split(".")[:2])
    with session.transaction():
        session.execute("SELECT pg_advisory_xact_lock(%s)", (lock_number(schema, "\x00set-up"),))
        row = session.execute(
            "SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = %s", (schema,)
        ).fetchone()
        found = _OURS.fullmatch(str(row[0])) if row else None
        made = tuple(map(int, found.groups())) if found else ()
        if made == known:
            return
        if made > known:
            raise StorageError(
                f"the jobs in the schema `{schema}` were made by procrastinate {made[0]}.{made[1]}, this one is "
                f"{version}; they were left as they are, upgrade procrastinate"
            )
        if row and not made:
            raise StorageError(f"the schema `{schema}` belongs to another program; name another one in the URL")
        session.execute(f'DROP SCHEMA IF EXISTS "{schema}" CASCADE'.encode())
        session.execute(f'CREATE SCHEMA "{schema}"'.encode())
        session.execute(f'SET LOCAL search_path = "{schema}"'.encode())
        session.execute(App(connector=SyncPsycopgConnector()).schema_manager.get_schema().encode())
        comment = f"{_COMMENT}{known[0]}.{known[1]}"
        session.execute(f"COMMENT ON SCHEMA \"{schema}\" IS '{comment}'".encode())
