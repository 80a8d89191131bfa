"""The store in SQLite: SQL on the tables of LangGraph's `SqliteStore`.

A file that LangGraph's own store made can be opened, and the other way round.
"""

import logging
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, ParamSpec, TypeVar

import orjson
from langgraph.store.base import Op, PutOp, Result, SearchItem, SearchOp
from langgraph.store.sqlite.base import MIGRATIONS

from everthread.errors import StorageError
from everthread.storage.locks import Locks
from everthread.storage.sqlite.database import SqliteDatabase
from everthread.storage.sqlite.index import DamagedIndexError, Index, below
from everthread.storage.store import Place, SearchStore, StoredRow, as_json, item_of, item_or_none
from everthread.storage.unreadable import FAULTS
from everthread.storage.worker import Worker

logger = logging.getLogger(__name__)

_LARGEST = int(sys.float_info.max)

# As bytes: a text that is no UTF-8 could not even be fetched.
COLUMNS = ", ".join(
    ["s.prefix", "s.key", *(f"CAST(s.{name} AS BLOB)" for name in ("value", "created_at", "updated_at"))]
)
_PUT = (
    "INSERT OR REPLACE INTO store (prefix, key, value, created_at, updated_at, expires_at, ttl_minutes)"
    " VALUES (?, ?, ?, CURRENT_TIMESTAMP, CURRENT_TIMESTAMP, ?, ?)"
)
_STORED = f"SELECT {COLUMNS}, s.expires_at, s.ttl_minutes FROM store s"
# One by one: the functions of SQLite for JSON end a text at its first NUL.
_AT = "s.prefix = ? AND s.key = ?"
_RESTORE = (
    "INSERT OR REPLACE INTO store (prefix, key, value, created_at, updated_at, expires_at, ttl_minutes)"
    " VALUES (?, ?, ?, ?, ?, ?, ?)"
)
# A value that is no JSON would stop the whole search.
_FIELD = "CASE WHEN json_valid(CAST(s.value AS TEXT)) THEN json_extract(CAST(s.value AS TEXT), '$.{key}') END"
_EPOCH = datetime.fromtimestamp(0, UTC)
P = ParamSpec("P")
T = TypeVar("T")


