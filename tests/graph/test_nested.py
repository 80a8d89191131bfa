"""An agent inside another graph: with that graph's thread, user and state."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from langgraph.graph import START, MessagesState, StateGraph

from everthread import open_storage
from everthread.errors import SettingsError
from everthread.state import namespaces
from everthread.storage.open import Storage
from small_agent import graph_of

CONFIG: Any = {"configurable": {"thread_id": "parent"}}


@dataclass
class Theirs:
    user_id: str = "ann"
    colour: str = "red"


@pytest.fixture
def storage() -> Iterator[Storage]:
    with open_storage("sqlite://") as opened:
        yield opened


def parent_of(storage: Storage) -> Any:
    child, _ = graph_of(storage, "hello")
    graph = StateGraph(MessagesState, context_schema=Theirs)
    graph.add_node("child", child)
    graph.add_edge(START, "child")
    return graph.compile(checkpointer=storage.checkpointer, store=storage.store)


def test_the_user_of_the_parents_context_owns_the_thread(storage: Storage) -> None:
    done = parent_of(storage).invoke({"messages": "hi"}, CONFIG, context=Theirs())

    session = storage.store.get(namespaces.SESSIONS, "parent")
    assert [message.text for message in done["messages"]] == ["hi", "hello"]
    assert session is not None
    assert session.value["user_id"] == "ann"


async def test_the_same_under_ainvoke(storage: Storage) -> None:
    done = await parent_of(storage).ainvoke({"messages": "hi"}, CONFIG, context=Theirs())

    assert done["messages"][-1].text == "hello"


def test_a_parents_context_without_a_user_says_so(storage: Storage) -> None:
    with pytest.raises(SettingsError, match="names no user"):
        parent_of(storage).invoke({"messages": "hi"}, CONFIG, context=Theirs(user_id=""))
