"""When a thread is pruned: its checkpoints after every sixteenth run, its ledger after every sixty-fourth.

Each guarded graph counts its own runs, and the first one on a thread counts as due; in between, what is kept grows by
a turn a run. `kept_checkpoints` says what stays.
"""

import logging
from collections import Counter
from collections.abc import Mapping

from everthread.errors import StorageError
from everthread.ledger import retention
from everthread.state import Context
from everthread.storage.call_records import prune_calls
from everthread.storage.kept_checkpoints import OTHER_GRAPH, OURS, OWN_GRAPH
from everthread.storage.open import Storage
from everthread.storage.reading import turns_of
from everthread.storage.summaries import prune_summaries

logger = logging.getLogger(__name__)

RUNS_BETWEEN = 16
"""Runs of a thread from one look at it to the next; meanwhile the checkpoints of fifteen more turns are kept."""

_MOST_COUNTED = 100_000
"""Threads whose runs are counted; a server that has met more begins anew, and each counts as due once more."""

_DIAL = "keep_checkpoints"
_ALL = 0
"""Stands for None in metadata, which LangGraph would leave out."""


def edit_metadata(*, is_own: bool) -> dict[str, int]:
    """Return what the checkpoint of an edit says of itself: that it came through a guard, around our graph or not."""
    return {OURS: OWN_GRAPH if is_own else OTHER_GRAPH}


def dial_metadata(keep: int | None, *, is_own: bool) -> dict[str, int]:
    """Return what the checkpoints of a run say of themselves: that Everthread wrote them, and the run's dial.

    Args:
        keep: turns whose checkpoints stay; None keeps all.
        is_own: the graph is ours, and not anybody's under a guard.
    """
    return {
        **edit_metadata(is_own=is_own),
        **({} if keep == Context.keep_checkpoints else {_DIAL: _ALL if keep is None else keep}),
    }


def dial_of(metadata: Mapping[str, object]) -> int | None:
    """Return the dial that a run had, by the metadata of its checkpoints; None keeps every checkpoint."""
    dial = metadata.get(_DIAL, Context.keep_checkpoints)
    return dial if isinstance(dial, int) and dial != _ALL else None


class Pruner:
    """Prunes the threads of a storage, counting their runs."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._runs = Counter[tuple[str, int | None]]()

    def after_run(self, thread_id: str, keep: int | None, keep_events: int | None) -> None:
        """Prune a thread whose lock the caller holds, when it is due; the reply is saved, so no failure is raised.

        Args:
            thread_id: a thread that has just been run.
            keep: turns whose checkpoints stay; None keeps all.
            keep_events: turns whose events stay; None keeps all.
        """
        runs = self._runs[thread_id, keep]
        if not runs and len(self._runs) >= _MOST_COUNTED:
            self._runs.clear()
        self._runs[thread_id, keep] += 1
        try:
            if keep is not None and runs % RUNS_BETWEEN == 0:
                self._storage.checkpointer.prune_turns(thread_id, keep)
                # Until the next pruning, the checkpoints of so many more turns stay.
                travelable = keep + 2 * RUNS_BETWEEN
                prune_summaries(self._storage.store, thread_id, travelable)
                prune_calls(self._storage.store, thread_id, travelable)
            if keep_events is not None and runs % retention.RUNS_BETWEEN == 0:
                turns = turns_of(self._storage.store, thread_id)
                retention.prune(self._storage.store, thread_id, turns - keep_events)
        except StorageError as error:
            logger.warning("could not prune thread %r: %s", thread_id, error)