class SqliteSearchStore(SearchStore):
    """A store in SQLite; see `SearchStore`."""

    _PLACEHOLDER = "?"
    _INDEXED = (
        f"SELECT d.doc, {COLUMNS} FROM lexical_docs d JOIN lexical_spaces n ON n.ns = d.ns"
        " JOIN store s ON s.prefix = n.prefix AND s.key = d.key WHERE d.doc IN (SELECT value FROM json_each(?))"
    )
    _index: Index

    def __init__(self, database: SqliteDatabase, worker: Worker, locks: Locks) -> None:
        super().__init__(database, worker, locks)
        self._has_unreadable = False
        database.connection.create_function(
            "everthread_readable", 5, lambda *row: item_or_none(row) is not None, deterministic=True
        )
        self._connection = database.connection
        self._index = Index(database.connection)
        database.write(self._prepare)
        self._mending(self.catch_up)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Execute operations; see LangGraph's `BaseStore.batch`. Reads of a batch come before its writes."""
        return self._mending(super().batch, list(ops))

    def change(self, key: str, reads: Sequence[Op], make: Callable[[list[Result]], Sequence[PutOp]]) -> None:
        """Read and write in one transaction; see `SearchStore.change`."""
        self._mending(super().change, key, reads, make)

    def sweep_ttl(self) -> int:
        """Delete expired items; return how many."""
        return self._mending(super().sweep_ttl)

    def settle(self) -> None:
        """Carry changes over to the index and drop what it still knows of deleted items, inside a caller's lock."""
        self._mending(self.database.write, self._index.settle)

    def build_index(self, *, is_damaged: bool = False) -> None:
        """Build the full-text index from the items.

        Args:
            is_damaged: make its tables anew, which forgets by which paths `put` was asked to index; without it, only
                when nothing else helps.
        """
        try:
            self.database.write(self._index.make_again if is_damaged else self._index.clear)
            self.catch_up()
        except StorageError:
            if is_damaged:
                raise
            self.build_index(is_damaged=True)

    def stored(self, prefix: str = "", after: Place | None = None, limit: int = 500) -> list[StoredRow]:
        """Return rows as they are stored; see `SearchStore`."""
        under, prefixes = below(prefix, "s.prefix")
        later = "" if after is None else " AND (s.prefix, s.key) > (?, ?)"
        sql = f"{_STORED} WHERE {under}{later} ORDER BY s.prefix, s.key LIMIT ?"
        return [_stored(row) for row in self.database.rows(sql, (*prefixes, *(after or ()), limit))]

    def stored_at(self, places: Sequence[Place]) -> dict[Place, StoredRow]:
        """Return the rows that are at these places."""
        rows = [_stored(row) for place in places for row in self.database.rows(f"{_STORED} WHERE {_AT}", place)]
        return {row.place: row for row in rows}

    def restore(self, rows: Sequence[StoredRow]) -> None:
        """Write rows with the times that they have, and index them."""
        self._connection.executemany(
            _RESTORE,
            [
                (
                    *row.place,
                    as_json(row.value or {}),
                    _utc(row.created_at),
                    _utc(row.updated_at),
                    row.expires_at and row.expires_at.isoformat(" "),
                    row.ttl_minutes,
                )
                for row in rows
            ],
        )
        self._index.catch_up_fully()

    def _mending(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do something again after the index was found to be damaged: all that it holds is made from the rows."""
        try:
            return work(*args, **kwargs)
        except DamagedIndexError as error:
            logger.warning("%s; it is built again", error)
        self.build_index()
        return work(*args, **kwargs)

    def _prepare(self) -> None:
        execute = self._connection.execute
        execute("CREATE TABLE IF NOT EXISTS store_migrations (v INTEGER PRIMARY KEY)")
        (newest,) = execute("SELECT max(v) FROM store_migrations").fetchone()
        for version in range(0 if newest is None else newest + 1, len(MIGRATIONS)):
            execute(MIGRATIONS[version])
            execute("INSERT INTO store_migrations (v) VALUES (?)", (version,))
        self._index.prepare()

    def _rows_at(self, places: Sequence[Place]) -> list[Sequence[Any]]:
        sql = f"SELECT {COLUMNS} FROM store s WHERE {_AT}"
        return [row for place in places for row in self.database.rows(sql, place)]

    def _listed(self, op: SearchOp) -> list[SearchItem]:
        under, prefixes = below(".".join(op.namespace_prefix), "s.prefix")
        condition, values = self._conditions(op.filter)
        # Decoding each row twice is for a database that has one which cannot be read.
        readable = f" AND everthread_readable({COLUMNS})" if self._has_unreadable else ""
        sql = f"SELECT {COLUMNS} FROM store s WHERE {under}{condition}{readable}"
        rows = self.database.rows(
            f"{sql} ORDER BY s.updated_at DESC LIMIT ? OFFSET ?", (*prefixes, *values, op.limit, op.offset)
        )
        try:
            return [item_of(SearchItem, row) for row in rows]
        except FAULTS:
            if self._has_unreadable:
                raise
        self._has_unreadable = True
        return self._listed(op)

    def _numbers(self, numbers: Sequence[int]) -> str:
        return orjson.dumps([*numbers]).decode()

    def _condition(self, key: str, operator: str, operand: Any) -> tuple[str, list[Any]]:
        field = _FIELD.format(key=key)
        if operand is None:
            return f"{field} IS {'NOT ' if operator == '!=' else ''}NULL", []
        if isinstance(operand, bool | str):
            return f"{field} {operator} ?", [operand]
        if isinstance(operand, int | float):
            # As a float: an integer may be too large for SQLite.
            number = field if operator in ("=", "!=") else f"CAST({field} AS REAL)"
            if isinstance(operand, int):
                operand = float(max(-_LARGEST, min(operand, _LARGEST)))
            return f"{number} {operator} ?", [operand]
        return f"{field} {operator} ?", [orjson.dumps(operand).decode()]

    def _prefixes(self) -> list[str]:
        return [row[0] for row in self.database.rows("SELECT DISTINCT prefix FROM store WHERE typeof(prefix) = 'text'")]

    def _put(self, ops: Mapping[tuple[str, str], PutOp]) -> None:
        gone = [place for place, op in ops.items() if op.value is None]
        kept = [(*place, as_json(op.value), *_expiry(op.ttl)) for place, op in ops.items() if op.value is not None]
        if gone:
            self._connection.executemany("DELETE FROM store WHERE prefix = ? AND key = ?", gone)
        if kept:
            self._connection.executemany(_PUT, kept)
        self._index.catch_up_fully({place: op.index for place, op in ops.items()})

    def _exclude(self, key: str) -> None:
        """Do nothing: a transaction that writes holds the lock of the file from its beginning."""

    def _sweep(self) -> int:
        sql = "DELETE FROM store WHERE expires_at IS NOT NULL AND expires_at < CURRENT_TIMESTAMP"
        swept = self._connection.execute(sql).rowcount
        self._index.catch_up_fully()
        return swept


def _expiry(ttl_minutes: float | None) -> tuple[str | None, float | None]:
    """Return when an item expires and its lifetime, as LangGraph's store writes them."""
    if ttl_minutes is None:
        return None, None
    return (datetime.now(UTC) + timedelta(minutes=ttl_minutes)).isoformat(" "), ttl_minutes


def _stored(row: Sequence[Any]) -> StoredRow:
    *columns, expires, ttl = row
    try:
        item = item_of(SearchItem, columns)
        until = expires and _aware(datetime.fromisoformat(expires))
        return StoredRow(row[0], row[1], item.value, _aware(item.created_at), _aware(item.updated_at), until, ttl)
    except FAULTS:
        return StoredRow(str(row[0]), str(row[1]), None, _EPOCH, _EPOCH, None, None)


def _aware(time: datetime) -> datetime:
    """Return a time with its zone; SQLite's own have none and are UTC."""
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


def _utc(time: datetime) -> str:
    """Return a time as SQLite writes it, with a fraction where it has one."""
    return time.astimezone(UTC).replace(tzinfo=None).isoformat(" ")
