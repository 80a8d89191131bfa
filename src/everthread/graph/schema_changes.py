"""State keys of an agent that changed since a thread was last run: migrated, or kept until an agent has them again.

LangGraph drops what a graph has no key for at the next checkpoint. So a run of our own graph looks first: values of
such keys go to the store, those that it has again come back, and the agent's migrations are applied to all of them.
Whether there is anything to do is in the metadata of the checkpoint, so that as a rule nothing is read.
"""

import base64
import hashlib
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, cast, get_type_hints

import orjson
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.store.base import PutOp

from everthread.errors import SettingsError
from everthread.graph.inputs import AnyGraph
from everthread.ledger.events import Migrated
from everthread.ledger.record import record
from everthread.nodes.deps import NodeDeps
from everthread.state import Agent, State, namespaces
from everthread.state.records import StoredItem, items
from everthread.storage.adoption import state_keys
from everthread.storage.checkpointer import Checkpointer
from everthread.storage.open import Storage
from everthread.storage.reading import turns_of
from everthread.storage.unreadable import readable

_MARK = "schema"
"""Key in the metadata of checkpoints: version of the agent's state, and a digest of its keys."""

_OURS = frozenset(get_type_hints(State)) | {"structured_response"}
"""Keys that every graph of ours has; the last one is made anew in each turn."""

_ABOUT = frozenset({"name", "at", "version"})
"""Fields of the record of a kept value, beside the value."""

Migration = Callable[[dict[str, Any]], dict[str, Any]]


@dataclass(frozen=True)
class SchemaChange:
    """What a thread's state becomes under the agent of today."""

    values: Mapping[str, Any]
    """What the graph has a key for, by key."""
    kept: Mapping[str, Mapping[str, Any]]
    """What it has no key for, as the store keeps it."""
    restored: Sequence[str]
    """Keys that it has again, and whose values were kept."""
    is_changed: bool
    """Whether the checkpoint has other keys or values."""


