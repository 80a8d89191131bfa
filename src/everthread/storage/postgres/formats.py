"""The tables of a database: LangGraph's and ours, brought up to date when it is opened, by one worker at a time.

A database that is up to date is only read. Set-up is under an advisory lock that is asked for again and again instead
of waited for: `CREATE INDEX CONCURRENTLY`, in LangGraph's migrations, waits for every statement that is going on.
"""

import time
from contextlib import suppress
from typing import Any

import psycopg
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.store.postgres import PostgresStore
from psycopg import Connection
from psycopg.rows import dict_row, tuple_row

from everthread.errors import StorageError
from everthread.memory.text.words import VERSION as WORDS_VERSION
from everthread.storage.postgres.database import connect
from everthread.storage.postgres.failures import described
from everthread.storage.postgres.location import PostgresLocation
from everthread.storage.postgres.locks import lock_number

FORMAT = 1
"""Of the databases that this version writes."""

INDEX_VERSION = WORDS_VERSION + 1
"""Of the index of words; one of an older version is built again when its database is opened."""

_OLDEST_SERVER = 140_000

_SET_UP_SECONDS = 120.0
"""How long a worker waits for another one that sets the database up."""

_MIGRATIONS = {
    "checkpoint_migrations": ("checkpoints", len(PostgresSaver.MIGRATIONS)),
    "store_migrations": ("store", len(PostgresStore.MIGRATIONS)),
}
"""LangGraph's tables of migrations, each with a table that it makes and how many migrations this version knows."""

# The trigger takes notes of what others write, LangGraph's own store or another language; our own writes need none.
# As its owner, and in its own schema: whoever writes need not know of our tables.
_TABLES = (
    "CREATE TABLE everthread (key text PRIMARY KEY, value text NOT NULL)",
    "CREATE TABLE everthread_spaces (ns int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, prefix text NOT NULL UNIQUE,"
    " docs bigint NOT NULL DEFAULT 0, words bigint NOT NULL DEFAULT 0, first bigint NOT NULL DEFAULT 0,"
    " last bigint NOT NULL DEFAULT 0)",
    "CREATE TABLE everthread_docs (doc bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, ns int NOT NULL,"
    " key text NOT NULL, length int NOT NULL, paths text, words tsvector NOT NULL, UNIQUE (ns, key))",
    # Without a list of pending entries, which every search would have to read from end to end.
    "CREATE INDEX everthread_words ON everthread_docs USING gin (words) WITH (fastupdate = off)",
    "CREATE TABLE everthread_changes (prefix text, key text, PRIMARY KEY (prefix, key))",
    """CREATE FUNCTION everthread_changed() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
        SET search_path FROM CURRENT AS $$
    BEGIN
        IF TG_OP <> 'INSERT' THEN
            INSERT INTO everthread_changes VALUES (OLD.prefix, OLD.key) ON CONFLICT DO NOTHING;
        END IF;
        IF TG_OP <> 'DELETE' THEN
            INSERT INTO everthread_changes VALUES (NEW.prefix, NEW.key) ON CONFLICT DO NOTHING;
        END IF;
        RETURN NULL;
    END $$""",
    "CREATE TRIGGER everthread_changed AFTER INSERT OR DELETE OR UPDATE OF prefix, key, value ON store FOR EACH ROW"
    " WHEN (current_setting('everthread.indexes', true) IS DISTINCT FROM 'on')"
    " EXECUTE FUNCTION everthread_changed()",
    "INSERT INTO everthread_changes SELECT prefix, key FROM store",
)
_INDEX_AGAIN = (
    "TRUNCATE everthread_docs, everthread_spaces",
    "INSERT INTO everthread_changes SELECT prefix, key FROM store ON CONFLICT DO NOTHING",
)


def set_up(location: PostgresLocation, *, create: bool = True) -> None:
    """Make the tables, or bring them up to date; what other apps wrote stays as it is.

    Raises:
        StorageError: the server cannot be used, or a newer version or another program made the tables.
    """
    with connect(location, direct=True) as session:
        try:
            _check_server(session, location)
            if location.schema is not None and create and not _has_schema(session, location.schema):
                # IF NOT EXISTS fails too when two workers create it at once.
                with suppress(psycopg.errors.UniqueViolation):
                    session.execute(f'CREATE SCHEMA IF NOT EXISTS "{location.schema}"'.encode())
            if _is_ready(session, location):
                return
            if not create and _versions(session).get("everthread") is None:
                raise StorageError(
                    f"there are no tables of everthread at {location.url!r}; check the URL or begin a conversation"
                )
            _wait_for_turn(session)
            _check_tables(session, location)
            # Another worker may have been first.
            if not _is_ready(session, location):
                _migrate(session)
        except psycopg.Error as error:
            raise described(error) from error


