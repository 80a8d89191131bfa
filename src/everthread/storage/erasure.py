"""Erase a user or a thread for good: rows, index, log and free space, and then look whether anything is left.

Rows go in one transaction that also leaves a mark, so that an erasure that was interrupted is finished
by running it again. The file is then rewritten: rows that were changed or pruned long ago leave their
bytes behind in it, and so does the full-text index.
"""

import hashlib
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from everthread.errors import NotFoundError, SettingsError, StorageError
from everthread.state import namespaces
from everthread.storage import user_data
from everthread.storage.locations import locate
from everthread.storage.lost_notes import SAID, erase_shown, lost_notes, record_losses
from everthread.storage.open import Storage
from everthread.storage.residue import Hit, in_files, in_index, in_tables, samples, texts_of
from everthread.storage.sqlite.checkpointer import newest_inputs, row_counts
from everthread.storage.user_data import UserData

__all__ = ["Receipt", "erase", "held"]

_NEWEST_WRITES = 200
"""Writes of a thread that texts are taken from; older ones are in the transcript."""

_NO_TEXTS = ("ledger", "prompts", "handles", "left")
"""Records without words of the user, or whose words other records have too."""

_ATTEMPTS = 20
"""Times to ask other connections to leave the log, each for as long as the busy timeout."""


@dataclass(frozen=True)
class Receipt:
    """What was erased, and how it was made sure that it is gone."""

    user_id: str | None
    thread_id: str | None
    database: str
    began: str
    finished: str
    threads: tuple[str, ...]
    erased: dict[str, int]
    """Rows by what they were, such as `notes` or `checkpoints`."""
    texts: int
    """Texts of the erased data that were searched for; 0 when an interrupted erasure was finished."""
    rows: int
    """Rows of all tables that were searched."""
    files: dict[str, int]
    """Bytes of each file that was searched."""
    strangers: tuple[str, ...]
    """Threads whose records are so damaged that nobody knows whose they are; each can be erased by its id."""
    shared: int
    """Texts that others said too; they are still in what belongs to those."""
    left: tuple[str, ...]
    """Where an erased text was still found; empty when the erasure is verified."""

    @property
    def is_verified(self) -> bool:
        """Whether nothing was found."""
        return not self.left

    def as_json(self) -> dict[str, Any]:
        """Return it as one JSON object; it holds ids and counts, and no erased text."""
        return {
            "user_id": self.user_id,
            "thread_id": self.thread_id,
            "database": self.database,
            "began": self.began,
            "finished": self.finished,
            "threads": list(self.threads),
            "erased": self.erased,
            "searched": {"texts": self.texts, "rows": self.rows, "files": self.files},
            "said_by_others_too": self.shared,
            "threads_of_nobody": list(self.strangers),
            "left": list(self.left),
            "verified": self.is_verified,
        }


def held(storage: Storage, *, user_id: str | None = None, thread_id: str | None = None) -> dict[str, int]:
    """Count what `erase` would erase.

    Raises:
        NotFoundError: there is no such user or thread, and no erasure of it to finish.
    """
    with _database(storage) as database:
        return dict(_counts(database, _find(storage, database, user_id, thread_id)))


def erase(
    storage: Storage,
    *,
    user_id: str | None = None,
    thread_id: str | None = None,
    progress: Callable[[str], None] = lambda step: None,
) -> Receipt:
    """Erase everything of a user, or of one thread, and verify that it is gone.

    A thread takes with it what came from it and from nowhere else: its bookings, its tickets and the
    long-term notes that were said in no other thread. The locks of all threads concerned are held
    meanwhile, so no run can write back what it has read.

    Args:
        storage: opened with `open_storage`, on a file.
        user_id: whose data goes.
        thread_id: the thread that goes; give one of both.
        progress: hears of each step, once it is known that there is something to erase.

    Raises:
        NotFoundError: there is no such user or thread.
        ThreadBusyError: a run kept one of the threads for longer than the lock's timeout.
        StorageError: the rows are gone but the file could not be rewritten; run it again.
    """
    if (user_id is None) == (thread_id is None):
        raise SettingsError("say what to erase: `user_id` or `thread_id`, one of both")
    path, began = _path(storage), _now()
    with ExitStack() as locks:
        found = _locked(storage, locks, user_id, thread_id)
        with _database(storage) as database, _zeros(database):
            progress("erasing")
            counts = _counts(database, found)
            sought = samples(_texts(storage, database, found))
            spaces = _spaces(database, found)
            losses = lost_notes(database, found)
            _delete(database, found, _mark(user_id, thread_id), began)
            progress("rewriting the file")
            with _explained("rewrite the file"):
                storage.store.settle()
                if in_index(database, spaces):
                    # The words of a row that could not be read: nobody can say which they are.
                    storage.store.build_index()
                database.execute("VACUUM")
        record_losses(storage.store, losses)
    # The locks are given back by now: what follows changes nothing that a run reads.
    with _database(storage) as database, _zeros(database):
        _truncate(database)
        progress("searching for what is left")
        verified = _verify(storage, database, sought, user_id, spaces)
        if not verified["left"]:
            database.execute("DELETE FROM erasures WHERE target = ?", (_mark(user_id, thread_id),))
            _truncate(database)
    return Receipt(
        user_id, thread_id, str(path), began, _now(), found.threads, dict(counts), strangers=found.strangers, **verified
    )


