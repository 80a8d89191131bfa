"""The store: LangGraph's `BaseStore` on the tables of its `SqliteStore`, with an answer to `search(query=...)`.

A file that LangGraph's own store made can be opened, and the other way round.
"""

import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, ParamSpec, TypeVar

import orjson
from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    validate_op_namespace,
)
from langgraph.store.sqlite.base import MIGRATIONS

from everthread.errors import StorageError
from everthread.memory.text.words import query_words
from everthread.state import namespaces
from everthread.state.reducer import clean_content
from everthread.storage.locks import ThreadLocks
from everthread.storage.sqlite.database import SqliteDatabase
from everthread.storage.sqlite.index import DamagedIndexError, Index, below
from everthread.storage.unreadable import FAULTS, described, leave_out, record_name
from everthread.storage.worker import Worker

__all__ = ["COLUMNS", "SqliteSearchStore", "read_item"]

logger = logging.getLogger(__name__)

# As bytes: a text that is no UTF-8 could not even be fetched.
COLUMNS = ", ".join(
    ["s.prefix", "s.key", *(f"CAST(s.{name} AS BLOB)" for name in ("value", "created_at", "updated_at"))]
)
_PUT = (
    "INSERT OR REPLACE INTO store (prefix, key, value, created_at, updated_at, expires_at, ttl_minutes)"
    " VALUES (?, ?, ?, CURRENT_TIMESTAMP, CURRENT_TIMESTAMP, ?, ?)"
)
_INDEXED = (
    f"SELECT d.doc, {COLUMNS} FROM lexical_docs d JOIN lexical_spaces n ON n.ns = d.ns"
    " JOIN store s ON s.prefix = n.prefix AND s.key = d.key WHERE d.doc IN (SELECT value FROM json_each(?))"
)
# A value that is no JSON would stop the whole search.
_FIELD = "CASE WHEN json_valid(CAST(s.value AS TEXT)) THEN json_extract(CAST(s.value AS TEXT), '$.{key}') END"
_FILTER_KEY = re.compile(r"[a-zA-Z0-9_.-]+")
P = ParamSpec("P")
T = TypeVar("T")
AnyItem = TypeVar("AnyItem", bound=Item)
_COMPARISONS = {"$eq": "=", "$ne": "!=", "$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}


class SqliteSearchStore(BaseStore):
    """A store in SQLite for sync and async callers: each batch is one transaction, or one read.

    A query ranks items by the words they share with it; a blank one is no query. A row that cannot be read is left out
    with a warning; only a session's, which says whose its thread is, is an `UnreadableError`.
    """

    supports_ttl = True

    def __init__(self, database: SqliteDatabase, worker: Worker, locks: ThreadLocks | None = None) -> None:
        self.database = database
        self.locks = locks
        self._worker = worker
        self._has_unreadable = False
        database.connection.create_function("everthread_readable", 5, _is_readable, deterministic=True)
        self._index = Index(database.connection)
        database.write(self._prepare)
        self._mending(self._catch_up)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Execute operations; see LangGraph's `BaseStore.batch`. Reads of a batch come before its writes."""
        ops = list(ops)
        for op in ops:
            validate_op_namespace(op)
        return self._mending(self._batch, ops)

    def _batch(self, ops: Sequence[Op]) -> list[Result]:
        if any(isinstance(op, SearchOp) and op.query for op in ops):
            self._catch_up()
        if any(isinstance(op, PutOp) for op in ops):
            return self.database.write(self._answer, ops)
        return self.database.read(self._answer, ops)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do what `batch` does without blocking the event loop."""
        return await self._worker.call(self.batch, list(ops))

    def sweep_ttl(self) -> int:
        """Delete expired items; return how many."""
        return self._mending(self.database.write, self._sweep)

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
            self._catch_up()
        except StorageError:
            if is_damaged:
                raise
            self.build_index(is_damaged=True)

    def _mending(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do something again after the index was found to be damaged: all that it holds is made from the rows."""
        try:
            return work(*args, **kwargs)
        except DamagedIndexError as error:
            logger.warning("%s; it is built again", error)
        self.build_index()
        return work(*args, **kwargs)

    def _prepare(self) -> None:
        execute = self.database.connection.execute
        execute("CREATE TABLE IF NOT EXISTS store_migrations (v INTEGER PRIMARY KEY)")
        (newest,) = execute("SELECT max(v) FROM store_migrations").fetchone()
        for version in range(0 if newest is None else newest + 1, len(MIGRATIONS)):
            execute(MIGRATIONS[version])
            execute("INSERT INTO store_migrations (v) VALUES (?)", (version,))
        self._index.prepare()

    def _catch_up(self) -> None:
        """Carry over what other connections changed, a transaction a chunk so that they need not wait long."""
        while self.database.read(self._index.has_changes):
            self.database.write(self._index.catch_up)

    def _answer(self, ops: Sequence[Op]) -> list[Result]:
        results: list[Result] = [None] * len(ops)
        items = self._get([op for op in ops if isinstance(op, GetOp)])
        for place, op in enumerate(ops):
            if isinstance(op, GetOp):
                results[place] = items.get((op.namespace, op.key))
            elif isinstance(op, SearchOp):
                results[place] = self._search(op)
            elif isinstance(op, ListNamespacesOp):
                results[place] = self._list_namespaces(op)
        self._put([op for op in ops if isinstance(op, PutOp)])
        return results

    def _get(self, ops: Sequence[GetOp]) -> dict[tuple[tuple[str, ...], str], Item]:
        items: dict[tuple[tuple[str, ...], str], Item] = {}
        for namespace in {op.namespace: None for op in ops}:
            keys = orjson.dumps([op.key for op in ops if op.namespace == namespace]).decode()
            sql = f"SELECT {COLUMNS} FROM store s WHERE s.prefix = ? AND s.key IN (SELECT value FROM json_each(?))"
            for row in self._rows(sql, (".".join(namespace), keys)):
                try:
                    items[namespace, row[1]] = read_item(Item, row)
                except FAULTS as error:
                    damaged = described(record_name(namespace, row[1]), error)
                    if namespace == namespaces.SESSIONS:
                        raise damaged from error
                    leave_out("", damaged)
        return items

    def _search(self, op: SearchOp) -> list[SearchItem]:
        prefix = ".".join(op.namespace_prefix)
        condition, values = _conditions(op.filter or {})
        words = query_words(op.query or "")
        if op.limit <= 0:
            return []
        if not words:
            return self._listed(prefix, condition, (*values, op.limit, op.offset))

        def read(docs: Sequence[int]) -> Mapping[int, Any]:
            rows = self._rows(_INDEXED + condition, (orjson.dumps(docs).decode(), *values))
            return {row[0]: item for row in rows if (item := _read_or_left_out(row[1:])) is not None}

        ranked = self._index.search(prefix, words, op.offset + op.limit, read)
        for item, score in ranked:
            item.score = score
        return [item for item, _ in ranked[op.offset :]]

    def _listed(self, prefix: str, condition: str, values: Sequence[Any]) -> list[SearchItem]:
        """Return the readable items below a prefix; `limit` and `offset` count these only, so that pages join."""
        under, prefixes = below(prefix, "s.prefix")
        # Decoding each row twice is for a database that has one which cannot be read.
        readable = f" AND everthread_readable({COLUMNS})" if self._has_unreadable else ""
        sql = f"SELECT {COLUMNS} FROM store s WHERE {under}{condition}{readable}"
        rows = self._rows(f"{sql} ORDER BY s.updated_at DESC LIMIT ? OFFSET ?", (*prefixes, *values))
        try:
            return [read_item(SearchItem, row) for row in rows]
        except FAULTS:
            if self._has_unreadable:
                raise
        self._has_unreadable = True
        return self._listed(prefix, condition, values)

    def _list_namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        prefixes = self._rows("SELECT DISTINCT prefix FROM store WHERE typeof(prefix) = 'text'")
        names = [tuple(prefix.split(".")) for (prefix,) in prefixes]
        matching = (name for name in names if all(_matches(name, one) for one in op.match_conditions or ()))
        cut = sorted({name[: op.max_depth] for name in matching})
        return cut[op.offset : op.offset + op.limit]

    def _put(self, ops: Sequence[PutOp]) -> None:
        if not ops:
            return
        last = {(".".join(op.namespace), op.key): op for op in ops}
        gone = [place for place, op in last.items() if op.value is None]
        kept = [(*place, _json(op.value), *_expiry(op.ttl)) for place, op in last.items() if op.value is not None]
        if gone:
            self.database.connection.executemany("DELETE FROM store WHERE prefix = ? AND key = ?", gone)
        if kept:
            self.database.connection.executemany(_PUT, kept)
        self._index.catch_up_fully({place: op.index for place, op in last.items()})

    def _sweep(self) -> int:
        sql = "DELETE FROM store WHERE expires_at IS NOT NULL AND expires_at < CURRENT_TIMESTAMP"
        swept = self.database.connection.execute(sql).rowcount
        self._index.catch_up_fully()
        return swept

    def _rows(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        return self.database.connection.execute(sql, values).fetchall()


def _json(value: Mapping[str, Any]) -> bytes:
    try:
        return orjson.dumps(dict(value))
    except TypeError:  # an integer over 64 bits, kept as text
        return orjson.dumps(clean_content(dict(value)))


def _expiry(ttl_minutes: float | None) -> tuple[str | None, float | None]:
    """Return when an item expires and its lifetime, as LangGraph's store writes them."""
    if ttl_minutes is None:
        return None, None
    return (datetime.now(UTC) + timedelta(minutes=ttl_minutes)).isoformat(" "), ttl_minutes


def read_item(kind: type[AnyItem], row: Sequence[Any]) -> AnyItem:
    """Read a row; one of the `FAULTS` is raised when it cannot be."""
    prefix, key, blob, created, updated = row
    value = orjson.loads(blob)
    if type(value) is not dict:
        raise TypeError(f"its value is no JSON object but a {type(value).__name__}")
    if type(key) is not str:
        raise TypeError("its key is no text")
    times = [datetime.fromisoformat(time.decode()) for time in (created, updated)]
    return kind(namespace=tuple(prefix.split(".")), key=key, value=value, created_at=times[0], updated_at=times[1])


def _read_or_left_out(row: Sequence[Any]) -> SearchItem | None:
    try:
        return read_item(SearchItem, row)
    except FAULTS as error:
        leave_out(record_name(row[0], row[1]), error)
        return None


def _is_readable(*row: Any) -> bool:
    return _read_or_left_out(row) is not None


def _matches(name: tuple[str, ...], condition: MatchCondition) -> bool:
    """Tell whether a namespace begins or ends with a path, whose `*` stands for any one label."""
    path = tuple(condition.path)
    part = name[: len(path)] if condition.match_type == "prefix" else name[max(len(name) - len(path), 0) :]
    return len(part) == len(path) and all(want in ("*", label) for want, label in zip(path, part, strict=True))


def _conditions(filters: Mapping[str, Any]) -> tuple[str, list[Any]]:
    """Return the SQL of a filter and its parameters.

    Raises:
        ValueError: a key or an operator is none.
    """
    sql, values = "", list[Any]()
    for key, wanted in filters.items():
        if not _FILTER_KEY.fullmatch(key):
            raise ValueError(f"filter key {key!r} may hold letters, digits, `_`, `.` and `-` only")
        for operator, operand in wanted.items() if isinstance(wanted, dict) else [("$eq", wanted)]:
            if operator not in _COMPARISONS:
                raise ValueError(f"Unsupported operator: {operator}")
            one, parameters = _condition(_FIELD.format(key=key), operator, operand)
            sql += f" AND {one}"
            values += parameters
    return sql, values


def _condition(field: str, operator: str, operand: Any) -> tuple[str, list[Any]]:
    if operand is None:
        return f"{field} IS {'NOT ' if operator == '$ne' else ''}NULL", []
    if isinstance(operand, bool | str):
        return f"{field} {_COMPARISONS[operator]} ?", [operand]
    if isinstance(operand, int | float):
        # As a float: an integer may be too large for SQLite.
        number = field if operator in ("$eq", "$ne") else f"CAST({field} AS REAL)"
        return f"{number} {_COMPARISONS[operator]} ?", [float(operand)]
    return f"{field} {_COMPARISONS[operator]} ?", [orjson.dumps(operand).decode()]
