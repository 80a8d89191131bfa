"""Copy a database to another one, of whatever kind: threads, checkpoints, store and ledger.

Nothing is deleted anywhere, and what the target has besides stays as it is. A thread is copied under its lock, in one
transaction with its records, and its digest is compared on both sides. So a run that was cut off goes on where it was,
and a second one changes nothing.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain
from typing import Protocol, TypeVar

from everthread.errors import SettingsError, StorageError
from everthread.state import namespaces
from everthread.storage.copied_threads import Digest, RefusedError, copy_checkpoints, digest_of
from everthread.storage.locations import is_postgres, locate
from everthread.storage.open import Storage
from everthread.storage.store import Place, StoredRow
from everthread.storage.unreadable import record_name

T = TypeVar("T")

_PAGE = 500
"""Records that are copied in one transaction."""

_SESSIONS = ".".join(namespaces.SESSIONS)
_THREADS = namespaces.thread("t")[0] + "."


@dataclass(frozen=True)
class NotCopied:
    """A thread or a record that stayed behind."""

    name: str
    """Id of the thread, or place of the record."""
    reason: str


@dataclass
class Migration:
    """What was copied."""

    threads: int = 0
    """In the source."""
    threads_copied: int = 0
    """Of which something was written."""
    checkpoints: int = 0
    """In both, with the same digest."""
    checkpoints_copied: int = 0
    records: int = 0
    """Of the store, in both, with the same digest; the ledger's among them."""
    records_copied: int = 0
    not_copied: list[NotCopied] = field(default_factory=list)
    digests: dict[str, str] = field(default_factory=dict)
    """SHA-256 of all threads, and of the other records by the first label of their namespace."""


class Report(Protocol):
    """Shows how far it is."""

    def __call__(self, step: str, done: int = 0, total: int | None = None) -> None:
        """Take what is being done, how many parts are done, and of how many."""


class _UndoError(Exception):
    """Ends a transaction of which nothing is to stay."""


@dataclass
class _Copy:
    """One run from one database to another."""

    source: Storage
    target: Storage
    report: Report
    is_dry: bool
    stamp: str
    """Name of the stamp that says when the target was last written from this source."""
    result: Migration = field(default_factory=Migration)

    def write(self, work: Callable[[], T]) -> T:
        """Run a function in a transaction of the target, which a dry run undoes; return its result."""
        results: list[T] = []

        def run() -> None:
            results.append(work())
            if self.is_dry:
                raise _UndoError

        with suppress(_UndoError):
            self.target.database.write(run)
        return results[0]

    def digest(self, row: StoredRow) -> bytes:
        """Return the digest of a record; Postgres keeps a lifetime in whole minutes."""
        ttl = None if row.ttl_minutes is None else round(row.ttl_minutes)
        times = [time and time.isoformat() for time in row[3:6]]
        return digest_of([*row.place, row.value, *times, ttl], self.source.checkpointer.serde)


def migrate(source: Storage, target: Storage, report: Report, *, is_dry: bool = False) -> Migration:
    """Copy a database to another one.

    Args:
        source: stays as it is; workers may go on in it, and what they change is copied by the next run.
        target: nobody may work on these threads in it before the last run is over.
        report: shows how far it is.
        is_dry: only say what would be copied.

    Returns:
        What was copied, and what was not.

    Raises:
        SettingsError: both are the same database.
        StorageError: a database failed, or the target has other records under the same names.
    """
    places = _identity(source.url), _identity(target.url)
    if places[0] == places[1]:
        raise SettingsError("source and target are the same database; name another one to copy to")
    copy = _Copy(source, target, report, is_dry, f"copied from {places[0]}")
    threads = source.database.read(source.tables.thread_ids)
    copy.result.threads = len(threads)
    own = {namespaces.label(thread_id) for thread_id in threads}, set(threads)
    stamped = target.database.read(target.store.stamp, copy.stamp)
    if stamped is None:
        _refuse_others(copy, own)
        copy.write(lambda: target.store.set_stamp(copy.stamp, _now()))
    _copy_threads(copy, sorted(threads))
    _copy_records(copy, own, datetime.fromisoformat(stamped) if stamped else None)
    return copy.result


def _identity(url: str) -> str:
    """Name a database, however its URL is written."""
    path = None if is_postgres(url) else locate(url).path
    return url if path is None else str(path.resolve())


def _copy_threads(copy: _Copy, threads: Sequence[str]) -> None:
    every = Digest()
    for number, thread_id in enumerate(threads):
        copy.report(f"thread {thread_id}", number, len(threads))
        try:
            holds = [storage.locks.hold(thread_id) for storage in (copy.source, copy.target)]
            with holds[0], holds[1]:
                every.add(hashlib.sha256(thread_id.encode() + _copy_thread(copy, thread_id)).digest())
        except StorageError as error:
            _check_alive(copy)
            text = str(error)
            reason = text if isinstance(error, RefusedError) else f"thread {thread_id!r} was not copied: {text}"
            copy.result.not_copied.append(NotCopied(thread_id, reason))
    copy.result.digests["threads"] = every.value.hex()


def _copy_thread(copy: _Copy, thread_id: str) -> bytes:
    """Copy a thread with its records in one transaction; return its digest."""
    digest, result = Digest(), copy.result

    def work() -> tuple[int, int, int]:
        copied, is_known = copy_checkpoints(copy.source, copy.target, thread_id, digest)
        checkpoints = digest.count
        prefix = ".".join(namespaces.thread(thread_id))
        session = [*_at(copy.source, [(_SESSIONS, thread_id)]).values()]
        pages = chain(_pages(copy.source, prefix), [session])
        return checkpoints, copied, sum(_copy_page(copy, rows, digest, lambda row: is_known) for rows in pages)

    checkpoints, copied, records = copy.write(work)
    result.threads_copied += bool(copied or records)
    result.checkpoints += checkpoints
    result.checkpoints_copied += copied
    result.records += digest.count - checkpoints
    result.records_copied += records
    return digest.value


