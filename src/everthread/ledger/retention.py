"""Retention: which events of a ledger go.

Events about notes stay as long as the thread: a session must not learn again what was deleted since, and
`why` answers for notes years later. All others go with their turn, and so do the names of what left. The texts of
prompts go once no recipe that stays can name them.
"""

from langgraph.store.base import BaseStore, PutOp, SearchItem

from everthread.ledger.recipes import RENEWED_AFTER, WHOLE_EVERY
from everthread.state import namespaces
from everthread.state.records import matching

RUNS_BETWEEN = 64
"""Runs of a thread from one look at its ledger to the next; so many more turns may be kept meanwhile."""

KEPT_KINDS = (
    "note_saved",
    "note_blocked",
    "note_merged",
    "note_superseded",
    "note_promoted",
    "note_expired",
    "note_changed",
    "steered",
    "consolidated",
    "erased",
    "migrated",
    "regret",
)
"""Kinds that stay: few, and nothing else tells the same."""


def prune(store: BaseStore, thread_id: str, through_turn: int) -> int:
    """Delete what is `outdated`, and return how many records went."""
    gone = [PutOp(one.namespace, one.key, None) for one in outdated(store, thread_id, through_turn)]
    if gone:
        store.batch(gone)
    return len(gone)


def outdated(store: BaseStore, thread_id: str, through_turn: int) -> list[SearchItem]:
    """Return the events of a turn and of all before it, and what only they have names for.

    Args:
        through_turn: newest turn that goes; none does when it is 0 or less.
    """
    if through_turn <= 0:
        return []
    spaces = {
        namespaces.ledger(thread_id): through_turn,
        namespaces.thread(thread_id, "left"): through_turn,
        namespaces.prompts(thread_id): through_turn - RENEWED_AFTER - WHOLE_EVERY,
    }
    return [
        one
        for namespace, newest in spaces.items()
        for one in matching(store, namespace, {"turn": {"$lte": newest}})
        if one.value.get("event") not in KEPT_KINDS
    ]
