"""What retention takes from a thread: found in one place, for a dry run and for what then goes."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import orjson

from everthread.ledger import retention as events
from everthread.state import namespaces
from everthread.state.records import StoredItem, items
from everthread.state.retention import Retention
from everthread.storage.damage import receipt
from everthread.storage.erasing import Doomed
from everthread.storage.kept_checkpoints import OURS
from everthread.storage.open import Storage
from everthread.storage.reader import Reader
from everthread.storage.reading import RECEIPTS, session_notes
from everthread.storage.said import said_in
from everthread.storage.unreadable import readable
from everthread.storage.user_data import UserData, kind_of

Kept = Literal["waiting", "foreign", "busy", "failed", "unreadable"]
"""Why a thread stays that is idle for long enough; docs/retention.md says it in sentences."""


_MOST_SUMMARIES = 10_000
_MOST_NAMESPACES = 10_000_000


@dataclass(frozen=True)
class Deletion:
    """What goes, or went, of one thread."""

    thread_id: str
    user_id: str | None
    agent: str
    last_activity: str
    policy: Retention
    is_whole: bool
    """The thread goes with all that is its own, and not only what is old of it."""
    erased: Mapping[str, int]
    """Rows by what they are, such as `transcript`, `ledger` or `checkpoints`."""
    turns: int
    """Turns that go: all of a whole thread, else those whose events go."""
    size: int
    """Bytes of the values of these rows."""
    where: UserData
    """Where they are."""

    def as_json(self) -> dict[str, Any]:
        """Return it as one JSON object; it holds ids and counts, and no text."""
        return {
            "thread_id": self.thread_id,
            "user_id": self.user_id,
            "agent": self.agent,
            "last_activity": self.last_activity,
            "policy": self.policy.as_json(),
            "whole": self.is_whole,
            "erased": dict(self.erased),
            "turns": self.turns,
            "bytes": self.size,
        }

    def doomed(self, at: datetime) -> Doomed:
        """Return the rows that go, and the receipt that takes their place in the same transaction."""
        stamp = at.isoformat(timespec="milliseconds")
        owner = namespaces.user(self.user_id, RECEIPTS) if self.user_id else (RECEIPTS,)
        written = orjson.dumps({"at": stamp, **self.as_json()})
        return Doomed(self.where, added=((".".join(owner), f"{stamp} {namespaces.label(self.thread_id)}", written),))


def receipts(storage: Storage) -> list[dict[str, Any]]:
    """Return what retention has deleted, the latest first: of each deletion when it was, and its `as_json`."""
    spaces = storage.store.list_namespaces(suffix=(RECEIPTS,), limit=_MOST_NAMESPACES)
    every = [one for space in spaces for one in readable(items(storage.store, space), receipt)]
    return sorted(every, key=lambda one: str(one["at"]), reverse=True)


def may_be_due(record: Mapping[str, Any], policy: Retention, at: datetime) -> bool:
    """Tell by a thread's record alone whether anything of it can be due."""
    turns = policy.ledger_turns
    return (
        _is_older(record["last_activity"], policy.idle_days, at)
        or _is_older(record.get("began"), policy.transcript_days, at)
        or (turns is not None and int(record["turns"]) > turns)
    )


def due(
    storage: Storage,
    record: Mapping[str, Any],
    policy: Retention,
    at: datetime,
    *,
    size: int,
    adopted: bool = False,
) -> tuple[Deletion | None, Kept | None]:
    """Return what goes of a thread, and why it stays though it is idle for long enough.

    Args:
        storage: on SQLite, inside of its eraser's `hold`.
        record: of the thread's session.
        policy: of this thread.
        at: now.
        size: bytes of the thread's checkpoints and writes.
        adopted: threads count too that another graph wrote, under a guard or with our middleware.

    Raises:
        StorageError: the thread cannot be read.
    """
    reader, thread_id = Reader(storage.tables), str(record["thread_id"])
    is_idle = _is_older(record["last_activity"], policy.idle_days, at)
    if not adopted and _is_foreign(storage, reader, thread_id):
        return None, "foreign" if is_idle else None
    # A turn that a crash cut off waits for nobody; one that asks somebody does.
    is_asking = is_idle and bool(reader.state(thread_id).asked)
    if is_idle and not is_asking:
        return _whole(storage, record, policy, size), None
    return _parts(storage, record, policy, at), "waiting" if is_asking else None