def _copy_records(copy: _Copy, own: tuple[set[str], set[str]], stamped: datetime | None) -> None:
    """Copy the records of the store that are of no thread with checkpoints."""
    digests: dict[str, Digest] = {}
    result = copy.result

    def is_known(row: StoredRow) -> bool:
        # What the target's own workers wrote is younger than the last run.
        return stamped is not None and row.updated_at <= stamped

    for page in _others(copy.source, own):
        copy.report("records of the store", result.records)
        for top in {row.prefix.partition(".")[0] for row in page}:
            rows = [row for row in page if row.prefix.partition(".")[0] == top]
            _copy_top(copy, rows, digests.setdefault(top, Digest()), is_known)
    result.digests |= {top: digest.value.hex() for top, digest in digests.items()}


def _copy_top(copy: _Copy, rows: Sequence[StoredRow], digest: Digest, is_known: Callable[[StoredRow], bool]) -> None:
    """Copy a page of records in one transaction; of one that the target refuses, each by itself."""
    page = Digest()

    def work() -> int:
        copied = _copy_page(copy, rows, page, is_known, leave_out=True)
        if copied:
            copy.target.store.set_stamp(copy.stamp, _now())
        return copied

    objections = len(copy.result.not_copied)
    try:
        copied = copy.write(work)
    except StorageError as error:
        _check_alive(copy)
        del copy.result.not_copied[objections:]
        if len(rows) == 1:
            reason = f"{record_name(rows[0].prefix, rows[0].key)} was not copied: {error}"
            copy.result.not_copied.append(NotCopied(".".join(rows[0].place), reason))
            return
        for row in rows:
            _copy_top(copy, [row], digest, is_known)
        return
    copy.result.records_copied += copied
    copy.result.records += page.count
    digest.merge(page)


def _check_alive(copy: _Copy) -> None:
    """Tell a record or a thread that is refused from a database that does not answer any more.

    Raises:
        StorageError: it does not.
    """
    for storage in (copy.source, copy.target):
        storage.database.read(storage.checkpointer.rows.namespaces, "")


def _copy_page(
    copy: _Copy,
    rows: Sequence[StoredRow],
    digest: Digest,
    is_known: Callable[[StoredRow], bool],
    *,
    leave_out: bool = False,
) -> int:
    """Copy records inside of the target's `write`; return how many were written.

    Args:
        digest: takes the digest of each.
        is_known: tells of a record of the target whether it came from here.
        leave_out: go on with the others when one cannot be copied.

    Raises:
        RefusedError: the target has something else there, or a record cannot be read.
    """
    theirs = copy.target.store.stored_at([row.place for row in rows])
    written: list[StoredRow] = []
    for row in rows:
        if reason := _objection(copy, row, theirs.get(row.place), is_known):
            if not leave_out:
                raise RefusedError(reason)
            copy.result.not_copied.append(NotCopied(".".join(row.place), reason))
            continue
        digest.add(copy.digest(row))
        if (found := theirs.get(row.place)) is None or copy.digest(found) != copy.digest(row):
            written.append(row)
    if written:
        copy.target.store.restore(written)
        again = copy.target.store.stored_at([row.place for row in written])
        for row in written:
            if copy.digest(again[row.place]) != copy.digest(row):
                raise RefusedError(f"{record_name(row.prefix, row.key)} does not read the same after the copy")
    return len(written)


def _objection(
    copy: _Copy, row: StoredRow, theirs: StoredRow | None, is_known: Callable[[StoredRow], bool]
) -> str | None:
    """Return why a record cannot be copied."""
    name = record_name(row.prefix, row.key)
    if row.value is None:
        return f"{name} cannot be read; `everthread doctor` lists all such rows"
    if theirs is None or copy.digest(row) == copy.digest(theirs):
        return None
    if is_known(theirs) and row.updated_at >= theirs.updated_at:
        return None
    return f"{name} is in the target with another content; it was left as it is, on both sides"


def _refuse_others(copy: _Copy, own: tuple[set[str], set[str]]) -> None:
    """Refuse a target that was never copied to from here and has other records under the same names."""
    if not copy.target.database.read(copy.target.store.stored, limit=1):
        return
    for page in _others(copy.source, own):
        theirs = _at(copy.target, [row.place for row in page])
        for row in page:
            if (found := theirs.get(row.place)) is not None and copy.digest(found) != copy.digest(row):
                raise StorageError(
                    f"the target has {record_name(row.prefix, row.key)} already, with another content; nothing was "
                    "copied, choose a database or a schema of its own"
                )


def _others(storage: Storage, own: tuple[set[str], set[str]]) -> Iterator[list[StoredRow]]:
    """Yield pages of the records that belong to none of the threads: given by their labels, and by their ids."""
    for page in _pages(storage):
        yield [
            row
            for row in page
            if not (row.prefix == _SESSIONS and row.key in own[1])
            and not (row.prefix.startswith(_THREADS) and row.prefix.split(".")[1] in own[0])
        ]


def _pages(storage: Storage, prefix: str = "") -> Iterator[list[StoredRow]]:
    last: Place | None = None
    while page := storage.database.read(storage.store.stored, prefix, last, _PAGE):
        yield page
        last = page[-1].place


def _at(storage: Storage, places: Sequence[Place]) -> Mapping[Place, StoredRow]:
    found: Mapping[Place, StoredRow] = storage.database.read(storage.store.stored_at, places)
    return found


def _now() -> str:
    return datetime.now(UTC).isoformat()
