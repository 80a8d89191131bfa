"""The stores: LangGraph's own, with an answer to `query`."""

import logging
import sqlite3
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from typing import Any

import orjson
from langgraph.store.base import GetOp, Op, PutOp, Result, SearchItem, SearchOp, TTLConfig, validate_op_namespace
from langgraph.store.sqlite import SqliteStore
from langgraph.store.sqlite.base import SqliteIndexConfig

from everthread.storage.lexical.indexing import Indexing, catch_up, catch_up_fully, has_changes, put
from everthread.storage.lexical.plans import Plan, Statement, T, immediate, run, writing
from everthread.storage.lexical.ranking import fuse
from everthread.storage.lexical.reading import MOST_KEYS, MOST_PARTS, read
from everthread.storage.lexical.schema import has_fts5, prepare_schema
from everthread.storage.lexical.searching import Known, find, has_words
from everthread.storage.lexical.texts import TextFields
from everthread.storage.sqlite.database import Database
from everthread.storage.worker import Worker

logger = logging.getLogger(__name__)

_NO_FTS5 = "this Python's SQLite (%s) has no FTS5: searches ignore `query`, as in LangGraph's own store"

Loader = Callable[[bytes | str | orjson.Fragment], dict[str, Any]]
_Indexed = tuple[int, SearchOp]


class LexicalSqliteStore(SqliteStore):
    """A `SqliteStore` that answers `search(query=...)` by BM25 over SQLite's FTS5.

    Everything else is LangGraph's. Items are returned best first with their score; a blank query is no
    query. With `index` configured, the ranking by embeddings and the one by words are fused by reciprocal
    rank; embeddings need the sqlite-vec extension, which a Python whose `sqlite3` cannot load extensions
    refuses in `setup`. Without FTS5 it warns and is a plain `SqliteStore`.

    Args:
        conn: in autocommit mode (`isolation_level=None`).
        deserializer: reads values; None for JSON.
        index: LangGraph's configuration of embeddings.
        ttl: LangGraph's configuration of expiry.
        text_fields: which text counts when `put` has `index=None`; None for all strings of a value.
    """

    def __init__(
        self,
        conn: sqlite3.Connection,
        *,
        deserializer: Loader | None = None,
        index: SqliteIndexConfig | None = None,
        ttl: TTLConfig | None = None,
        text_fields: TextFields | None = None,
    ) -> None:
        super().__init__(conn, deserializer=deserializer, index=index, ttl=ttl)
        self.text_fields = text_fields
        self.is_lexical = False
        """Whether there is an index; known after `setup`."""

        self._worker: Worker | None = None
        self._database: Database | None = None
        self._known = Known()
        self._preparing = threading.Lock()

    def share(self, database: Database, worker: Worker) -> None:
        """Share a connection with a saver, and answer async calls on a worker."""
        self.lock, self._database, self._worker = database.lock, database, worker  # type: ignore[assignment]

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do what `batch` does without blocking the event loop."""
        assert self._worker is not None
        return await self._worker.call(self.batch, list(ops))

    def setup(self) -> None:
        """Make the tables and index what is not yet indexed; safe while other processes do the same."""
        with self._preparing:
            if self.is_setup:
                return
            self.is_lexical = self._execute(has_fts5())
            if self.is_lexical:
                self._write(prepare_schema())
                self._catch_up()
            else:
                logger.warning(_NO_FTS5, sqlite3.sqlite_version)
            super().setup()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Execute operations; see LangGraph's `BaseStore.batch`."""
        ops = list(ops)
        if not self.is_setup:
            self.setup()
        if self.is_lexical and not self.index_config and (puts := _only_puts(ops)):
            self._write(put(puts, self.text_fields))
            return [None] * len(puts)
        if not self.ttl_config and (asked := _only_reads(ops)):
            return self._execute(read(asked, self._deserializer))
        if self.is_lexical and any(isinstance(op, SearchOp) and op.query for op in ops):
            self._catch_up()
        return super().batch(ops)

    def sweep_ttl(self) -> int:
        """Delete expired items, from the index too."""
        count = super().sweep_ttl()
        if self.is_lexical:
            self._catch_up()
        return count

    def _batch_put_ops(self, put_ops: Sequence[tuple[int, PutOp]], cur: sqlite3.Cursor) -> None:
        # LangGraph's store commits also after a failure: the deletions of a batch would stand without its insertions.
        cur.execute("SAVEPOINT puts")
        try:
            super()._batch_put_ops(put_ops, cur)
            if self.is_lexical:
                run(cur, catch_up_fully(self.text_fields, _told(put_ops)))
        except BaseException:
            if self.conn.in_transaction:
                cur.execute("ROLLBACK TO puts")
            raise

    def _batch_search_ops(self, search_ops: Sequence[_Indexed], results: list[Result], cur: sqlite3.Cursor) -> None:
        asked, others = _split(search_ops, is_lexical=self.is_lexical)
        super()._batch_search_ops(others, results, cur)
        for place, op in asked:
            if not self.index_config:
                results[place] = run(cur, self._plan(op))
            else:
                wide = _widened(op)
                near: list[Result] = [[]]
                super()._batch_search_ops([(0, wide)], near, cur)
                results[place] = _fused(op, run(cur, self._plan(wide)), near)
            if refresh := _refresh(op, self.ttl_config, results[place]):
                cur.executemany(refresh.sql, refresh.parameters)

    def _plan(self, op: SearchOp) -> Plan[list[SearchItem]]:
        return find(op, self._get_filter_condition, self._deserializer, self._known)

    def _catch_up(self) -> None:
        """Carry over what other connections changed, a transaction a chunk so that they need not wait long."""
        while self._execute(has_changes()):
            self._write(catch_up(self.text_fields))

    def _write(self, plan: Plan[T]) -> T:
        if self._database is not None:
            return self._database.write(lambda: run(self.conn.cursor(), plan))
        with writing(self.conn, self.lock) as cursor:
            return run(cursor, plan)

    def _execute(self, plan: Plan[T]) -> T:
        if self._database is not None:
            return self._database.read(lambda: run(self.conn.cursor(), plan))
        with self.lock:
            cursor = self.conn.cursor()
            try:
                return run(cursor, plan)
            except BaseException:
                if self.conn.in_transaction:
                    self.conn.rollback()
                raise
            finally:
                cursor.close()