class StateSchema:
    """The state keys of a graph of ours beside our own, and how older states become such."""

    def __init__(self, graph: AnyGraph) -> None:
        deps = getattr(graph.builder, "deps", None)
        agent: Agent | None = deps.agent if isinstance(deps, NodeDeps) else None
        names = (name for name in graph.channels if ":" not in name and not name.startswith("__"))
        self.keys = frozenset(names) - _OURS
        self.migrations: tuple[Migration, ...] = tuple(agent.migrations) if agent else ()
        digest = hashlib.sha256("\x00".join(sorted(self.keys)).encode()).hexdigest()[:8]
        self.metadata = {_MARK: f"{len(self.migrations)}.{digest}"}
        """What checkpoints of this graph say of their state."""
        self.checkpointer = cast(Checkpointer, graph.checkpointer)
        """Knows the types of the state."""

    def is_of(self, metadata: Mapping[str, Any] | None) -> bool:
        """Tell whether a checkpoint has a state of this schema; one that does not exist yet has any."""
        return metadata is None or metadata.get(_MARK) == self.metadata[_MARK]

    def is_older_than(self, metadata: Mapping[str, Any]) -> bool:
        """Tell whether a checkpoint has been through migrations that this agent does not have."""
        return _version(metadata) > len(self.migrations)

    def change(self, storage: Storage, saved: CheckpointTuple) -> SchemaChange:
        """Find out what the state of a checkpoint becomes; nothing is written.

        Raises:
            SettingsError: a newer version of the agent has run the thread, or a migration failed.
        """
        thread_id = str(saved.config["configurable"]["thread_id"])
        version = _version(saved.metadata)
        if self.is_older_than(saved.metadata):
            raise SettingsError(
                f"thread {thread_id!r} has the state of version {version} of its agent, and this one is version "
                f"{len(self.migrations)}; it was left as it is, run it with the newer agent"
            )
        serde = self.checkpointer.serde
        before = {name: saved.checkpoint["channel_values"][name] for name in _own_keys(saved)}
        records = _kept_for(storage, saved)
        not_in_state = (item for name, item in records.items() if name not in before)
        held = dict(readable(not_in_state, lambda item: (_name(item), _loaded(serde, item.value))))
        # A migration may change a list in place, and what it was is still to be compared with.
        after = deepcopy({**held, **before})
        for place, migrate in enumerate(self.migrations[version:], version):
            after = _migrated(migrate, after, f"migration {place} → {place + 1} of thread {thread_id!r}", serde)
        # Of a type that this graph does not know, a value may have been read as plain data.
        verbatim = self.checkpointer.verbatim()
        copied = verbatim.get_tuple(saved.config) if after.keys() - self.keys else None
        kept: dict[str, Mapping[str, Any]] = {}
        for name in after.keys() - self.keys:
            known = records[name].value if name in records else {}
            if name in held and after[name] == held[name]:
                stored = {part: known[part] for part in known.keys() - _ABOUT}
            elif copied is not None and name in before and after[name] == before[name]:
                stored = _stored(verbatim.serde, copied.checkpoint["channel_values"][name])
            else:
                stored = _stored(serde, after[name])
            # A value that was kept for this version is kept already, also when the state has had it meanwhile.
            is_kept = version == len(self.migrations) and stored.items() <= known.items()
            kept[name] = known if is_kept else stored
        values = {name: value for name, value in after.items() if name in self.keys}
        return SchemaChange(
            values,
            kept,
            sorted(values.keys() & held.keys()),
            # Also where only keys go: a database may find their values again by the versions of their channels.
            values != before,
        )

    def apply(self, storage: Storage, config: RunnableConfig, metadata: Mapping[str, Any] | None) -> bool:
        """Bring a state to this schema before a run goes on from it; return whether the checkpoint was written anew.

        The checkpoint keeps its id, its parent, and what its tasks have written, open approvals included.

        Args:
            storage: of the thread, whose lock is held.
            config: names the thread, and the checkpoint unless it is the newest.
            metadata: of that checkpoint; None when there is none.

        Raises:
            SettingsError: as for `change`; nothing was changed.
        """
        if self.is_of(metadata):
            return False
        saved = self.checkpointer.get_tuple({"configurable": {"checkpoint_ns": "", **config["configurable"]}})
        if saved is None:
            return False
        change = self.change(storage, saved)
        self._keep(storage, saved, change)
        if change.is_changed:
            self._write(saved, change)
        return change.is_changed

    def _keep(self, storage: Storage, saved: CheckpointTuple, change: SchemaChange) -> None:
        (thread_id, here), version = _place(saved), _version(saved.metadata)
        space, about = _space(thread_id), {"at": here, "version": len(self.migrations)}
        # None is ever deleted: other branches, and checkpoints in between, may have their values from there.
        records = [{"name": name, **about, **record} for name, record in change.kept.items()]
        writes = [PutOp(space, "{at}/{version}/{name}".format(**one), one, index=False) for one in records]
        if not (change.kept or change.restored or version < len(self.migrations)):
            storage.store.batch(writes)
            return
        event = Migrated(
            from_version=version,
            to_version=len(self.migrations),
            kept=sorted(change.kept),
            restored=list(change.restored),
        )
        record(storage.store, thread_id, [event], turn=turns_of(storage.store, thread_id), operations=writes)

    def _write(self, saved: CheckpointTuple, change: SchemaChange) -> None:
        """Write a checkpoint anew with the values of a change."""
        checkpointer, checkpoint, before = self.checkpointer, saved.checkpoint, _own_keys(saved)
        others = {name: value for name, value in checkpoint["channel_values"].items() if name not in before}
        versions = {
            name: version
            for name, version in checkpoint["channel_versions"].items()
            if name not in before or name in change.values
        }
        # A database may keep a value by the version of its channel, so another value needs another version.
        version = checkpointer.get_next_version(max(versions.values(), default=None), None)
        new = dict.fromkeys(change.values, version)
        parent = (saved.parent_config or {"configurable": {}})["configurable"].get("checkpoint_id")
        config: RunnableConfig = {"configurable": {**saved.config["configurable"], "checkpoint_id": parent}}
        values = {**others, **change.values}
        checkpoint = {**checkpoint, "channel_values": values, "channel_versions": {**versions, **new}}
        checkpointer.put(config, checkpoint, {**saved.metadata, **self.metadata}, new)  # type: ignore[typeddict-item]


