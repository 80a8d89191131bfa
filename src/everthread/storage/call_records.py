"""Records of model calls: which of them go; `nodes.thread_view` writes them."""

from langgraph.store.base import BaseStore, PutOp

from everthread.state import namespaces
from everthread.state.places import Record

UNGUARDED_TURNS = 256
"""Newest turns whose records stay where no guard prunes them together with the checkpoints."""

TURNS_BETWEEN = 64
"""Turns from one look at the records of such a thread to the next."""

_MOST = 100_000
"""Records that are looked at in one pruning."""


def prune_calls(store: BaseStore, thread_id: str, keep_turns: int) -> int:
    """Delete all records of model calls but those of the newest turns, and what was recalled for none of these.

    A fork from an older checkpoint goes on without one: from the messages of its state and the transcript.

    Args:
        keep_turns: turns that stay, on whatever branch; at least 1.

    Returns:
        Entries that went.
    """
    namespace = namespaces.calls(thread_id)
    entries = {item.key: item.value for item in store.search(namespace, limit=_MOST)}
    records = {name: value for name, value in entries.items() if "places" in value}
    kept: dict[str, Record] = {}
    turn, left = None, keep_turns
    for name in sorted(records, key=lambda name: str(records[name]["places"][-1][2]), reverse=True):
        left -= records[name].get("turns") != turn
        turn = records[name].get("turns")
        if left < 0:
            break
        kept[name] = records[name]
    shown = {block for record in kept.values() for block in record["shows"]}
    gone = [PutOp(namespace, name, None) for name in entries if name not in kept and name not in shown]
    if gone:
        store.batch(gone)
    return len(gone)


def prune_unguarded_calls(store: BaseStore, thread_id: str, turns: int) -> None:
    """Bound the records of a thread that no guard prunes, every so many turns; `turns` is how many it has had."""
    if turns % TURNS_BETWEEN == 0:
        prune_calls(store, thread_id, UNGUARDED_TURNS)
