"""Begin a thread of ours with the messages of another graph's thread, which stays as it is."""

from langchain_core.runnables import RunnableConfig
from langgraph.store.base import PutOp

from everthread.errors import SettingsError
from everthread.graph.guard import GuardedGraph
from everthread.ledger.record import now
from everthread.nodes.thread_view import thread_messages
from everthread.state import namespaces
from everthread.state.marks import marks
from everthread.storage.adoption import messages_of, state_messages
from everthread.storage.owners import owner_of
from everthread.storage.pruning import edit_metadata
from everthread.storage.said import said_operations
from everthread.window.turns import beginning, opens_turn


def begin_with(graph: GuardedGraph, source: str, target: str, user_id: str) -> int:
    """Begin a new thread of our graph with the messages of another graph's thread.

    Open approvals and other state keys stay where they are; of a call without a result, prompts say that there is none.

    Args:
        graph: made by `build_graph` with a storage.
        source: a thread of another graph in the same database.
        target: the new thread.
        user_id: whose it is.

    Returns:
        The number of its messages.

    Raises:
        NotFoundError: there is no thread `source`.
        SettingsError: `source` is a thread of ours, or of another user, or empty; or there is a thread `target`.
        ThreadBusyError: a run holds one of the threads.
    """
    storage, target = graph.storage, namespaces.checked("thread_id", target)
    namespaces.checked("user_id", user_id)
    config: RunnableConfig = {
        "configurable": {"thread_id": target},
        "metadata": edit_metadata(is_own=True),
    }
    with storage.locks.hold(target):
        here = thread_messages(storage.store, source, state_messages(storage, source))
        messages = messages_of(storage, source, here)
        known = storage.store.get(namespaces.SESSIONS, source)
        owner = owner_of(known.value if known is not None else None, source)
        if owner not in (None, user_id):
            raise SettingsError(f"thread {source!r} belongs to user {owner!r}, not to {user_id!r}; name its own user")
        is_taken = storage.store.get(namespaces.SESSIONS, target) is not None
        if is_taken or graph.graph.get_state(config).metadata is not None:
            raise SettingsError(f"there is a thread {target!r} already; choose another name for the new one")
        turns = sum(map(opens_turn, messages))
        # Behind the last node, so that nothing is left to run.
        graph.graph.update_state(config, {"messages": messages, "turns": turns}, as_node="consolidate")
        at = now()
        session = {
            "thread_id": target,
            "user_id": user_id,
            "agent": graph.name,
            "first_message": beginning(messages),
            "began": marks(messages[0]).get("at") or at,
            "last_activity": marks(messages[-1]).get("at") or at,
            "turns": turns,
            "consolidated_turns": turns,
            "read_turns": turns,
            "shared": None,
        }
        operations = [PutOp(namespaces.SESSIONS, target, session, index=False)]
        kept = graph.graph.get_state(config).values["messages"]
        storage.store.batch([*operations, *said_operations(target, user_id, kept)])
    return len(messages)