def _check_server(session: Connection[Any], location: PostgresLocation) -> None:
    if session.info.server_version < _OLDEST_SERVER:
        found = session.info.parameter_status("server_version")
        raise StorageError(f"the server at {location.url!r} is Postgres {found}; Everthread needs Postgres 14 or newer")
    row = session.execute(
        "SELECT current_setting('server_encoding'),"
        " pg_is_in_recovery() OR current_setting('default_transaction_read_only')::bool"
    ).fetchone()
    encoding, is_read_only = row or ("", False)
    if encoding != "UTF8":
        raise StorageError(f"the database at {location.url!r} has the encoding {encoding}; create one with UTF8")
    if is_read_only:
        raise StorageError(f"the database at {location.url!r} is read-only, such as a replica: use the primary")


def _has_schema(session: Connection[Any], schema: str) -> bool:
    return bool(session.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (schema,)).fetchone())


def _check_tables(session: Connection[Any], location: PostgresLocation) -> None:
    """Refuse tables without a version, when it is our turn: before, another worker may be making them.

    Raises:
        StorageError: they are another program's.
    """
    found = _versions(session)
    for table, (made, _) in _MIGRATIONS.items():
        if found.get(table) is None and _exists(session, made):
            raise StorageError(
                f"the table `{made}` at {location.url!r} belongs to another program; it was left as it is, name a "
                "schema of its own in the URL: `?schema=everthread`"
            )


def _is_ready(session: Connection[Any], location: PostgresLocation) -> bool:
    """Tell whether all tables are as this version makes them.

    Raises:
        StorageError: they are newer.
    """
    found = _versions(session)
    for table, (made, known) in _MIGRATIONS.items():
        version = found.get(table)
        if version is not None and version >= known:
            raise StorageError(
                f"the table `{made}` at {location.url!r} was made by a newer LangGraph (its version is {version}, this "
                f"one knows {known - 1}); it was left as it is, upgrade langgraph-checkpoint-postgres"
            )
    for name, known in (("everthread", FORMAT), ("index", INDEX_VERSION)):
        if found.get(name, 0) > known:
            raise StorageError(
                f"the database at {location.url!r} was made by a newer everthread (its {name} version is "
                f"{found[name]}, this one knows {known}); it was left as it is, upgrade everthread"
            )
    langgraph = {table: known - 1 for table, (_, known) in _MIGRATIONS.items()}
    return found == {**langgraph, "everthread": FORMAT, "index": INDEX_VERSION}


def _versions(session: Connection[Any]) -> dict[str, int]:
    """Return the version of each part of the database that is there."""
    found: dict[str, int] = {}
    for table in _MIGRATIONS:
        if _exists(session, table):
            row = session.execute(f"SELECT coalesce(max(v), -1) FROM {table}".encode()).fetchone()
            found[table] = row[0] if row else -1
    if _exists(session, "everthread"):
        for key, value in session.execute("SELECT key, value FROM everthread WHERE key IN ('format', 'index')"):
            found["everthread" if key == "format" else key] = int(value)
    return found


def _exists(session: Connection[Any], table: str) -> bool:
    row = session.execute("SELECT to_regclass(%s) IS NOT NULL", (table,)).fetchone()
    return bool(row and row[0])


def _wait_for_turn(session: Connection[Any]) -> None:
    """Take the lock of set-up, which ends with the session."""
    row = session.execute("SELECT current_schema()").fetchone()
    number = lock_number(str(row[0]) if row else "", "\x00set-up")
    deadline = time.monotonic() + _SET_UP_SECONDS
    while not session.execute("SELECT pg_try_advisory_lock(%s)", (number,)).fetchone()[0]:  # type: ignore[index]
        if time.monotonic() > deadline:
            raise StorageError("another worker has been setting the database up for two minutes; see what it does")
        time.sleep(0.05)


def _migrate(session: Connection[Any]) -> None:
    session.row_factory = dict_row
    PostgresSaver(session).setup()
    PostgresStore(session).setup()
    session.row_factory = tuple_row
    with session.transaction():
        found = _versions(session)
        statements = list(_TABLES if "everthread" not in found else ())
        if "index" in found and found["index"] < INDEX_VERSION:
            statements += _INDEX_AGAIN
        for statement in statements:
            session.execute(statement.encode())
        for key, value in (("format", FORMAT), ("index", INDEX_VERSION)):
            session.execute(
                "INSERT INTO everthread VALUES (%s, %s) ON CONFLICT (key) DO UPDATE SET value = EXCLUDED.value",
                (key, str(value)),
            )
