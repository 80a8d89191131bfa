"""The store: LangGraph's `BaseStore` with an answer to `search(query=...)`, the same on every database.

A subclass has the SQL, on the tables of LangGraph's own store.
"""

import re
import sys
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar, NamedTuple, TypeVar

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

from everthread.errors import SettingsError
from everthread.memory.text.words import query_words
from everthread.state import namespaces
from everthread.state.reducer import clean_content
from everthread.storage.candidates import WordIndex
from everthread.storage.database import Database
from everthread.storage.locks import Locks
from everthread.storage.unreadable import FAULTS, described, leave_out, record_name
from everthread.storage.worker import Worker

_MOST_MINUTES = 10**9  # two thousand years; a date has no more than four digits of them
_FILTER_KEY = re.compile(r"[a-zA-Z0-9_.-]+")
_COMPARISONS = {"$eq": "=", "$ne": "!=", "$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
AnyItem = TypeVar("AnyItem", bound=Item)


Place = tuple[str, str]
"""Namespace text and key of a row."""


class StoredRow(NamedTuple):
    """One row of the store with all that a copy has to keep."""

    prefix: str
    key: str
    value: dict[str, Any] | None
    """None when it cannot be read."""
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None
    ttl_minutes: float | None

    @property
    def place(self) -> Place:
        """Where the row is."""
        return self.prefix, self.key


class SearchStore(BaseStore):
    """A store for sync and async callers: each batch is one transaction, or one read.

    A query ranks items by the words they share with it; a blank one is no query. A row that cannot be read is left out
    with a warning; only a session's, which says whose its thread is, is an `UnreadableError`. A read never writes, so
    `refresh_ttl` is without effect: an item with a `ttl` goes with the first `sweep_ttl` after its time.
    """

    supports_ttl = True

    loads: Callable[[Any], Any] = staticmethod(orjson.loads)
    """Reads a value as it is stored."""

    _PLACEHOLDER: ClassVar[str]
    _INDEXED: ClassVar[str]  # numbers of items; conditions may follow
    _index: WordIndex

    def __init__(self, database: Database, worker: Worker, locks: Locks) -> None:
        self.database = database
        self.locks = locks
        self._worker = worker

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Execute operations; see LangGraph's `BaseStore.batch`. Reads of a batch come before its writes."""
        ops = list(ops)
        for op in ops:
            validate_op_namespace(op)
            if isinstance(op, PutOp) and op.ttl is not None and not abs(op.ttl) <= _MOST_MINUTES:
                raise SettingsError(
                    f"`ttl` is in minutes and at most {_MOST_MINUTES:,}, got {op.ttl!r}; leave it out to keep the item"
                )
        if any(isinstance(op, SearchOp) and op.query for op in ops):
            self.catch_up()
        if any(isinstance(op, PutOp) for op in ops):
            return [None] * len(ops) if self._put_plainly(ops) else self.database.write(self._answer, ops)
        return self.database.read(self._answer, ops)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do what `batch` does without blocking the event loop."""
        return await self._worker.call(self.batch, list(ops))

    def change(self, key: str, reads: Sequence[Op], make: Callable[[list[Result]], Sequence[PutOp]]) -> None:
        """Read, and write what `make` makes of it, in one transaction that no other of the same key comes between.

        Args:
            key: names what is changed; every writer of it uses the same one.
            reads: gets and searches without a query.
            make: gets their results in order and returns what to write.
        """
        self.database.write(self._changed, key, list(reads), make)

    def sweep_ttl(self) -> int:
        """Delete expired items; return how many."""
        return self.database.write(self._sweep)

    def catch_up(self) -> None:
        """Carry over to the index what other connections changed, a transaction a chunk so that none waits long."""
        while self.database.read(self._index.has_changes):
            self.database.write(self._index.catch_up)

    @abstractmethod
    def settle(self) -> None:
        """Drop what the index still knows of deleted items, inside a caller's lock."""

    @abstractmethod
    def build_index(self, *, is_damaged: bool = False) -> None:
        """Build the full-text index from the items.

        Args:
            is_damaged: make its tables anew, which forgets by which paths `put` was asked to index; without it, only
                when nothing else helps.
        """

    @abstractmethod
    def stored(self, prefix: str = "", after: Place | None = None, limit: int = 500) -> list[StoredRow]:
        """Return rows at and below a namespace as they are stored, in an order of this database's own.

        Like all that works on these rows, it is called inside of the database's `read` or `write`.

        Args:
            prefix: namespace text; empty for all.
            after: the last row of the page before.
            limit: rows of a page.
        """

    @abstractmethod
    def stored_at(self, places: Sequence[Place]) -> dict[Place, StoredRow]:
        """Return the rows that are at these places."""

    @abstractmethod
    def restore(self, rows: Sequence[StoredRow]) -> None:
        """Write rows with the times that they have, and index them."""

    def stamp(self, name: str) -> str | None:
        """Return what `set_stamp` left under a name."""
        rows = self.database.rows(f"SELECT value FROM everthread WHERE key = {self._PLACEHOLDER}", (name,))
        return str(rows[0][0]) if rows else None

    def set_stamp(self, name: str, text: str) -> None:
        """Leave a text for those who open the database later."""
        values = f"VALUES ({self._PLACEHOLDER}, {self._PLACEHOLDER})"
        sql = f"INSERT INTO everthread {values} ON CONFLICT (key) DO UPDATE SET value = excluded.value"
        self.database.rows(sql, (name, text))

    @abstractmethod
    def _rows_at(self, places: Sequence[Place]) -> list[Sequence[Any]]:
        """Return rows of items, as `item_of` reads them."""

    @abstractmethod
    def _listed(self, op: SearchOp) -> list[SearchItem]:
        """Return the readable items below a prefix, the newest first; limit and offset count these only."""

    @abstractmethod
    def _numbers(self, numbers: Sequence[int]) -> Any:
        """Return numbers of items as one parameter."""

    def _row(self, row: Sequence[Any]) -> Sequence[Any]:
        """Return a row of the store as `item_of` reads it."""
        return row

    @abstractmethod
    def _condition(self, key: str, operator: str, operand: Any) -> tuple[str, list[Any]]:
        """Return the SQL that compares a part of a value, by its key with dots, and its parameters."""

    @abstractmethod
    def _prefixes(self) -> list[str]:
        """Return the namespaces of all items, each as text."""

    @abstractmethod
    def _put(self, ops: Mapping[tuple[str, str], PutOp]) -> None:
        """Write, delete and index items, by namespace text and key."""

    @abstractmethod
    def _sweep(self) -> int:
        """Delete expired items; return how many."""

    @abstractmethod
    def _exclude(self, key: str) -> None:
        """Keep others with the same key out until the transaction ends."""

    def _conditions(self, filters: Mapping[str, Any] | None) -> tuple[str, list[Any]]:
        """Return the SQL of a filter and its parameters.

        Raises:
            ValueError: a key or an operator is none.
        """
        sql, values = "", list[Any]()
        for key, wanted in (filters or {}).items():
            if not _FILTER_KEY.fullmatch(key):
                raise ValueError(f"filter key {key!r} may hold letters, digits, `_`, `.` and `-` only")
            for operator, operand in wanted.items() if isinstance(wanted, dict) else [("$eq", wanted)]:
                if operator not in _COMPARISONS:
                    raise ValueError(f"Unsupported operator: {operator}")
                one, parameters = self._condition(key, _COMPARISONS[operator], operand)
                sql += f" AND {one}"
                values += parameters
        return sql, values

    def _changed(self, key: str, reads: Sequence[Op], make: Callable[[list[Result]], Sequence[PutOp]]) -> None:
        self._exclude(key)
        if puts := make(self._answer(reads)):
            self._answer(puts)

    def _put_plainly(self, ops: Sequence[Op]) -> bool:
        """Do a batch in some cheaper way, for a database that has one; tell whether it is done."""
        return False

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
        # Of two writes of an item in one batch, the last one counts.
        if puts := {(".".join(op.namespace), op.key): op for op in ops if isinstance(op, PutOp)}:
            self._put(puts)
        return results

    def _get(self, ops: Sequence[GetOp]) -> dict[tuple[tuple[str, ...], str], Item]:
        items: dict[tuple[tuple[str, ...], str], Item] = {}
        for row in self._rows_at([(".".join(op.namespace), op.key) for op in ops]) if ops else []:
            namespace = tuple(row[0].split("."))
            try:
                items[namespace, row[1]] = item_of(Item, row, self.loads)
            except FAULTS as error:
                damaged = described(record_name(namespace, row[1]), error)
                if namespace == namespaces.SESSIONS:
                    raise damaged from error
                leave_out("", damaged)
        return items

    def _search(self, op: SearchOp) -> list[SearchItem]:
        if op.limit <= 0:
            return []
        words = query_words(op.query or "")
        if not words:
            # An integer of either database has 64 bits.
            limit, offset = min(op.limit, sys.maxsize), min(op.offset, sys.maxsize)
            return self._listed(op._replace(limit=limit, offset=offset))
        condition, values = self._conditions(op.filter)

        def read(numbers: Sequence[int]) -> Mapping[int, SearchItem]:
            rows = self.database.rows(self._INDEXED + condition, (self._numbers(numbers), *values))
            return {row[0]: item for row in rows if (item := item_or_none(self._row(row[1:]), self.loads)) is not None}

        prefix = ".".join(op.namespace_prefix)
        ranked: list[tuple[SearchItem, float]] = self._index.search(prefix, words, op.offset + op.limit, read)
        for item, score in ranked:
            item.score = score
        return [item for item, _ in ranked[op.offset :]]

    def _list_namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        names = [tuple(prefix.split(".")) for prefix in self._prefixes()]
        matching = (name for name in names if all(_matches(name, one) for one in op.match_conditions or ()))
        cut = sorted({name[: op.max_depth] for name in matching})
        return cut[op.offset : op.offset + op.limit]


def as_json(value: Mapping[str, Any]) -> bytes:
    """Return a value as JSON."""
    try:
        return orjson.dumps(dict(value))
    except TypeError:  # an integer over 64 bits, kept as text
        return orjson.dumps(clean_content(dict(value)))


def item_of(kind: type[AnyItem], row: Sequence[Any], loads: Callable[[Any], Any] = orjson.loads) -> AnyItem:
    """Read a row: namespace text, key, value, both times; one of the `FAULTS` is raised when it cannot be."""
    prefix, key, blob, *times = row
    value = loads(blob)
    if type(value) is not dict:
        raise TypeError(f"its value is no JSON object but a {type(value).__name__}")
    if type(key) is not str:
        raise TypeError("its key is no text")
    created, updated = (time if isinstance(time, datetime) else datetime.fromisoformat(time.decode()) for time in times)
    return kind(namespace=tuple(prefix.split(".")), key=key, value=value, created_at=created, updated_at=updated)


def item_or_none(row: Sequence[Any], loads: Callable[[Any], Any] = orjson.loads) -> SearchItem | None:
    """Read a row; None, and a warning, when it cannot be read."""
    try:
        return item_of(SearchItem, row, loads)
    except FAULTS as error:
        leave_out(record_name(row[0], row[1]), error)
        return None


def _matches(name: tuple[str, ...], condition: MatchCondition) -> bool:
    """Tell whether a namespace begins or ends with a path, whose `*` stands for any one label."""
    path = tuple(condition.path)
    part = name[: len(path)] if condition.match_type == "prefix" else name[max(len(name) - len(path), 0) :]
    return len(part) == len(path) and all(want in ("*", label) for want, label in zip(path, part, strict=True))
