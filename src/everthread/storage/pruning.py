"""Prune a thread's checkpoints: the last turns stay travelable, and what no kept checkpoint needs goes.

The working set is a delta channel: a checkpoint is rebuilt from the writes of its ancestors, back to
the nearest one that holds a full snapshot. So the cut is always at such a snapshot, and nothing that
stays is ever rewritten: every kept checkpoint reads as it did before.
"""

import json
import logging
import sqlite3
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.constants import START

from everthread.ledger import retention
from everthread.state import Context, namespaces

__all__ = ["Pruned", "Pruner", "dial_metadata", "dial_of"]

logger = logging.getLogger(__name__)

RUNS_BETWEEN = 16
"""Least runs of a thread from one look at it to the next; meanwhile the checkpoints of fifteen more turns are kept."""

_MOST_THREADS = 10_000
"""Threads whose runs are counted at the same time."""

# The reply is saved by then, so nothing may fail its run: a busy disk as little as an old row that cannot be read.
_FAILURES = (sqlite3.Error, ValueError, NotImplementedError)

_CHANNEL = "messages"
"""The delta channel."""

_LIST = (
    "SELECT checkpoint_id, parent_checkpoint_id FROM checkpoints"
    " WHERE thread_id = ? AND checkpoint_ns = '' ORDER BY checkpoint_id"
)
# A checkpoint that has just written a snapshot counts nothing since then. Only of few is this asked: the metadata
# stands behind the values of the channels, which fill pages.
_IS_SNAPSHOT = (
    "SELECT instr(metadata, '\"messages\"') = 0 FROM checkpoints"
    " WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id = ?"
)
_READ = (
    "SELECT type, checkpoint, metadata FROM checkpoints"
    " WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id = ?"
)
_SUBGRAPHS = (
    "SELECT checkpoint_ns, metadata FROM checkpoints WHERE thread_id = ? AND checkpoint_ns > '' GROUP BY checkpoint_ns"
)
_HAS_STORE = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'store'"
_DELETE = (
    "DELETE FROM {table} WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id < ?"
    " AND checkpoint_id NOT IN (SELECT value FROM json_each(?))"
)
_DELETE_SUBGRAPH = "DELETE FROM {table} WHERE thread_id = ? AND checkpoint_ns = ?"
_DELETE_SUMMARIES = "DELETE FROM store WHERE prefix = ? AND key < ? AND length(key) = ?"
_TABLES = ("checkpoints", "writes")

_DIAL = "keep_checkpoints"
"""In the metadata of a checkpoint: the dial of its run, when it is not the default."""

_ALL = 0
"""Stands for None there, which LangGraph would leave out."""

# A state that was edited by hand says nothing about the dial.
_LAST_RUN = (
    f"SELECT json_extract(CAST(metadata AS TEXT), '$.{_DIAL}') FROM checkpoints"
    " WHERE thread_id = ? AND checkpoint_ns = '' AND json_extract(CAST(metadata AS TEXT), '$.source') <> 'update'"
    " ORDER BY checkpoint_id DESC LIMIT 1"
)

Statement = tuple[str, Sequence[Any]]


@dataclass(frozen=True)
class Pruned:
    """What left the database."""

    checkpoints: int = 0
    summaries: int = 0


@dataclass(frozen=True)
class _Plan:
    """The statements that prune a thread, in one transaction; none when nothing has to go."""

    checkpoints: tuple[Statement, ...] = ()
    others: tuple[Statement, ...] = ()
    summaries: tuple[Statement, ...] = ()
    wait: int = RUNS_BETWEEN
    """Runs after which there may be more to prune."""


Steps = Generator[Statement, list[Any], _Plan]


@dataclass(frozen=True)
class _Row:
    """One checkpoint without the values of its messages."""

    checkpoint: Mapping[str, Any]
    metadata: Mapping[str, Any]

    @property
    def turns(self) -> int:
        return int(self.checkpoint["channel_values"].get("turns") or 0)

    @property
    def summary_id(self) -> str | None:
        found = self.checkpoint["channel_values"].get("summary_id")
        return None if found is None else str(found)

    @property
    def is_input(self) -> bool:
        return self.metadata.get("source") == "input"

    @property
    def is_open(self) -> bool:
        """Whether a node is next."""
        return any(
            channel == START or channel.startswith("branch:to:") for channel in self.checkpoint["channel_values"]
        )

    @property
    def is_whole(self) -> bool:
        """Whether it reads without its ancestors: it holds the messages, or there were none so far."""
        return _CHANNEL in self.checkpoint["channel_values"] or _CHANNEL not in self.checkpoint["channel_versions"]


