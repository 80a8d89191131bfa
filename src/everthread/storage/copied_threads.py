"""Copy the checkpoints of a thread from one database to another, through LangGraph's savers.

Ids stay as they are: of thread, namespace, checkpoint, parent and task. What was copied is read again on the other
side, and has to have the same digest.
"""

import hashlib
from collections.abc import Mapping, Sequence
from decimal import Decimal
from shlex import quote
from typing import Any, NamedTuple, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import WRITES_IDX_MAP, CheckpointTuple
from langgraph.checkpoint.serde.base import SerializerProtocol

from everthread.errors import StorageError
from everthread.storage.blocked_types import blocked_types
from everthread.storage.open import Storage
from everthread.storage.unreadable import FAULTS, described


class RefusedError(StorageError):
    """A thread or a record is left as it is on the other side, with the reason."""


class Digest:
    """A number and a hash of things in whatever order."""

    def __init__(self) -> None:
        self.count = 0
        self._sum = 0

    def add(self, one: bytes) -> None:
        """Add the hash of a thing."""
        self.count += 1
        self._sum = (self._sum + int.from_bytes(one)) % (1 << 256)

    def merge(self, other: "Digest") -> None:
        """Add what another one took."""
        self.count += other.count
        self._sum = (self._sum + other._sum) % (1 << 256)

    @property
    def value(self) -> bytes:
        """The hash of all."""
        return self._sum.to_bytes(32)


class _Place(NamedTuple):
    """Where a checkpoint is."""

    thread_id: str
    namespace: str
    checkpoint_id: str

    @property
    def config(self) -> RunnableConfig:
        """What a saver takes."""
        names = {"thread_id": self.thread_id, "checkpoint_ns": self.namespace, "checkpoint_id": self.checkpoint_id}
        return {"configurable": names}


class _Saved(NamedTuple):
    """One checkpoint as it is read, and what its tasks wrote: by task, path and channel with value."""

    found: CheckpointTuple
    parent: str | None
    writes: dict[str, tuple[str, list[tuple[str, Any]]]]
    digest: bytes
    """Of the checkpoint alone."""
    written: list[bytes]
    """Of each write, sorted."""


def copy_checkpoints(source: Storage, target: Storage, thread_id: str, digest: Digest) -> tuple[int, bool]:
    """Copy what the target has not, inside of its `write`; the caller holds the thread's lock on both sides.

    Args:
        source: where the thread is.
        target: where it goes.
        digest: takes the digest of each checkpoint.

    Returns:
        How many checkpoints were written, and whether the target had any of the thread before.

    Raises:
        RefusedError: values would lose their types, or the target has something else under the same ids.
        UnreadableError: a checkpoint cannot be read.
    """
    places = source.database.read(_places, source, thread_id)
    present = set(_places(target, thread_id))
    _refuse_other(places, present, thread_id)
    copied = 0
    for place in places:
        mine = source.database.read(_read, source, place)
        theirs = _read(target, place) if place in present else None
        if theirs is None or not _is_same(mine, theirs):
            _write(target, place, mine, theirs)
            copied += 1
            if not _is_same(mine, _read(target, place)):
                raise RefusedError(
                    f"thread {thread_id!r} does not read the same after the copy, from its checkpoint "
                    f"{place.checkpoint_id} on; it was not copied"
                )
        digest.add(hashlib.sha256(mine.digest + b"".join(mine.written)).digest())
    return copied, bool(present)


def _places(storage: Storage, thread_id: str) -> list[_Place]:
    """Return where the checkpoints of a thread are: those of subgraphs first, each namespace oldest first."""
    rows = storage.checkpointer.rows
    names = sorted((name for name, _ in rows.namespaces(thread_id)), reverse=True)
    return [_Place(thread_id, name, one) for name in names for one in rows.history(thread_id, name)]


def _refuse_other(places: Sequence[_Place], present: set[_Place], thread_id: str) -> None:
    """Refuse a thread whose newest checkpoint in the target is not one of the source's."""
    newest: dict[str, _Place] = {}
    for place in present:
        newest[place.namespace] = max(place, newest.get(place.namespace, place))
    if not set(newest.values()) <= set(places):
        raise RefusedError(
            f"thread {thread_id!r} is in the target already and has gone on there, or is another one; it was left as "
            f"it is: `everthread forget --thread {quote(thread_id)}` on the one side that is not wanted"
        )


