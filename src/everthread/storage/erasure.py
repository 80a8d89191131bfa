"""Erase a user or a thread for good: rows, index, log and free space, and then look whether anything is left.

Rows go in one transaction that also leaves a mark, so that an erasure that was interrupted is finished
by running it again. What differs between databases is in their `Eraser`.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from everthread.errors import NotFoundError, SettingsError
from everthread.state import namespaces
from everthread.storage import user_data
from everthread.storage.decoded import newest_inputs
from everthread.storage.erasing import Doomed
from everthread.storage.lost_notes import lost_notes, record_losses, shown_texts
from everthread.storage.open import Storage
from everthread.storage.residue import Hit, samples, texts_of
from everthread.storage.tables import Tables
from everthread.storage.user_data import UserData

_NEWEST_WRITES = 200
"""Writes of a thread that texts are taken from; older ones are in the transcript."""

_NO_TEXTS = ("ledger", "prompts", "handles", "left", "removed", "said", "spend", "spend_asked")
"""Records without words of the user, or whose words other records have too."""


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
    with storage.eraser.hold():
        return dict(_counts(storage.tables, _find(storage, user_id, thread_id)))


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

    Of a SQLite file every byte is rewritten and searched. On Postgres rows and the index of words go, the tables are
    vacuumed, and every row of the schema is searched; what no client can reach keeps copies for a while: the free space
    of pages until it is used again, the write-ahead log until it is recycled, and archives, replicas and backups for as
    long as they are kept.

    Args:
        storage: opened with `open_storage`, on a file or on Postgres.
        user_id: whose data goes.
        thread_id: the thread that goes; give one of both.
        progress: hears of each step, once it is known that there is something to erase.

    Raises:
        NotFoundError: there is no such user or thread.
        ThreadBusyError: a run kept one of the threads for longer than the lock's timeout.
        StorageError: the rows are gone but the file could not be rewritten; run it again.
    """
    if (user_id is None) == (thread_id is None):
        raise SettingsError("say what to erase: either `user_id` or `thread_id`")
    eraser, mark, began = storage.eraser, _mark(user_id, thread_id), _now()
    place = eraser.place
    with ExitStack() as locks:
        found = _locked(storage, locks, user_id, thread_id)
        with eraser.alone():
            progress("erasing")
            counts = _counts(storage.tables, found)
            sought = samples(texts(storage, found))
            losses = lost_notes(storage.tables, found)
            spaces = eraser.delete(Doomed(found, tuple(shown_texts(storage.tables, found, began))), mark, began)
            progress(eraser.reclaiming)
            eraser.rewrite(spaces)
        record_losses(storage.store, losses)
    # The locks are given back by now: what follows changes nothing that a run reads.
    with eraser.alone():
        eraser.finish()
        progress("searching for what is left")
        verified = _verify(storage, sought, user_id, spaces)
        if not verified["left"]:
            eraser.unmark(mark)
    return Receipt(
        user_id, thread_id, place, began, _now(), found.threads, dict(counts), strangers=found.strangers, **verified
    )


def _locked(storage: Storage, locks: ExitStack, user_id: str | None, thread_id: str | None) -> UserData:
    """Enter the locks of all threads concerned, also of those that begin meanwhile, and that of the user's notes."""
    locked: set[str] = set()
    while True:
        with storage.eraser.hold():
            found = _find(storage, user_id, thread_id)
        if not (new := set(found.threads) - locked):
            break
        for one in sorted(new):
            locks.enter_context(storage.locks.hold(one))
        locked |= new
    if found.user_id is not None:
        # A consolidation elsewhere reads and writes the notes under this key, after the thread's own.
        locks.enter_context(storage.locks.hold(namespaces.user_key(found.user_id)))
    with storage.eraser.hold():
        return _find(storage, user_id, thread_id)


def _find(storage: Storage, user_id: str | None, thread_id: str | None) -> UserData:
    tables, serde = storage.tables, storage.checkpointer.serde
    try:
        if user_id is not None:
            return user_data.of_user(tables, serde, user_id)
        return user_data.of_thread(tables, serde, str(thread_id))
    except NotFoundError:
        if not storage.eraser.is_interrupted(_mark(user_id, thread_id)):
            raise
        return UserData(user_id, ())


def _counts(tables: Tables, found: UserData) -> Counter[str]:
    counts = Counter(user_data.kind_of(record.prefix) for record in user_data.records(tables, found))
    counts += Counter({"sources of kept notes": len(found.kept_notes)})
    counts.update(tables.row_counts(found.checkpointed))
    return +counts


def texts(storage: Storage, found: UserData) -> Iterator[str]:
    """Return what the user said and what is known about them, the most telling first."""
    of_users: list[str] = []
    of_threads: list[str] = []
    for record in user_data.records(storage.tables, found):
        kind = user_data.kind_of(record.prefix)
        if kind == "transcript":
            of_threads += texts_of(_said(record.value)) if record.value.get("role") == "human" else []
        elif kind not in _NO_TEXTS:
            of_users += texts_of(record.value)
    yield from of_users
    for thread_id in found.threads:
        for value in newest_inputs(storage.tables, storage.checkpointer.serde, thread_id, _NEWEST_WRITES):
            yield from texts_of(value)
    yield from of_threads


def _said(record: Mapping[str, Any]) -> Any:
    """Return what a message of the transcript says; earlier versions kept its text alone."""
    message = record.get("message")
    data = message.get("data") if isinstance(message, Mapping) else None
    return data.get("content") if isinstance(data, Mapping) else record.get("text")


def _verify(storage: Storage, sought: list[bytes], user_id: str | None, spaces: list[Any]) -> dict[str, Any]:
    """Search everything; a text that somebody else said too is theirs."""
    found = storage.eraser.search(sought, spaces)
    owner = _owner(storage.tables)
    own = None if user_id is None else namespaces.label(user_id)
    theirs = {hit.text for hit in found.hits if (by := owner(hit)) is not None and by != own}
    # Rows without a name, such as those of an index, were made from rows that have one.
    left = [_place(hit) for hit in found.hits if owner(hit) in (None, own) and (hit.row or hit.text not in theirs)]
    left = [*sorted(set(left)), *found.left]
    return {"texts": len(sought), "rows": found.rows, "files": found.files, "shared": len(theirs), "left": tuple(left)}


def _owner(tables: Tables) -> Callable[[Hit], str | None]:
    """Return what names the user that a row belongs to, as a label; None when nobody knows."""
    # A thread that is nobody's is still not theirs who are erased; of a damaged record nobody can say that.
    users = {
        key: namespaces.label(str(value["user_id"])) for key, value in user_data.sessions(tables) if "user_id" in value
    }
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


def _place(hit: Hit) -> str:
    return f"{hit.table} {'/'.join(hit.row)}".strip()


def _mark(user_id: str | None, thread_id: str | None) -> str:
    """Name what is being erased without keeping its id."""
    target = f"user\x00{user_id}" if user_id is not None else f"thread\x00{thread_id}"
    return hashlib.sha256(target.encode("utf-8", "surrogatepass")).hexdigest()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