def dial_metadata(keep: int | None) -> dict[str, int]:
    """Return what the checkpoints of a run say of its dial, so that `dial_of` knows; nothing at the default."""
    return {} if keep == Context.keep_checkpoints else {_DIAL: _ALL if keep is None else keep}


def dial_of(database: sqlite3.Connection, thread_id: str) -> int | None:
    """Return the dial that a thread was last run with; None keeps every checkpoint."""
    row = database.execute(_LAST_RUN, (thread_id,)).fetchone()
    if row is None or row[0] is None:
        return Context.keep_checkpoints
    return None if row[0] == _ALL else int(row[0])


class Pruner:
    """Prunes threads of one database through the connection of its saver.

    Args:
        saver: of SQLite, sync or async; with any other one nothing is pruned.
    """

    def __init__(self, saver: BaseCheckpointSaver[str]) -> None:
        self._saver = saver
        self._due: dict[str, tuple[int, int]] = {}
        """By thread: the dial of its last run, and the runs until the next look."""
        self._ledgers: dict[str, int] = {}
        """By thread: runs until the next look at its ledger."""
        # The values of messages are not looked at, and reviving them is most of the time of a load.
        self._serde = JsonPlusSerializer(__unpack_ext_hook__=lambda code, data: None)

    def after_run(self, thread_id: str, keep: int | None, ledger_turns: int | None = None) -> None:
        """Prune when a thread has grown beyond its next snapshot; a failure is logged and the next run tries again.

        Args:
            thread_id: a thread that our graph has just run, while its lock is held.
            keep: turns that stay travelable; None keeps all.
            ledger_turns: turns whose events are kept; None keeps all.
        """
        if ledger_turns is not None and isinstance(self._saver, SqliteSaver) and self._is_ledger_due(thread_id):
            try:
                self.prune_ledger(thread_id, ledger_turns)
            except _FAILURES as error:
                self._failed(thread_id, error)
        if keep is None or not isinstance(self._saver, SqliteSaver) or not self._is_due(thread_id, keep):
            return
        try:
            self.prune(thread_id, keep)
        except _FAILURES as error:
            self._failed(thread_id, error)

    async def aafter_run(self, thread_id: str, keep: int | None, ledger_turns: int | None = None) -> None:
        """Do what `after_run` does without blocking the event loop."""
        if ledger_turns is not None and isinstance(self._saver, AsyncSqliteSaver) and self._is_ledger_due(thread_id):
            try:
                await self.aprune_ledger(thread_id, ledger_turns)
            except _FAILURES as error:
                self._failed(thread_id, error)
        if keep is None or not isinstance(self._saver, AsyncSqliteSaver) or not self._is_due(thread_id, keep):
            return
        try:
            await self.aprune(thread_id, keep)
        except _FAILURES as error:
            self._failed(thread_id, error)

    def prune(self, thread_id: str, keep: int) -> Pruned:
        """Prune one thread now, in one transaction.

        What stays: the checkpoints of the newest `keep` turns on the newest branch, the end of the turn
        before them, their ancestors back to a snapshot, and every checkpoint that is younger than that
        snapshot, on whatever branch, with the ancestors it needs.
        """
        assert isinstance(self._saver, SqliteSaver)
        steps = self._steps(thread_id, keep)
        with self._saver.lock:
            connection = self._saver.conn
            try:
                sql, values = next(steps)
                while True:
                    sql, values = steps.send(connection.execute(sql, values).fetchall())
            except StopIteration as stop:
                plan: _Plan = stop.value
            try:
                if plan.checkpoints:
                    connection.execute("BEGIN IMMEDIATE")
                checkpoints = sum(connection.execute(*statement).rowcount for statement in plan.checkpoints)
                summaries = sum(connection.execute(*statement).rowcount for statement in plan.summaries)
                for statement in plan.others:
                    connection.execute(*statement)
                connection.commit()
            except BaseException:
                connection.rollback()
                raise
        self._due[thread_id] = keep, plan.wait
        return Pruned(checkpoints, summaries)

    async def aprune(self, thread_id: str, keep: int) -> Pruned:
        """Do what `prune` does without blocking the event loop."""
        assert isinstance(self._saver, AsyncSqliteSaver)
        steps = self._steps(thread_id, keep)
        async with self._saver.lock:
            connection = self._saver.conn
            try:
                sql, values = next(steps)
                while True:
                    sql, values = steps.send(list(await connection.execute_fetchall(sql, values)))
            except StopIteration as stop:
                plan: _Plan = stop.value
            try:
                checkpoints = [(await connection.execute(*statement)).rowcount for statement in plan.checkpoints]
                summaries = [(await connection.execute(*statement)).rowcount for statement in plan.summaries]
                for statement in plan.others:
                    await connection.execute(*statement)
                await connection.commit()
            except BaseException:
                await connection.rollback()
                raise
        self._due[thread_id] = keep, plan.wait
        return Pruned(sum(checkpoints), sum(summaries))

    def prune_ledger(self, thread_id: str, keep: int) -> int:
        """Delete the events of all but the newest `keep` turns; see `ledger.retention` for those that stay.

        Returns:
            Rows that went.
        """
        assert isinstance(self._saver, SqliteSaver)
        with self._saver.lock:
            connection = self._saver.conn
            if not connection.execute(_HAS_STORE).fetchone()[0]:
                return 0
            turn = retention.turn_of(connection.execute(*retention.newest(thread_id)).fetchall())
            try:
                connection.execute("BEGIN IMMEDIATE")
                gone = sum(connection.execute(*one).rowcount for one in retention.older(thread_id, turn - keep))
                connection.commit()
            except BaseException:
                connection.rollback()
                raise
        return gone

    async def aprune_ledger(self, thread_id: str, keep: int) -> int:
        """Do what `prune_ledger` does without blocking the event loop."""
        assert isinstance(self._saver, AsyncSqliteSaver)
        async with self._saver.lock:
            connection = self._saver.conn
            if not next(iter(await connection.execute_fetchall(_HAS_STORE)))[0]:
                return 0
            turn = retention.turn_of(list(await connection.execute_fetchall(*retention.newest(thread_id))))
            try:
                gone = [(await connection.execute(*one)).rowcount for one in retention.older(thread_id, turn - keep)]
                await connection.commit()
            except BaseException:
                await connection.rollback()
                raise
        return sum(gone)

    def _is_ledger_due(self, thread_id: str) -> bool:
        if len(self._ledgers) >= _MOST_THREADS:
            self._ledgers.clear()
        # The first run that this process sees may follow many of other processes.
        left = self._ledgers.get(thread_id, 1) - 1
        self._ledgers[thread_id] = left or retention.RUNS_BETWEEN
        return left == 0

    def _is_due(self, thread_id: str, keep: int) -> bool:
        # The first run that this process sees may follow many of other processes.
        known, left = self._due.get(thread_id, (keep, 0))
        if known != keep or left <= 1:
            if len(self._due) >= _MOST_THREADS:
                self._due.clear()
            return True
        self._due[thread_id] = keep, left - 1
        return False

    def _failed(self, thread_id: str, error: Exception) -> None:
        self._due.pop(thread_id, None)
        logger.warning("could not prune thread %r, the next run tries again: %s", thread_id, error)

    def _steps(self, thread_id: str, keep: int) -> Steps:
        """Yield the queries one by one; return what to delete. Sync and async share these decisions."""
        tree = _Tree((yield _LIST, (thread_id,)))
        cut, wait = yield from self._cut(thread_id, tree, keep)
        if cut is None:
            return _Plan(wait=wait)
        kept, roots = yield from self._needed(thread_id, tree, cut)
        gone = tree.parents.keys() - kept
        if not gone:
            return _Plan(wait=wait)
        older = json.dumps(sorted(one for one in kept if one < cut))
        deletions: list[Statement] = [(_DELETE.format(table=table), (thread_id, cut, older)) for table in _TABLES]
        for namespace in _left((yield _SUBGRAPHS, (thread_id,)), gone):
            deletions += [(_DELETE_SUBGRAPH.format(table=table), (thread_id, namespace)) for table in _TABLES]
        summaries = yield from self._summaries(thread_id, roots)
        return _Plan(tuple(deletions[:1]), tuple(deletions[1:]), summaries, wait)

    def _cut(self, thread_id: str, tree: "_Tree", keep: int) -> Generator[Statement, list[Any], tuple[str | None, int]]:
        """Return the newest snapshot that the last `keep` turns can be read from, and when to look again."""
        lineage = tree.lineage
        if not lineage:
            return None, RUNS_BETWEEN
        last_gone = (yield from self._row(thread_id, lineage[0])).turns - keep
        # Turns only grow along a lineage, so the newest checkpoint before the kept turns is found by halving.
        low, high = 1, len(lineage)
        while low < high:
            middle = (low + high) // 2
            row = yield from self._row(thread_id, lineage[middle])
            low, high = (low, middle) if row.turns <= last_gone else (middle + 1, high)
        # A turn is counted a few steps after its input was saved; the turn before it ended ahead of that input.
        oldest = low
        while oldest < len(lineage):
            row = yield from self._row(thread_id, lineage[oldest])
            if not row.is_input and not row.is_open:
                break
            oldest += 1
            if row.is_input:
                break
        wait = RUNS_BETWEEN
        later = yield from self._snapshot(thread_id, reversed(lineage[:oldest]))
        if later is not None:
            wait = max((yield from self._row(thread_id, later)).turns - last_gone, RUNS_BETWEEN)
        older = iter(lineage[oldest:])
        while (checkpoint_id := (yield from self._snapshot(thread_id, older))) is not None:
            if (yield from self._row(thread_id, checkpoint_id)).is_whole:
                return checkpoint_id, wait
        return None, wait

    def _snapshot(self, thread_id: str, places: Iterator[str]) -> Generator[Statement, list[Any], str | None]:
        """Return the next checkpoint that has a snapshot."""
        for checkpoint_id in places:
            ((is_snapshot,),) = yield _IS_SNAPSHOT, (thread_id, checkpoint_id)
            if is_snapshot:
                return checkpoint_id
        return None

    def _needed(
        self, thread_id: str, tree: "_Tree", cut: str
    ) -> Generator[Statement, list[Any], tuple[set[str], list[_Row]]]:
        """Return the checkpoints that stay, and those among them whose parents go."""
        kept = {*tree.lineage[: tree.lineage.index(cut) + 1], *(one for one in tree.parents if one >= cut)}
        roots: list[_Row] = []
        for checkpoint_id in list(kept):
            while (parent := tree.parents.get(checkpoint_id)) not in kept:
                row = yield from self._row(thread_id, checkpoint_id)
                if parent not in tree.parents or row.is_whole:
                    roots.append(row)
                    break
                kept.add(checkpoint_id := parent)
        return kept, roots

    def _summaries(
        self, thread_id: str, roots: Iterable[_Row]
    ) -> Generator[Statement, list[Any], tuple[Statement, ...]]:
        """Delete the versions before the oldest one that a kept checkpoint names: versions only grow on a branch."""
        names = [row.summary_id for row in roots]
        (has_store,) = yield _HAS_STORE, ()
        oldest = min((name or "" for name in names), default="")
        if not oldest or not has_store[0]:
            return ()
        prefix = ".".join(namespaces.summaries(thread_id))
        return ((_DELETE_SUMMARIES, (prefix, oldest.partition("-")[0], len(oldest))),)

    def _row(self, thread_id: str, checkpoint_id: str) -> Generator[Statement, list[Any], _Row]:
        ((kind, blob, metadata),) = yield _READ, (thread_id, checkpoint_id)
        serde = self._serde if kind == "msgpack" else self._saver.serde
        return _Row(serde.loads_typed((kind, blob)), json.loads(metadata or b"{}"))


class _Tree:
    """The checkpoints of a thread: parents by id, in the order of time."""

    def __init__(self, rows: Sequence[tuple[str, str | None]]) -> None:
        self.parents = dict(rows)
        self.lineage: list[str] = []
        """The newest checkpoint and its ancestors, newest first."""
        seen: set[str] = set()
        at = rows[-1][0] if rows else None
        while at in self.parents and at not in seen:
            seen.add(at)
            self.lineage.append(at)
            at = self.parents[at]


def _left(rows: Iterable[tuple[str, bytes]], gone: set[str]) -> list[str]:
    """Return the namespaces of subgraphs that ran for checkpoints which go.

    Only those of a task: a namespace without a task id belongs to a subgraph that keeps its own memory.
    """
    return [
        namespace
        for namespace, metadata in rows
        if ":" in namespace.partition("|")[0] and json.loads(metadata or b"{}").get("parents", {}).get("") in gone
    ]
