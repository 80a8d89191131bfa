"""Open a database by its URL."""

import sys
from collections.abc import Collection, Sequence
from math import inf

from everthread.errors import SettingsError
from everthread.state.retention import Retention
from everthread.storage.locations import Synchronous, is_postgres, needing_postgres
from everthread.storage.sqlite.opening import open_sqlite
from everthread.storage.storage import Storage

__all__ = ["Storage", "open_storage"]

_CENTURY_SECONDS = 100 * 365.25 * 86_400


def open_storage(
    url: str,
    *,
    create: bool = True,
    lock_timeout_seconds: float = 600.0,
    synchronous: Synchronous | None = None,
    allowed_types: Sequence[type] = (),
    schema: str | None = None,
    pool_size: int | None = None,
    statement_timeout: float | None = None,
    pgbouncer: bool | None = None,
    direct_url: str | None = None,
    end_idle_seconds: float | None = None,
    retention: Retention | None = None,
) -> Storage:
    """Open a database.

    What is only for Postgres may also be in the URL: `postgresql://…/name?schema=agents&pool_size=4`.

    Args:
        url: `sqlite:///path`, `sqlite:////absolute/path`, `sqlite://` for one in memory, or
            `postgresql://user:password@host:5432/name`.
        create: make the file, readable by its owner only, or the tables when they do not exist.
        lock_timeout_seconds: how long a run waits for another one on the same thread before it raises
            `ThreadBusyError`; 0 raises it at once.
        synchronous: of SQLite. `full` waits for the disk at every commit, so that a loss of power takes nothing that
            was acknowledged; `normal` survives the death of the process. None: what the URL says, as in
            `sqlite:///a.db?synchronous=full`, else `normal`.
        allowed_types: classes of an app's own whose values come back from its checkpoints as such. A guarded graph
            needs none for those that its state schema declares.
        schema: of Postgres; made when it is missing.
        pool_size: connections to Postgres at most, 8 by default, without the one that holds the locks.
        statement_timeout: seconds that one statement in Postgres may take.
        pgbouncer: the URL is that of a pooler: nothing is prepared and no pipeline used.
        direct_url: of Postgres itself when `url` is a pooler's; locks need a session of their own.
        end_idle_seconds: of Postgres: without activity for so long, a session ends by a job of `everthread worker`.
            None: no timer is set.
        retention: what is kept for how long; `retain`, `everthread sweep`, `worker` and `serve` see to it.

    Raises:
        SettingsError: the URL is not understood, or an option is not for this database.
        StorageError: the database cannot be opened, or belongs to another program.
    """
    if not isinstance(url, str):
        raise SettingsError(f"`url` must be a text, such as 'sqlite:///everthread.db', got {url!r}")
    if retention is not None and not isinstance(retention, Retention):
        raise SettingsError(f"`retention` must be a Retention, such as Retention(idle_days=90), got {retention!r}")
    _check_seconds("lock_timeout_seconds", lock_timeout_seconds, most=inf)
    if end_idle_seconds is not None:
        # Later times than those of a calendar cannot be set.
        _check_seconds("end_idle_seconds", end_idle_seconds, most=_CENTURY_SECONDS)
    if not isinstance(allowed_types, Collection) or not all(isinstance(one, type) for one in allowed_types):
        raise SettingsError(f"`allowed_types` must be a list of classes, got {allowed_types!r}")
    options = {
        "schema": schema,
        "pool_size": pool_size,
        "statement_timeout": statement_timeout,
        "pgbouncer": pgbouncer,
        "direct_url": direct_url,
    }
    if is_postgres(url):
        if synchronous is not None:
            raise SettingsError("`synchronous` is for SQLite; Postgres has `synchronous_commit`")
        with needing_postgres():
            # Taken when called: its driver is an extra.
            from everthread.storage.postgres.opening import open_postgres
        storage = open_postgres(
            url,
            create=create,
            lock_timeout_seconds=lock_timeout_seconds,
            allowed_types=allowed_types,
            options=options,
            end_idle_seconds=end_idle_seconds,
        )
    else:
        if end_idle_seconds is not None:
            raise SettingsError(
                "`end_idle_seconds` is for Postgres; on SQLite use `everthread sweep`, or `everthread serve`"
            )
        if named := [name for name, value in options.items() if value is not None]:
            raise SettingsError(f"`{named[0]}` is for Postgres, but the URL names another database")
        storage = open_sqlite(
            url,
            create=create,
            lock_timeout_seconds=lock_timeout_seconds,
            synchronous=synchronous,
            allowed_types=allowed_types,
        )
    storage.retention = retention
    return storage


def _check_seconds(name: str, value: float, *, most: float) -> None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    # Between the largest float and `inf` are integers alone, which no clock takes.
    if not is_number or not 0 <= value <= most or sys.float_info.max < value < inf:
        limit = "" if most == inf else f" to {most:,.0f}"
        raise SettingsError(f"`{name}` must be a number of seconds from 0{limit}, got {value!r}")
