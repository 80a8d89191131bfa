"""Refuse the run of another user where nobody could refuse it earlier: a server applies an input before any node runs.

A graph with a storage has the guard for that. A bare one begins here instead, takes out of the thread what the run put
into it, and fails in the next step, so that the thread is saved as it was.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage
from langgraph.runtime import Runtime

from everthread.nodes.deps import context_of, store_of, thread_of
from everthread.nodes.prompt_plan import checked_session
from everthread.state import Context, State, Update, namespaces
from everthread.state.marks import is_new, is_recalled
from everthread.storage.owners import owner_of


def is_of_another_user(runtime: Runtime[Context]) -> bool:
    """Tell whether the thread belongs to another user; outside of a run, as in `update_state`, nobody can tell."""
    info = runtime.execution_info
    if runtime.store is None or info is None or not namespaces.is_named(info.thread_id):
        return False
    return owner_of(_session(runtime) or None, thread_of(runtime)) not in (None, context_of(runtime).user_id)


def refuse(state: State, runtime: Runtime[Context]) -> Update:
    """Take out what another user's run put into the thread.

    Messages of the owner that no run has taken in yet go too, since nothing tells them from the others: their client
    has had no answer and sends them again.
    """
    foreign = _foreign(state.get("messages", []), _session(runtime))
    return {"messages": [RemoveMessage(id=str(message.id)) for message in foreign], "end_session": False}


def report_refusal(state: State, runtime: Runtime[Context]) -> Update:
    """Fail the run, now that the thread is saved without its input.

    Raises:
        SettingsError: the thread belongs to another user.
    """
    checked_session(store_of(runtime), thread_of(runtime), context_of(runtime))
    return {"end_session": False}


def _session(runtime: Runtime[Context]) -> Mapping[str, Any]:
    item = store_of(runtime).get(namespaces.SESSIONS, thread_of(runtime))
    return item.value if item else {}


def _foreign(messages: Sequence[BaseMessage], session: Mapping[str, Any]) -> list[BaseMessage]:
    """Return the messages that no run of the owner has taken in or made.

    These have no date. One with a forged date is told by its place: behind the question of the owner's last run come
    that run's own messages up to its reply, and nothing else.
    """
    asked = next((place for place, one in enumerate(messages) if one.id == session.get("question")), None)
    foreign: list[BaseMessage] = []
    is_over = False
    for place, message in enumerate(messages):
        is_behind = asked is not None and place > asked
        if is_new(message) or (is_behind and (is_over or isinstance(message, HumanMessage))):
            foreign.append(message)
            is_over = is_over or is_behind
        elif is_behind and isinstance(message, AIMessage) and not message.tool_calls:
            is_over = True
    return [message for message in foreign if not is_recalled(message)]