def _locked(storage: Storage, locks: ExitStack, user_id: str | None, thread_id: str | None) -> UserData:
    """Enter the locks of all threads concerned, also of those that begin meanwhile, and that of the user's notes."""
    locked: set[str] = set()
    while True:
        with _database(storage) as database:
            found = _find(storage, database, user_id, thread_id)
        if not (new := set(found.threads) - locked):
            break
        for one in sorted(new):
            locks.enter_context(storage.locks.hold(one))
        locked |= new
    if found.user_id is not None:
        # A consolidation elsewhere reads and writes the notes under this key, after the thread's own.
        locks.enter_context(storage.locks.hold(namespaces.user_key(found.user_id)))
    with _database(storage) as database:
        return _find(storage, database, user_id, thread_id)


def _find(storage: Storage, database: sqlite3.Connection, user_id: str | None, thread_id: str | None) -> UserData:
    serde = storage.checkpointer.serde
    try:
        if user_id is not None:
            return user_data.of_user(database, serde, user_id)
        return user_data.of_thread(database, serde, str(thread_id))
    except NotFoundError:
        if not _is_interrupted(database, _mark(user_id, thread_id)):
            raise
        return UserData(user_id, ())


def _counts(database: sqlite3.Connection, found: UserData) -> Counter[str]:
    counts = Counter(user_data.kind_of(record.prefix) for record in user_data.records(database, found))
    counts += Counter({"sources of kept notes": len(found.kept_notes)})
    counts.update(row_counts(database, (*found.threads, *found.jobs)))
    return +counts


def _texts(storage: Storage, database: sqlite3.Connection, found: UserData) -> Iterator[str]:
    """Return what the user said and what is known about them, the most telling first."""
    of_users: list[str] = []
    of_threads: list[str] = []
    for record in user_data.records(database, found):
        kind = user_data.kind_of(record.prefix)
        if kind == "transcript":
            of_threads += [str(record.value.get("text", ""))] if record.value.get("role") == "human" else []
        elif kind not in _NO_TEXTS:
            of_users += texts_of(record.value)
    yield from of_users
    serde = storage.checkpointer.serde
    for thread_id in found.threads:
        for value in newest_inputs(database, serde, thread_id, _NEWEST_WRITES):
            yield from texts_of(value)
    yield from of_threads


def _delete(database: sqlite3.Connection, found: UserData, mark: str, began: str) -> None:
    """Delete all rows in one transaction, whatever table they are in, and leave a mark until all is done."""
    by_thread, by_record = _tables(database)
    database.execute("BEGIN IMMEDIATE")
    try:
        database.execute("CREATE TABLE IF NOT EXISTS erasures (target TEXT PRIMARY KEY, began TEXT)")
        database.execute("INSERT OR IGNORE INTO erasures VALUES (?, ?)", (mark, began))
        for table in by_record:
            for prefix in found.prefixes:
                where = "prefix = ? OR (prefix > ? AND prefix < ?)"
                database.execute(f'DELETE FROM "{table}" WHERE {where}', (prefix, prefix + ".", prefix + "/"))
            database.executemany(f'DELETE FROM "{table}" WHERE prefix = ? AND key = ?', found.records)
        for table in by_thread:
            gone = [(one,) for one in (*found.threads, *found.jobs)]
            database.executemany(f'DELETE FROM "{table}" WHERE thread_id = ?', gone)
        for note in found.kept_notes:
            values = (orjson.dumps(note.value), note.prefix, note.key)
            database.execute("UPDATE store SET value = ? WHERE prefix = ? AND key = ?", values)
        erase_shown(database, found, began)
        database.execute("COMMIT")
    except BaseException:
        database.execute("ROLLBACK")
        raise


def _tables(database: sqlite3.Connection) -> tuple[list[str], list[str]]:
    """Return the tables with rows of threads and those with records of the store, whoever made them."""
    by_thread, by_record = [], []
    rows = database.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
    for name, sql in rows:
        # An index is kept true by its triggers.
        if str(sql).upper().startswith("CREATE VIRTUAL"):
            continue
        columns = {str(row[1]) for row in database.execute(f'PRAGMA table_info("{name}")')}
        if "thread_id" in columns:
            by_thread.append(str(name))
        if {"prefix", "key"} <= columns:
            by_record.append(str(name))
    return by_thread, by_record