def _whole(storage: Storage, record: Mapping[str, Any], policy: Retention, size: int) -> Deletion:
    thread_id = str(record["thread_id"])
    prefix, sessions = ".".join(namespaces.thread(thread_id)), ".".join(namespaces.SESSIONS)
    rows = storage.tables.below(prefix)
    said = _said(storage, record)
    counts = Counter(kind_of(found) for found, _, _ in rows) + Counter({"sessions": 1, "said": len(said)})
    counts.update(storage.tables.row_counts([thread_id]))
    (session,) = storage.tables.page(namespaces.SESSIONS, key=thread_id)
    return _deletion(
        record,
        policy,
        is_whole=True,
        erased=+counts,
        turns=int(record["turns"]),
        size=size + sum(len(value) for _, _, value in rows) + len(session[1]) + _size(said),
        where=UserData(None, (thread_id,), prefixes=(prefix,), records=((sessions, thread_id), *map(_place, said))),
    )


def _parts(storage: Storage, record: Mapping[str, Any], policy: Retention, at: datetime) -> Deletion | None:
    thread_id = str(record["thread_id"])
    gone: list[StoredItem] = []
    if policy.transcript_days is not None:
        gone += _old_texts(storage, record, policy.transcript_days, at)
    if policy.ledger_turns is not None:
        gone += events.outdated(storage.store, thread_id, int(record["turns"]) - policy.ledger_turns)
    if not gone:
        return None
    ledger = namespaces.ledger(thread_id)
    return _deletion(
        record,
        policy,
        is_whole=False,
        erased=Counter(kind_of(".".join(one.namespace)) for one in gone),
        turns=len({one.value.get("turn") for one in gone if one.namespace == ledger}),
        size=_size(gone),
        where=UserData(None, (), records=tuple(map(_place, gone))),
    )


def _size(rows: Sequence[StoredItem]) -> int:
    return sum(len(orjson.dumps(one.value)) for one in rows)


def _place(row: StoredItem) -> tuple[str, str]:
    return ".".join(row.namespace), row.key


def _said(storage: Storage, record: Mapping[str, Any]) -> Sequence[StoredItem]:
    """Return what is kept of a thread for searches over all threads of its user."""
    user_id = record.get("user_id")
    return said_in(storage.store, str(record["thread_id"]), str(user_id)) if user_id else []


def _deletion(record: Mapping[str, Any], policy: Retention, **facts: Any) -> Deletion:
    user_id = record.get("user_id")
    return Deletion(
        thread_id=str(record["thread_id"]),
        user_id=None if user_id is None else str(user_id),
        agent=str(record.get("agent", "")),
        last_activity=str(record["last_activity"]),
        policy=policy,
        **facts,
    )


def _old_texts(storage: Storage, record: Mapping[str, Any], days: float, at: datetime) -> list[StoredItem]:
    """Return old messages of the transcript, and old versions of its summary, that nothing else of the thread names.

    That is a checkpoint, a record of a call by the middleware, or a session note.
    """
    thread_id = str(record["thread_id"])
    archive = [*items(storage.store, namespaces.transcript(thread_id)), *_said(storage, record)]
    old = [item for item in archive if _is_older(item.value.get("date"), days, at)]
    versions = storage.store.search(namespaces.summaries(thread_id), limit=_MOST_SUMMARIES)
    old += [one for one in versions if _is_older(one.updated_at.isoformat(), days, at)]
    if not old:
        return []
    notes = session_notes(storage.store, thread_id)
    noted = {name for note in notes for name in note.message_ids}
    # By the bytes of its id: a checkpoint that stays may go back to the message, and so may a branch or a subgraph. One
    # that names it as its neighbour alone keeps it a little longer.
    saved = [blob for _, _, blob in storage.tables.stored_values(thread_id)]
    saved += [value for _, _, value in storage.tables.below(".".join(namespaces.calls(thread_id)))]
    named = [(one, str(one.value.get("message_id", one.key))) for one in old]
    return [one for one, name in named if name not in noted and not any(name.encode() in blob for blob in saved)]


def _is_foreign(storage: Storage, reader: Reader, thread_id: str) -> bool:
    """Tell whether another graph wrote something of a thread without a guard around it."""
    if reader.is_ours(thread_id):
        return False
    history = storage.database.read(storage.checkpointer.rows.history, thread_id, "")
    # A bare graph of ours marks no checkpoint; its state does.
    is_marked = all(OURS in node.metadata for node in history.values())
    return not is_marked and "memory_digest" not in reader.state(thread_id).values


def _is_older(stamp: Any, days: float | None, at: datetime) -> bool:
    """Tell whether a date lies so many days back; one that cannot be read does not."""
    if days is None or not isinstance(stamp, str):
        return False
    try:
        then = datetime.fromisoformat(stamp)
    except ValueError:
        return False
    # By numbers: `timedelta` has no room for so many days as some take for ever.
    return (at - (then if then.tzinfo else then.replace(tzinfo=UTC))) / timedelta(days=1) >= days
