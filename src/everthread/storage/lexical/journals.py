"""Journals: what a run wrote and its database does not have yet.

LangGraph hands every write of a run to its saver from threads of its own: what a task wrote, then the checkpoint
after it. Each would be a transaction, and while one is on its way to the disk the next one starts one more thread.
A journal takes a write at once. What it has is saved in one transaction, together with the thread's records of the
same step: before the step ends under `durability="sync"`, some 50 ms later under `async`, by a thread that is always
there, and at the end of the run under `exit`.
"""

import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from langgraph.store.base import GetOp, Op, PutOp, SearchOp

from everthread.storage.lexical.indexing import put
from everthread.storage.lexical.plans import Statement, is_busy, run
from everthread.storage.lexical.texts import TextFields

__all__ = ["LONGEST_WAIT_SECONDS", "Entry", "Journal", "Journals", "write"]

Entry = Statement | Sequence[PutOp]
"""A statement of the saver, or writes to the store."""

LONGEST_WAIT_SECONDS = 0.05
"""What a checkpoint waits for others under `async`, so that steps that follow at once share a transaction."""

Write = Callable[[Sequence[Entry]], None]


class Journal:
    """What one run wrote and its database does not have yet; safe to share between threads."""

    def __init__(self, save: Write, step: Callable[["Journal"], None]) -> None:
        """Open a journal.

        Args:
            save: writes entries in one transaction, or raises and writes none.
            step: what to do when a step of the run is complete.
        """
        self._save = save
        self._step = step
        self._entries: deque[Entry] = deque()
        self._saving: list[Entry] = []
        self._lock = threading.Lock()
        self._failure: Exception | None = None

    def note(self, entry: Entry) -> None:
        """Take a write that is to be saved."""
        self._entries.append(entry)

    def step(self) -> None:
        """Do what the run's durability asks for at the end of a step.

        Raises:
            Exception: what failed before; nothing has been saved since.
        """
        self._step(self)
        self.check()

    def save(self) -> None:
        """Save what there is; `check` tells whether that failed.

        Raises:
            sqlite3.OperationalError: somebody else writes for too long; everything is still to be saved.
        """
        with self._lock:
            entries = self._saving = list(self._entries)
            for _ in entries:
                self._entries.popleft()
            try:
                # A checkpoint without the one before it would be read as something else.
                if entries and self._failure is None:
                    self._save(entries)
            except BaseException as error:
                if isinstance(error, Exception) and not is_busy(error):
                    self._failure = error
                    return
                self._entries.extendleft(reversed(entries))
                raise
            finally:
                self._saving = []

    def check(self) -> None:
        """Raise what failed, if anything did."""
        if self._failure is not None:
            raise self._failure

    def concerns(self, ops: Sequence[Op]) -> bool:
        """Tell whether operations on the store meet writes that are still to be saved."""
        # Copies, since the run goes on; what moves from one to the other in between is in both.
        unsaved = [*list(self._entries), *self._saving, *list(self._entries)]
        pending = [op for entry in unsaved if not isinstance(entry, Statement) for op in entry]
        written = {(op.namespace, op.key) for op in pending}
        return bool(written) and any(_meets(op, written) for op in ops)


class Journals:
    """The journals of the runs that are under way on one database, by thread."""

    def __init__(self, save: Write) -> None:
        """Prepare for journals.

        Args:
            save: writes entries in one transaction, or raises and writes none.
        """
        self._save = save
        self._open: dict[str, Journal] = {}
        self._wanted, self._closing = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self._guard = threading.Lock()

    @contextmanager
    def open(self, thread_id: str, durability: str) -> Iterator[None]:
        """Keep a journal for a run of a thread, which nobody else runs at the same time.

        Args:
            thread_id: the thread.
            durability: of the run, as LangGraph has it.

        Raises:
            Exception: what kept the journal from being saved, unless the run has failed itself.
        """
        step = {"sync": Journal.save, "async": self._save_behind}.get(durability, _wait)
        journal = self._open[thread_id] = Journal(self._save, step)
        try:
            try:
                yield
            except BaseException:
                with suppress(sqlite3.OperationalError):
                    journal.save()
                raise
            journal.save()
            journal.check()
        finally:
            del self._open[thread_id]

    def of(self, thread_id: object) -> Journal | None:
        """Return the journal of a thread's run; None when there is no run."""
        return self._open.get(str(thread_id))

    def settle(self) -> None:
        """Save what all journals have, for somebody who is about to read."""
        self._save_these(self._open.values())

    def settle_for(self, ops: Sequence[Op]) -> None:
        """Save what these operations on the store would else miss."""
        self._save_these(journal for journal in list(self._open.values()) if journal.concerns(ops))

    def _save_these(self, journals: Iterable[Journal]) -> None:
        for journal in list(journals):
            # What somebody else's write keeps from being saved now is saved with the next step, or by the run's end.
            with suppress(sqlite3.OperationalError):
                journal.save()

    def close(self) -> None:
        """End the thread that saves behind a run, and save what a run left that nobody ended."""
        if self._thread is not None:
            self._closing.set()
            self._wanted.set()
            self._thread.join()
        self.settle()

    def _save_behind(self, journal: Journal) -> None:
        with self._guard:
            if self._thread is None:
                self._thread = threading.Thread(target=self._save_wanted, name="everthread-journals", daemon=True)
                self._thread.start()
        self._wanted.set()

    def _save_wanted(self) -> None:
        while self._wanted.wait() and not self._closing.wait(LONGEST_WAIT_SECONDS):
            self._wanted.clear()
            self.settle()


def write(cursor: sqlite3.Cursor, entries: Iterable[Entry], default: TextFields | None = None) -> None:
    """Write the entries of a journal inside the caller's transaction; which text counts is as in `put`."""
    puts: list[PutOp] = []
    for entry in entries:
        if not isinstance(entry, Statement):
            puts += entry
        elif entry.is_many:
            cursor.executemany(entry.sql, entry.parameters)
        else:
            cursor.execute(entry.sql, entry.parameters)
    if puts:
        # In one go: the index is brought up to date once.
        run(cursor, put(puts, default))


def _wait(journal: Journal) -> None:
    """Leave everything to the end of the run."""


def _meets(op: Op, written: set[tuple[tuple[str, ...], str]]) -> bool:
    if isinstance(op, GetOp | PutOp):
        return (op.namespace, op.key) in written
    prefix: Any = op.namespace_prefix if isinstance(op, SearchOp) else ()
    return any(namespace[: len(prefix)] == tuple(prefix) for namespace, _ in written)