def _spaces(database: sqlite3.Connection, found: UserData) -> list[int]:
    """Return the numbers that the full-text index has for the namespaces that go."""
    if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'lexical_spaces'").fetchone():
        return []
    query = "SELECT ns FROM lexical_spaces WHERE prefix = ? OR (prefix > ? AND prefix < ?)"
    prefixes = [(prefix, prefix + ".", prefix + "/") for prefix in found.prefixes]
    return [int(row[0]) for prefix in prefixes for row in database.execute(query, prefix)]


def _truncate(database: sqlite3.Connection) -> None:
    """Write the log into the file and cut it to nothing.

    Raises:
        StorageError: another connection kept reading.
    """
    with _explained("empty the write-ahead log"):
        for _ in range(_ATTEMPTS):
            if database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0:
                return
    raise StorageError(
        "the rows are erased, but another process keeps reading the database, so its log cannot be emptied; "
        "stop that process and run the same command again"
    )


def _verify(
    storage: Storage, database: sqlite3.Connection, sought: list[bytes], user_id: str | None, spaces: list[int]
) -> dict[str, Any]:
    """Search all tables, the full-text index and all bytes; a text that somebody else said too is theirs."""
    hits, rows = in_tables(database, sought)
    owner = _owner(database)
    own = None if user_id is None else namespaces.label(user_id)
    theirs = {hit.text for hit in hits if (by := owner(hit)) is not None and by != own}
    # Rows without a name, such as those of an index, were made from rows that have one.
    left = sorted({_place(hit) for hit in hits if owner(hit) in (None, own) and (hit.row or hit.text not in theirs)})
    unseen = [text for text in sought if text not in {hit.text for hit in hits}]
    in_bytes, files = in_files(_path(storage), unseen, storage.database.opened)
    left += [f"the full-text index ({words} words)"] if (words := in_index(database, spaces)) else []
    left += [f"the bytes of {name} ({len(texts)} texts)" for name, texts in in_bytes.items()]
    return {"texts": len(sought), "rows": rows, "files": files, "shared": len(theirs), "left": tuple(left)}


def _owner(database: sqlite3.Connection) -> Callable[[Hit], str | None]:
    """Return what names the user that a row belongs to, as a label; None when nobody knows."""
    users = {key: namespaces.label(user) for key, user in _sessions(database)}
    labels = {namespaces.label(thread_id): user for thread_id, user in users.items()}

    def owner(hit: Hit) -> str | None:
        if len(hit.row) < 2:
            return users.get(hit.row[0]) if hit.row else None
        kind, _, rest = hit.row[0].partition(".")
        label = rest.partition(".")[0]
        if kind == "sessions":
            return users.get(hit.row[1])
        return label if kind == "users" else labels.get(label)

    return owner


def _sessions(database: sqlite3.Connection) -> Iterable[tuple[str, str]]:
    """Return whose each thread is, where its record says so."""
    query = f"SELECT key, {SAID.format('user_id')} FROM store WHERE prefix = ?"
    return ((key, str(user)) for key, user in database.execute(query, (".".join(namespaces.SESSIONS),)))


def _place(hit: Hit) -> str:
    return f"{hit.table} {'/'.join(hit.row)}".strip()


def _is_interrupted(database: sqlite3.Connection, mark: str) -> bool:
    there = database.execute("SELECT 1 FROM sqlite_master WHERE name = 'erasures'").fetchone()
    return bool(there and database.execute("SELECT 1 FROM erasures WHERE target = ?", (mark,)).fetchone())


def _mark(user_id: str | None, thread_id: str | None) -> str:
    """Name what is being erased without keeping its id."""
    target = f"user\x00{user_id}" if user_id is not None else f"thread\x00{thread_id}"
    return hashlib.sha256(target.encode("utf-8", "surrogatepass")).hexdigest()


@contextmanager
def _database(storage: Storage) -> Iterator[sqlite3.Connection]:
    """Use the storage's own connection, so that none of its calls comes in between."""
    with storage.database.lock:
        storage.database.check_files()
        yield storage.database.connection


@contextmanager
def _zeros(database: sqlite3.Connection) -> Iterator[None]:
    """Write zeros over all that is deleted; the runs that share the connection need not."""
    database.execute("PRAGMA secure_delete = ON")
    try:
        yield
    finally:
        database.execute("PRAGMA secure_delete = FAST")


@contextmanager
def _explained(step: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        raise StorageError(
            f"the rows are erased, but Everthread could not {step} ({error}), so their bytes may still be in it; "
            "run the same command again when no other process uses the database and as much disk space is free"
        ) from error


def _path(storage: Storage) -> Path:
    path = locate(storage.url).path
    if path is None:
        raise SettingsError("a database in memory keeps nothing; there is nothing to erase")
    return path


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
