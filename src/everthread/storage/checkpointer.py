"""The checkpointer: LangGraph's own saver of a database with whole transactions, async methods and pruning.

What differs between databases is in their `CheckpointRows`.
"""

import copy
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import ormsgpack
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    get_checkpoint_id,
)
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from everthread.errors import SettingsError, StorageError, UnreadableError
from everthread.state import PromptPlan, namespaces
from everthread.state.scrubbing import scrub
from everthread.storage.blocked_types import blocked_types
from everthread.storage.checkpoint_rows import CheckpointRows, Head
from everthread.storage.database import Database
from everthread.storage.kept_checkpoints import OURS, OWN_GRAPH, needed, of_newest_turns, subgraphs_of
from everthread.storage.store import SearchStore
from everthread.storage.unreadable import FAULTS, described, leave_out
from everthread.storage.worker import Worker

P = ParamSpec("P")
T = TypeVar("T")

_ANSWER = "structured_response"
"""Key of `create_agent` whose type no state schema names, and that each turn makes anew."""

_BATCH = 1_000
"""Checkpoints that are deleted in one transaction, so that a long thread keeps no writer waiting."""


def _on_worker(
    method: Callable[Concatenate["Checkpointer", P], T],
) -> Callable[Concatenate["Checkpointer", P], Coroutine[Any, Any, T]]:
    """Return the async flavour of a method, a subclass's own too; it does not block the event loop."""

    @wraps(method)
    async def call(self: "Checkpointer", /, *args: P.args, **kwargs: P.kwargs) -> T:
        work: Callable[P, T] = getattr(self, method.__name__)
        return await self._worker.call(work, *args, **kwargs)

    return call


