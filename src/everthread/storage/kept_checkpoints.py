"""Which checkpoints of a thread stay when it is pruned: a decision on ids and metadata, the same for every database.

A delta channel is not in every checkpoint. It is read from the writes of the checkpoint's ancestors, back to one that
holds a snapshot of it; `counters_since_delta_snapshot` in a checkpoint's metadata names the channels that are not in
it. So an ancestor stays for as long as something needs it, and nothing that stays is ever rewritten.

`pruning` says when a thread is pruned, the checkpointer deletes.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

OURS = "everthread"
"""Key in the metadata of the checkpoints that runs of a guarded graph wrote; no others are pruned by turns."""

OWN_GRAPH, OTHER_GRAPH = 1, 2
"""Values of that key: the graph that ran is `pipeline`'s, or anybody's. Earlier versions wrote 1 for both."""


@dataclass(frozen=True)
class CheckpointNode:
    """One checkpoint of a thread's history."""

    parent: str | None
    metadata: Mapping[str, Any]

    @property
    def channels_elsewhere(self) -> frozenset[str]:
        """The channels that it does not hold: they are read from its ancestors."""
        return frozenset(self.metadata.get("counters_since_delta_snapshot") or ())


def ancestors(history: Mapping[str, CheckpointNode], checkpoint_id: str) -> Iterator[str]:
    """Yield the checkpoints that one descends from, its parent first."""
    seen = {checkpoint_id}
    at = history[checkpoint_id].parent
    while at is not None and at in history and at not in seen:
        yield at
        seen.add(at)
        at = history[at].parent


def begins_turn(history: Mapping[str, CheckpointNode], checkpoint_id: str) -> bool:
    """Tell whether a run of an input begins with a checkpoint.

    With `durability="exit"` a run saves its end only, so the steps since the checkpoint before it are missing. They are
    in a copy of a checkpoint too, whose parent is that of the original.
    """
    metadata = history[checkpoint_id].metadata
    before = history.get(history[checkpoint_id].parent or "")
    return metadata.get("source") == "input" or (
        metadata.get("source") == "loop"
        and before is not None
        and int(metadata.get("step", 0)) > int(before.metadata.get("step", 0)) + 1
    )


def needed(history: Mapping[str, CheckpointNode], wanted: Iterable[str]) -> set[str]:
    """Return these checkpoints, and all that they are read from.

    Args:
        history: the checkpoints of one namespace by id.
        wanted: ids of some of them.
    """
    kept: set[str] = set()
    reached: dict[str, frozenset[str]] = {}
    for checkpoint_id in wanted:
        kept.add(checkpoint_id)
        sought = history[checkpoint_id].channels_elsewhere
        for at in ancestors(history, checkpoint_id):
            if sought <= reached.get(at, frozenset()):
                break
            kept.add(at)
            reached[at] = reached.get(at, frozenset()) | sought
            sought &= history[at].channels_elsewhere
    return kept


def of_newest_turns(history: Mapping[str, CheckpointNode], keep_turns: int, *, adopted: bool = False) -> set[str]:
    """Return the checkpoints that stay: those of the newest turns, and what they are read from.

    The end of the turn before them stays too, to go on from there, and so does every younger checkpoint on another
    branch. What Everthread did not write stays too, with what it is read from.

    Args:
        history: the checkpoints of the root namespace by id, oldest first.
        keep_turns: turns of the newest branch, at least 1.
        adopted: what Everthread did not write goes like everything else.
    """
    newest = max(history, default=None)
    if newest is None:
        return set()
    young, left, cut = {newest}, keep_turns - begins_turn(history, newest), newest
    for at in ancestors(history, newest):
        young.add(at)
        if not left:
            cut = at
            break
        left -= begins_turn(history, at)
    else:
        return set(history)
    young.update(checkpoint_id for checkpoint_id in history if checkpoint_id > cut)
    foreign = [] if adopted else [name for name, node in history.items() if OURS not in node.metadata]
    return needed(history, [*young, *foreign])


def subgraphs_of(gone: Collection[str], namespaces: Iterable[tuple[str, Mapping[str, Any]]]) -> list[str]:
    """Return the namespaces of subgraphs that ran for checkpoints which go.

    Only those of a task: a namespace without a task id belongs to a subgraph that keeps its own memory.

    Args:
        gone: ids of checkpoints in the root namespace.
        namespaces: each with the metadata of one of its checkpoints.
    """
    return [
        name
        for name, metadata in namespaces
        if ":" in name.partition("|")[0] and (metadata.get("parents") or {}).get("") in gone
    ]