def _space(thread_id: str) -> namespaces.Namespace:
    """Namespace of the values that no key of the state holds, by the checkpoint that had them, version and key."""
    return namespaces.thread(thread_id, "state")


def _place(saved: CheckpointTuple) -> tuple[str, str]:
    """Return the thread and the id of a checkpoint."""
    configurable = saved.config["configurable"]
    return str(configurable["thread_id"]), str(configurable["checkpoint_id"])


def _kept_for(storage: Storage, saved: CheckpointTuple) -> dict[str, StoredItem]:
    """Return the records for a checkpoint, by state key: the newest of its version, but those on other branches."""
    (thread_id, here), version = _place(saved), _version(saved.metadata)
    every = items(storage.store, _space(thread_id))
    if not every:
        return {}
    history = storage.database.read(storage.checkpointer.rows.history, thread_id, "")
    branch, name = set[str](), here
    while name in history and name not in branch:
        branch.add(name)
        name = history[name].parent or ""
    # What a pruned checkpoint had may be of any branch, and is not lost.
    own = (one for one in every if _at(one) in branch or (_at(one) < here and _at(one) not in history))
    # What an earlier version had is migrated by now, or was left out.
    return {_name(one): one for one in sorted(own, key=_at) if one.value.get("version", version) == version}


def _at(item: StoredItem) -> str:
    """Return the id of the checkpoint whose value it is; empty for a record from before that was kept."""
    return str(item.value.get("at") or "")


def _name(item: StoredItem) -> str:
    """Return the state key whose value it is."""
    return str(item.value.get("name") or item.key)


def _version(metadata: Mapping[str, Any]) -> int:
    """Return how many migrations the state of a checkpoint has been through."""
    return int(str(metadata.get(_MARK) or "0").partition(".")[0])


def _own_keys(saved: CheckpointTuple) -> list[str]:
    """Return the keys of a state that have a value and are not ours."""
    return [name for name in state_keys(saved) if name not in _OURS]


def _stored(serde: SerializerProtocol, value: Any) -> dict[str, Any]:
    """Return a value as a record: as JSON where that says the same, else as the checkpoint had it."""
    try:
        if orjson.loads(orjson.dumps(value)) == value:
            return {"value": value}
    except (TypeError, ValueError):
        pass
    kind, blob = serde.dumps_typed(value)
    return {"kind": kind, "bytes": base64.b64encode(blob).decode()}


def _loaded(serde: SerializerProtocol, kept: Mapping[str, Any]) -> Any:
    """Return the value of a record that `_stored` made."""
    return kept["value"] if "value" in kept else serde.loads_typed((kept["kind"], base64.b64decode(kept["bytes"])))


def _migrated(migrate: Migration, values: Mapping[str, Any], name: str, serde: SerializerProtocol) -> dict[str, Any]:
    try:
        after = migrate(dict(values))
    except Exception as error:
        raise SettingsError(f"{name} failed, and nothing was changed: {type(error).__name__}: {error}") from error
    if not isinstance(after, dict):
        raise SettingsError(f"{name} must return the state as a dict, got {type(after).__name__}; nothing was changed")
    for key, value in after.items():
        if not isinstance(key, str) or key in _OURS:
            raise SettingsError(f"{name} returned {key!r}, which is no state key of your own; nothing was changed")
        try:
            serde.dumps_typed(value)
        except (TypeError, ValueError) as error:
            raise SettingsError(
                f"{name} returned {key!r} with a value that cannot be saved ({error}); nothing was changed"
            ) from error
    return after