class Checkpointer(BaseCheckpointSaver[Any]):
    """A saver for `invoke` and `ainvoke`: each call is one transaction, or none; async calls hop once.

    The exception of a task that failed is saved as text without keys, tokens and passwords.

    Args:
        database: to save in; its tables are there.
        rows: of the same database.
        worker: answers async calls.
        store: of the same database; says whose the threads are.
        allowed_types: classes of an app's own whose values are decoded as such.
    """

    def __init__(
        self,
        database: Database,
        rows: CheckpointRows,
        worker: Worker,
        store: SearchStore,
        allowed_types: Sequence[type] = (),
    ) -> None:
        super().__init__(serde=serializer().with_msgpack_allowlist(allowed_types))
        self.database = database
        self.rows = rows
        self._worker = worker
        self._store = store
        self._is_lenient = False

    def lenient(self) -> "Checkpointer":
        """Return one to read with: values of an app's own types come as plain ones, and run no code."""
        clone = copy.copy(self)
        clone.serde, clone._is_lenient = serializer(), True
        return clone

    def verbatim(self) -> "Checkpointer":
        """Return one to copy values with, by its `serde`: objects come as they are stored, whatever their types."""
        clone = copy.copy(self)
        clone.serde, clone._is_lenient = _Verbatim(), True
        return clone

    def get_next_version(self, current: Any, channel: None) -> Any:
        """Return the version of a channel after this one; see LangGraph's saver."""
        return self.rows.next_version(current)

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return a checkpoint; see LangGraph's saver.

        Raises:
            UnreadableError: it cannot be read.
            StorageError: it is another graph's, which would save a value again as plain data; see `allowed_types`.
        """
        with self._naming(config), blocked_types() as blocked:
            found = self.database.read(lambda: self._saver.get_tuple(config))
            if found is not None:
                _check(found)
        if blocked and not self._is_lenient and found is not None and found.metadata.get(OURS) != OWN_GRAPH:
            _refuse_plain_data(found, blocked)
        return found

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """List checkpoints, newest first; they are read at once, since a caller may take its time.

        Those that cannot be read are left out with a warning.
        """
        try:
            found = self.database.read(lambda: [*self._saver.list(config, filter=filter, before=before, limit=limit)])
            for one in found:
                _check(one)
        except (StorageError, *FAULTS):
            places = self.database.read(self._places, config, before)
            found = [one for one in map(self._readable, places) if one is not None and _has(one, filter)][:limit]
        yield from found

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Save a checkpoint; see LangGraph's saver."""
        # On Postgres a value may be saved ahead of its checkpoint; nothing refers to one whose checkpoint never came.
        return self.database.write_one(lambda: self._saver.put(config, checkpoint, metadata, new_versions))

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Save what a task wrote; see LangGraph's saver."""
        # LangGraph keeps untracked values out of every save but that of a cut-off run with durability `exit`.
        clean = [
            (channel, scrub(repr(value)) if isinstance(value, BaseException) else value)
            for channel, value in writes
            if not isinstance(value, PromptPlan)
        ]
        self.database.write_one(lambda: self._saver.put_writes(config, clean, task_id, task_path))

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Return what channels are made of again; see LangGraph's saver.

        Raises:
            UnreadableError: a checkpoint or a write on the way cannot be read.
        """
        with self._naming(config):
            return self.database.read(lambda: self._saver.get_delta_channel_history(config=config, channels=channels))

    def delete_thread(self, thread_id: str) -> None:
        """Delete the checkpoints of a thread; its records in the store stay, see `erasure` for those."""
        self.database.write(lambda: self._saver.delete_thread(thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints of runs, by the `run_id` in their metadata.

        Raises:
            SettingsError: one text stands for the list of runs.
            StorageError: later checkpoints are read from them; nothing was deleted.
        """
        self.database.write(self._delete_for_runs, _several("run_ids", run_ids))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy all checkpoints of a thread, pending approvals included; the copy belongs to the same user.

        Of its records in the store only the session's is copied, and not the messages that left its prompt.

        Raises:
            SettingsError: the target is a thread already.
        """
        # LangGraph takes numbers for ids too; the session's record is found under the text alone.
        self.database.write(self._copy_thread, str(source_thread_id), str(target_thread_id))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Prune threads; see LangGraph's `BaseCheckpointSaver`.

        Args:
            strategy: `keep_latest` keeps the newest checkpoint of each namespace, with what it is read from;
                `delete` keeps none.

        Raises:
            SettingsError: there is no such strategy, or one text stands for the list of threads.
        """
        if strategy not in ("keep_latest", "delete"):
            raise SettingsError(f"`strategy` is {strategy!r}; use `keep_latest` or `delete`")
        for thread_id in _several("thread_ids", thread_ids):
            if strategy == "delete":
                self.delete_thread(thread_id)
            else:
                self._keep_latest(thread_id)

    def prune_turns(self, thread_id: str, keep_turns: int, *, adopted: bool = False) -> int:
        """Delete what the newest turns of a thread do not need; see `kept_checkpoints.of_newest_turns`.

        Reads a few hundred rows of metadata, so it is for every some turns and not for each.

        Args:
            thread_id: the thread, whose lock the caller holds.
            keep_turns: turns of the newest branch that stay travelable, at least 1.
            adopted: checkpoints that another app wrote go too.

        Returns:
            Checkpoints that went.
        """
        history = self.database.read(self.rows.history, thread_id, "")
        gone = history.keys() - of_newest_turns(history, keep_turns, adopted=adopted)
        if gone:
            self._delete(thread_id, "", gone, self.database.read(self.rows.namespaces, thread_id))
        return len(gone)

    def last_run(self, thread_id: str) -> Mapping[str, Any]:
        """Return the metadata that the newest run of a thread left; empty for a thread without runs."""
        return self.database.read(self.rows.last_run, thread_id)

    def head(self, thread_id: str) -> Head | None:
        """Return the newest checkpoint of a thread without its state; None when there is none."""
        return self.database.read(self.rows.head, thread_id)

    def last_writer(self, thread_id: str) -> int | None:
        """Return which graph wrote the newest checkpoint of a thread; see `Tables`."""
        return self.database.read(self.rows.tables.last_writer, thread_id)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Do what `list` does without blocking the event loop."""
        for one in await self._worker.call(lambda: [*self.list(config, filter=filter, before=before, limit=limit)]):
            yield one

    aget_tuple = _on_worker(get_tuple)
    aput = _on_worker(put)
    aput_writes = _on_worker(put_writes)
    aget_delta_channel_history = _on_worker(get_delta_channel_history)
    adelete_thread = _on_worker(delete_thread)
    adelete_for_runs = _on_worker(delete_for_runs)
    acopy_thread = _on_worker(copy_thread)
    aprune = _on_worker(prune)

    @property
    def _saver(self) -> BaseCheckpointSaver[Any]:
        """LangGraph's saver with the types that this one decodes."""
        return self.rows.saver(self.serde)

    @contextmanager
    def _naming(self, config: RunnableConfig) -> Iterator[None]:
        """Name the rows of a thread that cannot be read, once something could not."""
        try:
            yield
        except (StorageError, *FAULTS) as error:
            # SQLite's own words for a text that is no UTF-8.
            if isinstance(error, StorageError) and "decode to UTF-8" not in str(error):
                raise
            thread_id = str(config["configurable"]["thread_id"])
            rows = self.database.read(lambda: [*self.rows.tables.unreadable(thread_id)])
            more = f" and {len(rows) - 1} more" if rows[1:] else ""
            raise described(f"{rows[0]}{more}" if rows else f"thread {thread_id!r}", error) from error

    def _places(self, config: RunnableConfig | None, before: RunnableConfig | None) -> Sequence[dict[str, str]]:
        """Return where the checkpoints are that `list` was asked for, the newest first."""
        wanted = {} if config is None else config["configurable"]
        last = None if before is None else get_checkpoint_id(before)
        names = ("thread_id", "checkpoint_ns", "checkpoint_id")
        every = (dict(zip(names, row, strict=True)) for row in self.rows.every())
        return [
            place
            for place in every
            if all(str(wanted[name]) == place[name] for name in names if wanted.get(name) is not None)
            and (last is None or place["checkpoint_id"] < last)
        ]

    def _readable(self, place: dict[str, str]) -> CheckpointTuple | None:
        try:
            return self.get_tuple({"configurable": place})
        except UnreadableError as error:
            leave_out("", error)
            return None

    def _delete_for_runs(self, run_ids: Sequence[str]) -> None:
        doomed: dict[tuple[str, str], set[str]] = {}
        for thread_id, namespace, checkpoint_id in self.rows.of_runs([*map(str, run_ids)]):
            doomed.setdefault((thread_id, namespace), set()).add(checkpoint_id)
        for (thread_id, namespace), gone in doomed.items():
            history = self.rows.history(thread_id, namespace)
            if needed(history, history.keys() - gone) & gone:
                raise StorageError(
                    f"runs of thread {thread_id!r} cannot be deleted, because later checkpoints are read from what "
                    "they wrote; nothing was deleted, prune or delete the whole thread instead"
                )
            self.rows.delete(thread_id, namespace, sorted(gone))

    def _copy_thread(self, source: str, target: str) -> None:
        sessions = ".".join(namespaces.SESSIONS)
        records = self._store.stored_at([(sessions, source), (sessions, target)])
        if (sessions, target) in records or self.rows.namespaces(target):
            raise SettingsError(f"there is a thread {target!r} already; copy to one that is new")
        self.rows.copy(source, target)
        if record := records.get((sessions, source)):
            value = {**(record.value or {}), "thread_id": target}
            self._store.restore([record._replace(key=target, value=value)])

    def _keep_latest(self, thread_id: str) -> None:
        for namespace, _ in self.database.read(self.rows.namespaces, thread_id):
            history = self.database.read(self.rows.history, thread_id, namespace)
            self._delete(thread_id, namespace, history.keys() - needed(history, [next(reversed(history))]))

    def _delete(
        self, thread_id: str, namespace: str, gone: set[str], others: Sequence[tuple[str, Mapping[str, Any]]] = ()
    ) -> None:
        """Delete checkpoints, the oldest first, and what subgraphs saved for them.

        Args:
            gone: their ids.
            others: namespaces of subgraphs, as `subgraphs_of` takes them.
        """
        ordered = sorted(gone)
        for start in range(0, len(ordered), _BATCH):
            batch = ordered[start : start + _BATCH]
            self.database.write(self._delete_batch, thread_id, namespace, batch, subgraphs_of(set(batch), others))

    def _delete_batch(self, thread_id: str, namespace: str, gone: Sequence[str], subgraphs: Sequence[str]) -> None:
        self.rows.delete(thread_id, namespace, gone)
        for subgraph in subgraphs:
            self.rows.delete_namespace(thread_id, subgraph)