def _read(storage: Storage, place: _Place) -> _Saved:
    """Read one checkpoint, inside of the database's `read` or `write`."""
    checkpointer = storage.checkpointer
    with blocked_types() as blocked:
        try:
            found = checkpointer.rows.saver(checkpointer.serde).get_tuple(place.config)
            paths = checkpointer.rows.task_paths(*place)
            saved = None if found is None else _saved(found, paths, checkpointer.serde)
        except FAULTS as error:
            raise described(f"checkpoint {place.checkpoint_id} of thread {place.thread_id!r}", error) from error
    if blocked:
        names = sorted({":".join(name.rpartition(".")[::2]) for name in blocked})
        options = " ".join(f"--allow-type {name}" for name in names)
        raise RefusedError(
            f"thread {place.thread_id!r} has values of types that would become plain data; it was not copied, name "
            f"them: `{options}`"
        )
    if saved is None:
        raise RefusedError(f"thread {place.thread_id!r} was changed while it was copied; run it again")
    return saved


def _saved(found: CheckpointTuple, paths: Mapping[str, str], serde: SerializerProtocol) -> _Saved:
    values = found.checkpoint["channel_values"]
    if found.parent_config is not None:
        # Postgres gives back an old snapshot of a delta channel for as long as the channel has the same version.
        elsewhere = found.metadata.get("counters_since_delta_snapshot") or {}
        values = {name: value for name, value in values.items() if name not in elsewhere}
    values = {name: _packable(value) for name, value in values.items()}
    found = found._replace(checkpoint={**found.checkpoint, "channel_values": values})
    writes: dict[str, tuple[str, list[tuple[str, Any]]]] = {}
    for task_id, channel, value in found.pending_writes or ():
        writes.setdefault(task_id, (paths.get(task_id) or "", []))[1].append((channel, value))
    checkpoint = {name: part for name, part in found.checkpoint.items() if part not in (None, [], {})}
    parent = None if found.parent_config is None else str(found.parent_config["configurable"]["checkpoint_id"])
    written = [
        # A regular write has its place among those of its task.
        digest_of([task_id, path, None if channel in WRITES_IDX_MAP else number, channel, value], serde)
        for task_id, (path, parts) in writes.items()
        for number, (channel, value) in enumerate(sorted(parts, key=lambda part: part[0] in WRITES_IDX_MAP))
    ]
    return _Saved(found, parent, writes, digest_of([checkpoint, found.metadata, parent], serde), sorted(written))


def _packable(value: Any) -> Any:
    """Return a number over 64 bits as the float that it was before `jsonb` had it, if it was one."""
    if type(value) is int and value.bit_length() > 63 and Decimal(value) == Decimal(repr(float(value))):
        return float(value)
    return value


def _is_same(mine: _Saved, theirs: _Saved) -> bool:
    return (mine.digest, mine.written) == (theirs.digest, theirs.written)


def _write(target: Storage, place: _Place, mine: _Saved, theirs: _Saved | None) -> None:
    """Write a checkpoint, or what tasks wrote since it was copied."""
    if theirs is not None and (mine.digest != theirs.digest or not set(theirs.written) <= set(mine.written)):
        raise RefusedError(
            f"thread {place.thread_id!r} is in the target with another content; it was left as it is, on both sides"
        )
    saver = target.checkpointer.rows.saver(target.checkpointer.serde)
    try:
        if theirs is None:
            config = cast(
                RunnableConfig, {"configurable": {**place.config["configurable"], "checkpoint_id": mine.parent}}
            )
            checkpoint = mine.found.checkpoint
            saver.put(config, checkpoint, mine.found.metadata, checkpoint["channel_versions"])
        for task_id, (path, parts) in mine.writes.items():
            # Apart: a place of their own keeps LangGraph's writes from moving the others on.
            for special in (True, False):
                if chosen := [part for part in parts if (part[0] in WRITES_IDX_MAP) is special]:
                    saver.put_writes(place.config, chosen, task_id, path)
    except FAULTS as error:
        raise StorageError(f"its checkpoint {place.checkpoint_id} cannot be stored there ({error})") from error


def digest_of(value: Any, serde: SerializerProtocol) -> bytes:
    """Return a hash that does not tell by which database a value was stored.

    The keys of an object come in any order, and a number is a number: `jsonb` gives `1e+20` back as an integer.
    """
    return hashlib.sha256(_written(value, serde)).digest()


def _written(value: Any, serde: SerializerProtocol) -> bytes:
    if isinstance(value, dict):
        pairs = sorted(digest_of(key, serde) + digest_of(item, serde) for key, item in value.items())
        return b"d" + b"".join(pairs)
    if isinstance(value, list | tuple):
        return b"l" + b"".join(digest_of(item, serde) for item in value)
    if isinstance(value, set | frozenset):
        return b"s" + b"".join(sorted(digest_of(item, serde) for item in value))
    if type(value) is float and value.is_integer():
        # By its digits, as `jsonb` has them, and not by its bits.
        value = int(Decimal(repr(value)))
    if value is None or type(value) in (bool, int, float):
        return b"n" + repr(value).encode()
    if type(value) is str:
        return b"t" + value.encode("utf-8", "surrogatepass")
    kind, blob = serde.dumps_typed(value)
    return b"o" + kind.encode() + b"\x00" + blob
