"""Erase rows from Postgres: from every table of the schema, then from the index of words, then vacuum."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from everthread.errors import ThreadBusyError
from everthread.storage.erasing import Doomed, Eraser, Found
from everthread.storage.locks import Locks
from everthread.storage.postgres.database import PostgresDatabase
from everthread.storage.postgres.index import below
from everthread.storage.postgres.store import PostgresSearchStore
from everthread.storage.postgres.texts import read_json, text_in, written_json
from everthread.storage.residue import Row, in_rows

_MARKS = "CREATE TABLE IF NOT EXISTS everthread_erasures (target text PRIMARY KEY, began text NOT NULL)"
_COLUMNS = (
    "SELECT c.table_name, c.column_name, c.udt_name FROM information_schema.columns c JOIN information_schema.tables t"
    " USING (table_schema, table_name) WHERE table_schema = current_schema() AND t.table_type = 'BASE TABLE'"
    " ORDER BY c.table_name, c.ordinal_position"
)
_OWN = ("everthread_changes", "everthread_docs", "everthread_spaces")
"""Tables of the index, which is brought up to date from what was deleted."""

_PAGE = 2_000
"""Rows that are fetched at once."""

_LOCK = "\x00erasures"
"""No id of a thread can be the same."""
_WAIT_SECONDS = 600.0


class PostgresEraser(Eraser):
    """Erases from the schema of a database; see `Eraser`."""

    reclaiming = "vacuuming"
    _HAS_MARKS = "SELECT to_regclass('everthread_erasures') IS NOT NULL"
    _MARKED = "SELECT 1 FROM everthread_erasures WHERE target = %s"
    _UNMARK = "DELETE FROM everthread_erasures WHERE target = %s"
    _database: PostgresDatabase

    def __init__(self, database: PostgresDatabase, store: PostgresSearchStore) -> None:
        self._database = database
        self._store = store

    @property
    def place(self) -> str:
        """The URL, without its password."""
        return self._database.location.url

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other erasures of the schema out: two at once cannot build the index anew, nor tell whose a text is."""
        with ExitStack() as stack:
            try:
                # Not a lock that Postgres itself waits for: who builds an index waits for everybody in a statement.
                stack.enter_context(self._store.locks.hold(_LOCK, timeout_seconds=_WAIT_SECONDS))
            except ThreadBusyError as error:
                raise ThreadBusyError(
                    f"another erasure in this database has taken over {_WAIT_SECONDS:g} s; run this one again after it"
                ) from error
            yield

    def delete(self, doomed: Doomed, mark: str, began: str) -> list[Any]:
        """Delete all rows in one transaction, whatever table they are in, and leave a mark until all is done."""
        self._database.write(self._delete, doomed, mark, began)
        return list(doomed.where.prefixes)

    def rewrite(self, spaces: list[Any]) -> None:
        """Take the words out of the index, build it anew, since GIN keeps words that no row has, and vacuum."""
        self._store.catch_up()
        self._store.settle()
        self._database.outside(*(f'VACUUM "{table}"' for table in self._tables()))

    def finish(self) -> None:
        """Do nothing: the log is the server's, and it recycles it."""

    def search(self, sought: list[bytes], spaces: list[Any]) -> Found:
        """Search every row of the schema, and the index for what went."""
        hits, rows = in_rows(self._every_row(), sought)
        words = 0
        for prefix in spaces:
            under, values = below(prefix)
            words += self._read(f"SELECT coalesce(sum(words), 0) FROM everthread_spaces WHERE {under}", *values)[0][0]
        return Found(hits, rows, {}, [f"the full-text index ({words} words)"] if words else [])

    def size(self) -> int:
        """Return the bytes of the schema's tables, with their indexes."""
        sizes = "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c WHERE c.relkind = 'r'"
        return int(self._read(f"{sizes} AND c.relnamespace = current_schema()::regnamespace")[0][0])

    def check_idle(self, locks: Locks) -> None:
        """Do nothing: a vacuum keeps nobody waiting, and each thread is pruned under its own lock."""

    def reclaim(self) -> None:
        """Vacuum the tables: their space is used again, and what is free at their ends goes back to the disk."""
        self._store.catch_up()
        self._database.outside(*(f'VACUUM (ANALYZE) "{table}"' for table in self._tables()))

    def _delete(self, doomed: Doomed, mark: str, began: str) -> None:
        where, rows = doomed.where, self._database.rows
        # So that the trigger takes notes, from which the index is brought up to date.
        rows("SELECT set_config('everthread.indexes', 'off', true)")
        rows(_MARKS)
        rows("INSERT INTO everthread_erasures VALUES (%s, %s) ON CONFLICT DO NOTHING", (mark, began))
        prefixes = [below(text_in(prefix)) for prefix in where.prefixes]
        for table, columns in _columns(rows(_COLUMNS)).items():
            if {"prefix", "key"} <= columns.keys() and table not in _OWN:
                for under, values in prefixes:
                    rows(f'DELETE FROM "{table}" WHERE {under}', values)
                for prefix, key in where.records:
                    rows(f'DELETE FROM "{table}" WHERE prefix = %s AND key = %s', (text_in(prefix), text_in(key)))
            if "thread_id" in columns:
                cast = "" if columns["thread_id"] in ("text", "varchar") else "::text"
                rows(f'DELETE FROM "{table}" WHERE thread_id{cast} = ANY(%s)', ([*where.checkpointed],))
        for note in where.kept_notes:
            sql = "UPDATE store SET value = %s::jsonb WHERE prefix = %s AND key = %s"
            rows(sql, (written_json(note.value), text_in(note.prefix), text_in(note.key)))
        for prefix, text, value in doomed.shown:
            sql = "UPDATE store SET value = %s::jsonb WHERE prefix = %s AND position(%s IN value::text) > 0"
            rows(sql, (_stored(value), prefix, text))
        for prefix, key, value in doomed.added:
            sql = "INSERT INTO store (prefix, key, value) VALUES (%s, %s, %s::jsonb) ON CONFLICT DO NOTHING"
            rows(sql, (text_in(prefix), text_in(key), _stored(value)))

    def _tables(self) -> list[str]:
        return list(_columns(self._read(_COLUMNS)))

    def _every_row(self) -> Iterator[Row]:
        """Yield every row of every table of the schema, as text but for bytes."""
        for table, columns in _columns(self._read(_COLUMNS)).items():
            naming = ("prefix", "key") if {"prefix", "key"} <= columns.keys() else ("thread_id",)
            named = [list(columns).index(name) for name in naming if name in columns]
            values = ", ".join(
                f'"{name}"' if kind == "bytea" else f"convert_to(\"{name}\"::text, 'UTF8')"
                for name, kind in columns.items()
            )
            last = "(0,0)"
            # By the place in the table: pages of one size, whatever the table's own keys are.
            sql = f'SELECT ctid::text, {values} FROM "{table}" WHERE ctid > %s::tid ORDER BY ctid LIMIT {_PAGE}'
            while page := self._read(sql, last):
                for _, *row in page:
                    name = tuple("None" if row[at] is None else bytes(row[at]).decode() for at in named)
                    yield table, name, b"\x00".join(bytes(value or b"") for value in row)
                last = page[-1][0]


def _columns(rows: list[Any]) -> dict[str, dict[str, str]]:
    """Return the columns of each table with their types."""
    found: dict[str, dict[str, str]] = {}
    for table, column, kind in rows:
        found.setdefault(table, {})[column] = kind
    return found


def _stored(value: bytes) -> str:
    return written_json(read_json(value.decode()))