class _Verbatim:
    """Reads and writes MessagePack without making objects of it."""

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        kind, blob = data
        if kind != "msgpack":
            return serializer().loads_typed(data)
        return ormsgpack.unpackb(blob, ext_hook=ormsgpack.Ext, option=ormsgpack.OPT_NON_STR_KEYS)

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        return "msgpack", ormsgpack.packb(obj, option=ormsgpack.OPT_NON_STR_KEYS)


def serializer() -> JsonPlusSerializer:
    """Return what decodes checkpoints: with LangGraph's strict list of types, since a crafted row must not run code."""
    return JsonPlusSerializer(allowed_msgpack_modules=None)


def _check(found: CheckpointTuple) -> None:
    """Raise a `TypeError` for what was decoded and is no checkpoint."""
    checkpoint, parts = found.checkpoint, ("channel_values", "channel_versions", "versions_seen")
    if not isinstance(checkpoint, dict) or not all(isinstance(checkpoint.get(part), dict) for part in parts):
        raise TypeError("it holds something other than a checkpoint")
    if not isinstance(found.metadata, dict):
        raise TypeError("its metadata is no JSON object")


def _has(found: CheckpointTuple, filter: Mapping[str, Any] | None) -> bool:
    return all(found.metadata.get(name) == value for name, value in (filter or {}).items())


def _refuse_plain_data(saved: CheckpointTuple, blocked: Sequence[str]) -> None:
    """Refuse a state of another graph of which values have lost their types, other than that of its last answer."""
    written = [channel for _, channel, _ in saved.pending_writes or ()]
    answers = [name for name in (*saved.checkpoint["channel_values"], *written) if name == _ANSWER]
    if len(blocked) > len(answers):
        names = ", ".join(dict.fromkeys(blocked))
        raise StorageError(
            f"the state of thread {saved.config['configurable']['thread_id']!r} has values of the type {names}, which "
            "would be saved again as plain data: guard a graph whose state schema declares it, or pass "
            f"`open_storage(url, allowed_types=[{blocked[0].rpartition('.')[2]}])`"
        )


def _several(name: str, ids: Sequence[str]) -> Sequence[str]:
    """Return ids; of one text each letter would be taken for an id, and nothing be found."""
    if isinstance(ids, str):
        raise SettingsError(f"`{name}` must be a list, such as [{ids!r}]")
    return ids