def settle(connection: sqlite3.Connection, text_fields: TextFields | None = None) -> None:
    """Carry changes over to the index, and drop what it still knows of deleted items.

    For those who delete rows of `store` with SQL of their own and want every word gone: the index would
    else keep the old value until its next search, and words of deleted items until its segments merge.

    Args:
        connection: to the database of a lexical store, outside of a transaction; without an index nothing happens.
        text_fields: as the store's.
    """
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'lexical_changes'").fetchone():
        return
    with closing(connection.cursor()) as cursor:
        try:
            run(cursor, immediate(catch_up_fully(text_fields)))
        except BaseException:
            connection.rollback()
            raise
        cursor.execute("INSERT INTO lexical_index (lexical_index) VALUES ('optimize')")


def _only_puts(ops: Sequence[Op]) -> list[PutOp]:
    """Return the operations of a batch that only writes, and nothing of another one.

    Such a batch needs nothing of LangGraph's code, which takes as long as the rest of it.
    """
    puts = [op for op in ops if isinstance(op, PutOp)]
    if len(puts) < len(ops):
        return []
    _check({op.namespace: op for op in puts})
    return puts


def _check(named: Mapping[tuple[str, ...], Op]) -> None:
    """Check each namespace once: a batch has few of them for its many operations."""
    for op in named.values():
        validate_op_namespace(op)


def _only_reads(ops: Sequence[Op]) -> list[GetOp | SearchOp]:
    """Return the operations of a batch that only reads items by name, and nothing of another one.

    One statement answers it, and needs no transaction around it.
    """
    reads = [op for op in ops if isinstance(op, GetOp) or (isinstance(op, SearchOp) and not (op.query or op.filter))]
    if len(reads) < len(ops) or len(ops) > MOST_KEYS:
        return []
    named: dict[tuple[str, ...], Op] = {op.namespace: op for op in reads if isinstance(op, GetOp)}
    searches = {op.namespace_prefix: op for op in reads if isinstance(op, SearchOp)}
    if len(named) + sum(isinstance(op, SearchOp) for op in reads) > MOST_PARTS:
        return []
    _check(named)
    _check({prefix: op for prefix, op in searches.items() if prefix})
    return reads


def _told(put_ops: Sequence[tuple[int, PutOp]]) -> Indexing:
    return {(".".join(op.namespace), op.key): op.index for _, op in put_ops}


def _split(search_ops: Sequence[_Indexed], *, is_lexical: bool) -> tuple[list[_Indexed], list[_Indexed]]:
    """Part the searches that ask for words from those that LangGraph's store answers."""
    if not is_lexical:
        return [], list(search_ops)
    asked = [(place, op) for place, op in search_ops if has_words(op)]
    others = [(place, op._replace(query=None)) for place, op in search_ops if not has_words(op)]
    return asked, others


def _widened(op: SearchOp) -> SearchOp:
    """Ask each of two rankings for more than a page, since the fusion takes from both."""
    return op._replace(limit=max(100, 2 * (op.limit + op.offset)), offset=0)


def _fused(op: SearchOp, worded: list[SearchItem], near: list[Result]) -> list[SearchItem]:
    """Return the page of the fused rankings; the score is that of the fusion."""
    rankings: list[list[SearchItem]] = [worded, near[0]]  # type: ignore[list-item] # a search gives items
    items = {(item.namespace, item.key): item for ranking in rankings for item in ranking}
    fused = fuse([[(item.namespace, item.key) for item in ranking] for ranking in rankings])
    page = fused[op.offset : op.offset + op.limit]
    for key, score in page:
        items[key].score = score
    return [items[key] for key, _ in page]


def _refresh(op: SearchOp, ttl: TTLConfig | None, found: Result) -> Statement | None:
    """Return the statement that puts off the expiry of what was found, as LangGraph's store does."""
    if not (op.refresh_ttl and ttl and ttl.get("refresh_on_read", False) and isinstance(found, list)):
        return None
    keys = [(".".join(item.namespace), item.key) for item in found if isinstance(item, SearchItem)]
    sql = (
        "UPDATE store SET expires_at = DATETIME(CURRENT_TIMESTAMP, '+' || ttl_minutes || ' minutes')"
        " WHERE prefix = ? AND key = ? AND ttl_minutes IS NOT NULL"
    )
    return Statement(sql, keys, is_many=True)
