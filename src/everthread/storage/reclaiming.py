"""Give the file's free space back: prune every thread, then rewrite the file without its free pages.

Pruning leaves free pages that later turns use again, so a file stays as big as it ever was. That is
what a file in use should do; this is for one that grew once and should be small again.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from langgraph.store.base import PutOp

from everthread.state import namespaces
from everthread.state.records import items
from everthread.storage.kept_checkpoints import OWN_GRAPH
from everthread.storage.open import Storage
from everthread.storage.pruning import dial_of

_MOST_SUMMARIES = 100_000

Progress = Callable[[str, int, int], None]
"""Hears a step, how much of it is done, and how much there is."""


@dataclass(frozen=True)
class Reclaimed:
    """What a database was before and after."""

    bytes_before: int
    """Size of the file and its log, or of the schema's tables and indexes."""
    bytes_after: int
    threads: int
    """Threads that were looked at."""
    checkpoints: int
    """Pruned checkpoints."""
    summaries: int
    """Summaries that no checkpoint names any more."""
    unpruned: int
    """Threads that keep every checkpoint, because their runs or the caller said so."""


def reclaim(
    storage: Storage, keep: int | Literal["all", "as run"], progress: Progress, *, adopted: bool = False
) -> Reclaimed:
    """Prune every thread of ours and rewrite the file, or vacuum the tables.

    Args:
        storage: on a file or on Postgres, opened with a lock timeout of 0.
        keep: turns of each thread that stay travelable; `as run` keeps what each thread was last run with.
        progress: called at each step.
        adopted: in threads of other graphs on which a guard or our middleware has run, what their app wrote goes too.

    Raises:
        SettingsError: the database is in memory.
        ThreadBusyError: a run is going on; nothing was changed but what was pruned until then.
    """
    space = storage.eraser
    before = space.size()
    # Those that our graph has run; other graphs may use the same file.
    threads = [item.key for item in items(storage.store, namespaces.SESSIONS)]
    done = Counter[str]()
    space.check_idle(storage.locks)
    for place, thread_id in enumerate(threads):
        progress("pruning", place, len(threads))
        dial = dial_of(storage.checkpointer.last_run(thread_id)) if keep == "as run" else keep
        if dial is None or dial == "all":
            done["unpruned"] += 1
            continue
        with storage.locks.hold(thread_id):
            # An edit of a thread of ours that went past the guard is no other app's.
            is_adopted = adopted and storage.checkpointer.last_writer(thread_id) != OWN_GRAPH
            done["checkpoints"] += storage.checkpointer.prune_turns(thread_id, dial, adopted=is_adopted)
            done["summaries"] += _prune_unnamed_summaries(storage, thread_id)
    space.check_idle(storage.locks)
    progress(space.reclaiming, 0, 1)
    space.reclaim()
    progress(space.reclaiming, 1, 1)
    return Reclaimed(before, space.size(), len(threads), done["checkpoints"], done["summaries"], done["unpruned"])


def _prune_unnamed_summaries(storage: Storage, thread_id: str) -> int:
    """Delete the summaries that are older than any a checkpoint names: versions only grow on a branch."""
    saved = storage.checkpointer.list({"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}})
    oldest = min((str(one.checkpoint["channel_values"].get("summary_id") or "") for one in saved), default="")
    space = namespaces.summaries(thread_id)
    gone = [one.key for one in storage.store.search(space, limit=_MOST_SUMMARIES) if one.key < oldest]
    storage.store.batch([PutOp(space, key, None) for key in gone])
    return len(gone)
