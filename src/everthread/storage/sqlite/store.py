"""The store: LangGraph's `BaseStore` on the tables of its `SqliteStore`, with an answer to `search(query=...)`.

A file that LangGraph's own store made can be opened, and the other way round.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

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

from everthread.memory.text.words import query_words
from everthread.storage.locks import ThreadLocks
from everthread.storage.sqlite.database import Database
from everthread.storage.sqlite.index import Index, below
from everthread.storage.worker import Worker

__all__ = ["SqliteSearchStore"]

_COLUMNS = "s.prefix, s.key, s.value, s.created_at, s.updated_at"
_PUT = (
    "INSERT OR REPLACE INTO store (prefix, key, value, created_at, updated_at, expires_at, ttl_minutes)"
    " VALUES (?, ?, ?, CURRENT_TIMESTAMP, CURRENT_TIMESTAMP, ?, ?)"
)
_INDEXED = (
    f"SELECT d.doc, {_COLUMNS} FROM lexical_docs d JOIN lexical_spaces n ON n.ns = d.ns"
    " JOIN store s ON s.prefix = n.prefix AND s.key = d.key WHERE d.doc IN (SELECT value FROM json_each(?))"
)
_FILTER_KEY = re.compile(r"[a-zA-Z0-9_.-]+")
_COMPARISONS = {"$eq": "=", "$ne": "!=", "$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}


class SqliteSearchStore(BaseStore):
    """A store in SQLite for sync and async callers: each batch is one transaction, or one read.

    A query ranks items by the words they share with it; a blank one is no query.
    """

    supports_ttl = True

    def __init__(self, database: Database, worker: Worker, locks: ThreadLocks | None = None) -> None:
        self.database = database
        self.locks = locks
        self._worker = worker
        self._index = Index(database.connection)
        database.write(self._prepare)
        self._catch_up()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Execute operations; see LangGraph's `BaseStore.batch`. Reads of a batch come before its writes."""
        ops = list(ops)
        for op in ops:
            validate_op_namespace(op)
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
        return self.database.write(self._sweep)

    def settle(self) -> None:
        """Carry changes over to the index and drop what it still knows of deleted items, inside a caller's lock."""
        self.database.write(self._index.catch_up_fully)
        self.database.connection.execute("INSERT INTO lexical_index (lexical_index) VALUES ('optimize')")

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
            sql = f"SELECT {_COLUMNS} FROM store s WHERE s.prefix = ? AND s.key IN (SELECT value FROM json_each(?))"
            for _, key, value, created, updated in self._rows(sql, (".".join(namespace), keys)):
                items[namespace, key] = Item(
                    value=orjson.loads(value), key=key, namespace=namespace, created_at=created, updated_at=updated
                )
        return items

    def _search(self, op: SearchOp) -> list[SearchItem]:
        prefix = ".".join(op.namespace_prefix)
        condition, values = _conditions(op.filter or {})
        words = query_words(op.query or "")
        if op.limit <= 0:
            return []
        if not words:
            under, prefixes = below(prefix, "s.prefix")
            sql = f"SELECT {_COLUMNS} FROM store s WHERE {under}{condition} ORDER BY s.updated_at DESC LIMIT ? OFFSET ?"
            return [_found(row) for row in self._rows(sql, (*prefixes, *values, op.limit, op.offset))]

        def read(docs: Sequence[int]) -> Mapping[int, Any]:
            rows = self._rows(_INDEXED + condition, (orjson.dumps(docs).decode(), *values))
            return {row[0]: row[1:] for row in rows}

        ranked = self._index.search(prefix, words, op.offset + op.limit, read)
        return [_found(row, score) for row, score in ranked[op.offset :]]

    def _list_namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        names = [tuple(prefix.split(".")) for (prefix,) in self._rows("SELECT DISTINCT prefix FROM store")]
        matching = (name for name in names if all(_matches(name, one) for one in op.match_conditions or ()))
        cut = sorted({name[: op.max_depth] for name in matching})
        return cut[op.offset : op.offset + op.limit]

    def _put(self, ops: Sequence[PutOp]) -> None:
        if not ops:
            return
        last = {(".".join(op.namespace), op.key): op for op in ops}
        gone = [place for place, op in last.items() if op.value is None]
        kept = [
            (*place, orjson.dumps(dict(op.value)), *_expiry(op.ttl))
            for place, op in last.items()
            if op.value is not None
        ]
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


def _expiry(ttl_minutes: float | None) -> tuple[str | None, float | None]:
    """Return when an item expires and its lifetime, as LangGraph's store writes them."""
    if ttl_minutes is None:
        return None, None
    return (datetime.now(UTC) + timedelta(minutes=ttl_minutes)).isoformat(" "), ttl_minutes


def _found(row: Sequence[Any], score: float | None = None) -> SearchItem:
    prefix, key, value, created, updated = row
    return SearchItem(tuple(prefix.split(".")), key, orjson.loads(value), created, updated, score)


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
            one, parameters = _condition(f"json_extract(CAST(s.value AS TEXT), '$.{key}')", operator, operand)
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
