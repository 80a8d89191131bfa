"""The store in Postgres: SQL on the table of LangGraph's `PostgresStore`.

A database that LangGraph's own store made can be opened, and the other way round.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

from langgraph.store.base import Op, PutOp, SearchItem, SearchOp

from everthread.storage.locks import Locks
from everthread.storage.postgres.database import PostgresDatabase
from everthread.storage.postgres.index import PostgresIndex, below, columns
from everthread.storage.postgres.texts import read_json, text_in, text_out, written_json
from everthread.storage.store import Place, SearchStore, StoredRow, item_or_none
from everthread.storage.worker import Worker

_COLUMNS = "s.prefix, s.key, s.value::text, s.created_at, s.updated_at"
_PUT = (
    "WITH n AS (SELECT * FROM unnest(%s::text[], %s::text[], %s::text[], %s::float8[]) AS n (prefix, key, value, ttl))"
    " INSERT INTO store (prefix, key, value, created_at, updated_at, expires_at, ttl_minutes)"
    " SELECT prefix, key, value::jsonb, now(), now(), now() + ttl * interval '1 minute', ttl FROM n{where}"
    " ON CONFLICT (prefix, key) DO UPDATE SET value = EXCLUDED.value, updated_at = EXCLUDED.updated_at,"
    " expires_at = EXCLUDED.expires_at, ttl_minutes = EXCLUDED.ttl_minutes RETURNING 1"
)
# All of them, or none when the index has one of them.
_IF_UNINDEXED = (
    " WHERE NOT EXISTS (SELECT 1 FROM n JOIN everthread_spaces USING (prefix) JOIN everthread_docs USING (ns, key))"
)
_STORED = f"SELECT {_COLUMNS}, s.expires_at, s.ttl_minutes FROM store s"
_RESTORE = (
    "INSERT INTO store (prefix, key, value, created_at, updated_at, expires_at, ttl_minutes)"
    " SELECT prefix, key, value::jsonb, created, updated, expires, ttl FROM unnest(%s::text[], %s::text[], %s::text[],"
    " %s::timestamptz[], %s::timestamptz[], %s::timestamptz[], %s::float8[])"
    " AS n (prefix, key, value, created, updated, expires, ttl)"
    " ON CONFLICT (prefix, key) DO UPDATE SET value = EXCLUDED.value, created_at = EXCLUDED.created_at,"
    " updated_at = EXCLUDED.updated_at, expires_at = EXCLUDED.expires_at, ttl_minutes = EXCLUDED.ttl_minutes"
)
_DELETE = (
    "DELETE FROM store s USING unnest(%s::text[], %s::text[]) AS o (prefix, key)"
    " WHERE s.prefix = o.prefix AND s.key = o.key"
)
_HALF_BUILT = (
    "SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'i'"
    " AND relname ~ '^everthread_words_cc(new|old)[0-9]*$'"
)
_NUMBER = "CASE jsonb_typeof(s.value #> %s::text[]) WHEN 'number' THEN (s.value #>> %s::text[])::numeric END"
_TEXT = "CASE jsonb_typeof(s.value #> %s::text[]) WHEN 'string' THEN s.value #>> %s::text[] END"


class PostgresSearchStore(SearchStore):
    """A store in Postgres; see `SearchStore`."""

    loads = staticmethod(read_json)
    _PLACEHOLDER = "%s"
    _INDEXED = (
        f"SELECT d.doc, {_COLUMNS} FROM everthread_docs d JOIN everthread_spaces n USING (ns)"
        " JOIN store s ON s.prefix = n.prefix AND s.key = d.key WHERE d.doc = ANY(%s)"
    )
    database: PostgresDatabase
    _index: PostgresIndex

    def __init__(self, database: PostgresDatabase, worker: Worker, locks: Locks) -> None:
        super().__init__(database, worker, locks)
        self._index = PostgresIndex(database)

    def settle(self) -> None:
        """Build the index of words anew: GIN keeps the words of rows that are gone."""
        # What one that was cut off has left: every write goes there too, and no search.
        left = self.database.read(self.database.rows, _HALF_BUILT)
        drops = [f"DROP INDEX CONCURRENTLY IF EXISTS {name}" for (name,) in left]
        self.database.outside(*drops, "REINDEX INDEX CONCURRENTLY everthread_words")

    def build_index(self, *, is_damaged: bool = False) -> None:
        """Build the full-text index from the items."""
        self.database.write(self._index.clear)
        self.catch_up()

    def stored(self, prefix: str = "", after: Place | None = None, limit: int = 500) -> list[StoredRow]:
        """Return rows as they are stored; see `SearchStore`."""
        under, prefixes = below(text_in(prefix), "s.prefix")
        later = "" if after is None else " AND (s.prefix, s.key) > (%s, %s)"
        sql = f"{_STORED} WHERE {under}{later} ORDER BY s.prefix, s.key LIMIT %s"
        return [_stored(row) for row in self.database.rows(sql, (*prefixes, *map(text_in, after or ()), limit))]

    def stored_at(self, places: Sequence[Place]) -> dict[Place, StoredRow]:
        """Return the rows that are at these places."""
        sql = f"{_STORED} JOIN unnest(%s::text[], %s::text[]) AS o (prefix, key) USING (prefix, key)"
        rows = self.database.rows(sql, columns([[*map(text_in, place)] for place in places], 2))
        return {(row := _stored(one)).place: row for one in rows}

    def restore(self, rows: Sequence[StoredRow]) -> None:
        """Write rows with the times that they have, and index them."""
        stored = [(text_in(row.prefix), text_in(row.key), written_json(row.value or {}), *row[3:]) for row in rows]
        self.database.rows(_RESTORE, columns(stored, 7))
        self._index.update({(text_in(row.prefix), text_in(row.key)): row.value for row in rows})

    def _rows_at(self, places: Sequence[Place]) -> list[Sequence[Any]]:
        wanted = "unnest(%s::text[], %s::text[]) AS o (prefix, key)"
        sql = f"SELECT {_COLUMNS} FROM store s JOIN {wanted} USING (prefix, key)"
        return self._read(sql, columns([[*map(text_in, place)] for place in places], 2))

    def _listed(self, op: SearchOp) -> list[SearchItem]:
        under, prefixes = below(text_in(".".join(op.namespace_prefix)), "s.prefix")
        condition, values = self._conditions(op.filter)
        # `jsonb` may hold something else than an object. Items of one transaction have the same time: without the key,
        # two pages could have the same one.
        rows = self._read(
            f"SELECT {_COLUMNS} FROM store s WHERE {under}{condition} AND jsonb_typeof(s.value) = 'object'"
            " ORDER BY s.updated_at DESC, s.prefix, s.key LIMIT %s OFFSET %s",
            (*prefixes, *values, op.limit, op.offset),
        )
        return [item for row in rows if (item := item_or_none(row, read_json)) is not None]

    def _numbers(self, numbers: Sequence[int]) -> list[int]:
        return [*numbers]

    def _row(self, row: Sequence[Any]) -> Sequence[Any]:
        prefix, key, *rest = row
        return text_out(prefix), text_out(key), *rest

    def _condition(self, key: str, operator: str, operand: Any) -> tuple[str, list[Any]]:
        path = key.split(".")
        if operand is None:
            return f"s.value #>> %s::text[] IS {'NOT ' if operator == '!=' else ''}NULL", [path]
        if operator in ("=", "!=") or not isinstance(operand, str | int | float) or isinstance(operand, bool):
            return f"s.value #> %s::text[] {operator} %s::jsonb", [path, written_json({"": operand})[4:-1]]
        if isinstance(operand, str):
            return f'{_TEXT} COLLATE "C" {operator} %s', [path, path, text_in(operand)]
        return f"{_NUMBER} {operator} %s::numeric", [path, path, operand]

    def _prefixes(self) -> list[str]:
        return [text_out(row[0]) for row in self.database.rows("SELECT DISTINCT prefix FROM store")]

    def _put(self, ops: Mapping[tuple[str, str], PutOp]) -> None:
        # In one order everywhere: two batches that change the same items wait for each other, and not in a circle.
        stored = {(text_in(prefix), text_in(key)): op for (prefix, key), op in sorted(ops.items(), key=lambda o: o[0])}
        if gone := [place for place, op in stored.items() if op.value is None]:
            self.database.rows(_DELETE, columns(gone, 2))
        kept = [(*place, written_json(op.value), op.ttl) for place, op in stored.items() if op.value is not None]
        if kept:
            self._insert(kept)
        self._index.update(
            {place: op.value for place, op in stored.items()}, {place: op.index for place, op in stored.items()}
        )

    def _exclude(self, key: str) -> None:
        """Take a lock that goes with the transaction; of a table that is locked by rows, a new row is not."""
        self.database.rows("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (f"everthread {key}",))

    def _put_plainly(self, ops: Sequence[Op]) -> bool:
        """Put items without words in one statement, such as events; the index has to be changed for no other item."""
        puts = {(text_in(".".join(op.namespace)), text_in(op.key)): op for op in ops if _is_plain(op)}
        if len(puts) < len(ops):
            return False
        rows = [(*place, written_json(op.value), op.ttl) for place, op in sorted(puts.items(), key=lambda one: one[0])]
        return bool(self.database.write_one(self._insert, rows, _IF_UNINDEXED))

    def _insert(self, rows: Sequence[Sequence[Any]], where: str = "") -> list[Any]:
        return self.database.rows(_PUT.format(where=where), columns(rows, 4))

    def _sweep(self) -> int:
        swept = self.database.rows("DELETE FROM store WHERE expires_at < now() RETURNING prefix, key")
        self._index.update(dict.fromkeys(((prefix, key) for prefix, key in swept), None))
        return len(swept)

    def _read(self, sql: str, values: Sequence[Any]) -> list[Sequence[Any]]:
        return [self._row(row) for row in self.database.rows(sql, values)]


def _is_plain(op: Op) -> TypeGuard[PutOp]:
    return isinstance(op, PutOp) and op.index is False and op.value is not None


def _stored(row: Sequence[Any]) -> StoredRow:
    prefix, key, value, *rest = row
    read = read_json(value)
    return StoredRow(text_out(prefix), text_out(key), read if isinstance(read, dict) else None, *rest)
