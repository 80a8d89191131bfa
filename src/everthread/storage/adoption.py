"""Threads of other graphs: what they hold, and how our own graph gets a thread with their messages.

Nothing here writes to a thread of another graph. It goes on as it is in its own graph, with our middleware or without.
"""

from collections.abc import Collection, Mapping, Sequence
from shlex import quote
from typing import Any

from langchain_core.messages import BaseMessage, SystemMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.serde.types import ERROR, INTERRUPT, RESUME
from langgraph.graph import START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Interrupt
from typing_extensions import TypedDict

from everthread.errors import NotFoundError, SettingsError
from everthread.plain import enumerated
from everthread.state import namespaces
from everthread.state.marks import marked_only, marks
from everthread.state.messages import Messages, as_messages
from everthread.state.places import left_ids
from everthread.storage.checkpointer import Checkpointer
from everthread.storage.kept_checkpoints import OWN_GRAPH
from everthread.storage.open import Storage
from everthread.storage.reading import removed_links
from everthread.storage.transcript import transcript

ADOPTED = "adopted"
"""Mark of a message that a thread of ours was begun with: the thread that it came from."""


def messages_of(storage: Storage, thread_id: str, here: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return every message of a thread of another graph, oldest first, each dated and marked as `ADOPTED`.

    Those that left its state through our middleware are among them. System messages are not, since each agent has its
    own, nor is what was said on a branch that time travel has left.

    Args:
        here: the messages of its state, with their places in the thread.

    Raises:
        NotFoundError: there is no such thread.
        SettingsError: it is a thread of our own, or it has no messages.
    """
    reader = _reader(storage.checkpointer.lenient())
    config = _config(thread_id)
    if reader.get_state(config).metadata is None:
        raise NotFoundError(f"there is no thread {thread_id!r} in this database; `everthread adopt` lists them")
    if storage.checkpointer.last_writer(thread_id) == OWN_GRAPH:
        raise SettingsError(
            f"thread {thread_id!r} is one of ours already: `everthread chat --thread {quote(thread_id)}`"
        )
    messages = _of_branch(storage, thread_id, here)
    if not messages:
        raise SettingsError(f"thread {thread_id!r} has no `messages` in its state, so there is nothing to begin with")
    dates = _dates(reader, config, [str(message.id) for message in messages])
    return [
        marked_only(message, {"at": marks(message).get("at") or dates[str(message.id)], ADOPTED: thread_id})
        for message in messages
        if not isinstance(message, SystemMessage)
    ]


def _of_branch(storage: Storage, thread_id: str, here: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return every message of a thread but those of branches that it has left.

    Args:
        here: the messages of its state, with their places.
    """
    messages = transcript(storage.store, thread_id, here)
    session = storage.store.get(namespaces.SESSIONS, thread_id)
    record = session.value if session is not None else None
    gone = left_ids(messages, here, record, lambda: removed_links(storage.store, thread_id))
    return [message for message in messages if str(message.id) not in gone]


def state_messages(storage: Storage, thread_id: str) -> list[BaseMessage]:
    """Return the messages of a thread's newest state, whichever graph wrote it; none when there is no such thread."""
    return _messages(_reader(storage.checkpointer.lenient()).get_state(_config(thread_id)).values)


def new_messages(storage: Storage, thread_id: str, ours: str) -> list[BaseMessage]:
    """Return what was said in a thread of ours since it began with the messages of another one, to hand it back.

    The app's own graph takes them: `app.update_state(config, {"messages": new_messages(…)})`. Twice does no harm, since
    they keep their ids.

    Args:
        storage: has both threads.
        thread_id: the thread of the app.
        ours: the thread that began with its messages.

    Raises:
        NotFoundError: one of the threads does not exist.
        SettingsError: the one did not begin with the other, or the app's waits for an approval, which an update drops.
    """
    saver = storage.checkpointer.lenient()
    saved = saver.get_tuple(_config(thread_id))
    snapshot = _reader(saver).get_state(_config(ours))
    for name, found in ((thread_id, saved), (ours, snapshot.metadata)):
        if found is None:
            raise NotFoundError(f"there is no thread {name!r} in this database")
    messages = _of_branch(storage, ours, _messages(snapshot.values))
    if not any(marks(message).get(ADOPTED) == thread_id for message in messages):
        raise SettingsError(f"thread {ours!r} did not begin with the messages of thread {thread_id!r}")
    if saved is not None and pending_interrupts(saved):
        raise SettingsError(
            f"thread {thread_id!r} waits for an approval, which would be dropped; answer it in its own app first"
        )
    return [marked_only(message, {}) for message in messages if ADOPTED not in marks(message)]


def refuse_foreign(checkpointer: Checkpointer, thread_id: str, channels: Collection[str]) -> None:
    """Refuse a run of our own graph on a thread of another one.

    Args:
        checkpointer: has the thread.
        thread_id: a thread with checkpoints.
        channels: of our graph.

    Raises:
        SettingsError: the newest checkpoint is another graph's.
    """
    if checkpointer.last_writer(thread_id) == OWN_GRAPH:
        return
    saved = checkpointer.get_tuple(_config(thread_id))
    if saved is None:
        return
    loses = [f"its state key {name!r}" for name in state_keys(saved) if name not in channels]
    if waiting := len(pending_interrupts(saved)):
        loses.append("its open approval" if waiting == 1 else f"its {waiting:,} open approvals")
    reason = f", and this graph would drop {enumerated(loses)}" if loses else ""
    raise SettingsError(
        f"thread {thread_id!r} was made by another graph{reason}; it was left as it is. Go on in the app that made "
        f"it, with EverthreadMiddleware in its graph, or begin a thread of its own with these messages: "
        f"`everthread adopt {quote(thread_id)} --into NEW`, with `--user` for whose it is"
    )


def state_keys(saved: CheckpointTuple) -> list[str]:
    """Return the keys of a state that have a value, without LangGraph's own."""
    return [name for name in saved.checkpoint["channel_values"] if ":" not in name and not name.startswith("__")]


def pending_interrupts(saved: CheckpointTuple) -> list[Interrupt]:
    """Return what the newest run of a thread waits for, without what was answered while another answer is open."""
    writes = saved.pending_writes or ()
    done = {task for task, channel, _ in writes if channel not in (INTERRUPT, RESUME, ERROR)}
    asked = [value for task, channel, value in writes if channel == INTERRUPT and task not in done]
    return [one for value in asked for one in (value if isinstance(value, list | tuple) else [value])]


class _State(TypedDict):
    messages: Messages


def _reader(saver: Checkpointer) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Return a graph whose `get_state` has the messages, be their channel a plain one or a delta channel."""
    graph = StateGraph(_State)
    graph.add_node("read", lambda state: {})
    # Where calls wait for an approval, in our graph and in agents of LangChain; LangGraph warns of a missing node.
    graph.add_node("tools", lambda state: {})
    graph.add_edge(START, "read")
    return graph.compile(checkpointer=saver)


def _messages(values: Mapping[str, Any]) -> list[BaseMessage]:
    """Return the messages of a state, each with an id; of a state that has other things under that name, none.

    A channel that only adds lists gives no ids: there a message is known by its place.
    """
    found = values.get("messages")
    try:
        messages = as_messages(found) if isinstance(found, list) else []
    except SettingsError:
        return []
    return [
        message if message.id is not None else message.model_copy(update={"id": f"{ADOPTED}-{place}"})
        for place, message in enumerate(messages)
    ]


def _dates(
    reader: CompiledStateGraph[Any, Any, Any, Any], config: RunnableConfig, names: Sequence[str]
) -> Mapping[str, str]:
    """Return when each message came, by its id: when the run began before which it was not there."""
    dates: dict[str, str] = {}
    oldest = ""
    for snapshot in reader.get_state_history(config, filter={"source": "input"}):
        earlier = {str(message.id) for message in _messages(snapshot.values)}
        oldest = snapshot.created_at or oldest
        dates.update((name, oldest) for name in names if name not in earlier and name not in dates)
    return {name: dates.get(name, oldest) for name in names}


def _config(thread_id: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}}
