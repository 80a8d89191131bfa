"""What `everthread doctor` says about a Postgres database: sizes, dead rows, vacuum, rows that cannot be read."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import psycopg

from everthread.errors import EverthreadError
from everthread.storage.damage import unreadable
from everthread.storage.postgres.database import connect
from everthread.storage.postgres.location import locate_postgres
from everthread.storage.postgres.tables import PostgresTables

_MOST_NAMED = 5

_MUCH_DEAD, _MANY_DEAD = 0.5, 10_000
"""Share and number of dead rows above which a table is named."""

_SIZES = (
    "SELECT relname, pg_total_relation_size(relid), n_live_tup, n_dead_tup, greatest(last_vacuum, last_autovacuum)"
    " FROM pg_stat_user_tables WHERE schemaname = current_schema() ORDER BY 2 DESC"
)

Finding = tuple[str, str, str]
"""What was looked at, `ok`, `warn` or `fail`, and a sentence."""


def findings(url: str) -> Iterator[Finding]:
    """Look at a database and change nothing."""
    try:
        location = locate_postgres(url)
        with connect(location, direct=True) as connection:
            connection.execute("SET default_transaction_read_only = on")
            version = connection.info.parameter_status("server_version")
            schema = connection.execute("SELECT current_schema()").fetchone()
            yield "database", "ok", f"{location.url}, Postgres {version}, schema {schema[0] if schema else None!r}"

            def execute(sql: str, values: Any = ()) -> list[Any]:
                return connection.execute(sql.encode(), values).fetchall()

            yield from _tables(execute(_SIZES))
            yield from _rows(PostgresTables(execute))
            yield from _notes(execute)
    except (EverthreadError, psycopg.Error) as error:
        yield "database", "fail", " ".join(str(error).split())


def _tables(rows: list[Any]) -> Iterator[Finding]:
    if not rows:
        yield "tables", "ok", "there are none yet; the first conversation makes them"
    for name, size, live, dead, vacuumed in rows:
        when = f"vacuumed {vacuumed:%Y-%m-%d %H:%M}" if vacuumed else "never vacuumed"
        detail = f"{size:,} bytes, {live:,} rows, {dead:,} dead ones, {when}"
        if dead > _MANY_DEAD and dead > _MUCH_DEAD * live:
            yield f"table {name}", "warn", f"{detail}; see whether autovacuum runs, or run `everthread compact`"
        else:
            yield f"table {name}", "ok", detail


def _rows(tables: PostgresTables) -> Iterator[Finding]:
    rows = list(unreadable(tables))
    if not rows:
        yield "rows", "ok", "every row can be read"
        return
    more = f" and {len(rows) - _MOST_NAMED:,} more" if rows[_MOST_NAMED:] else ""
    named = ", ".join(rows[:_MOST_NAMED]) + more
    yield "rows", "fail", f"{len(rows):,} cannot be read: {named}; erase their threads with `everthread forget`"


def _notes(execute: Any) -> Iterator[Finding]:
    with suppress(psycopg.errors.UndefinedTable):
        for (began,) in execute("SELECT began FROM everthread_erasures ORDER BY began LIMIT 1"):
            again = "run the same `everthread forget` or `retain` command again"
            yield "erasure", "warn", f"one that began at {began} was not finished; {again}"
