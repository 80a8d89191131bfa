"""What is read ahead for a run is given away once, and never when it may be old."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import empty_checkpoint

from everthread import build_graph, open_storage
from everthread.errors import SettingsError
from everthread.storage.open import Storage
from everthread.storage.whole import WholeSqliteSaver

THREAD: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[Storage]:
    with open_storage(f"sqlite:///{tmp_path}/a.db") as storage:
        graph = build_graph(storage=storage)
        for text in ("I fly to Oslo.", "And back on Monday."):
            graph.invoke({"messages": text}, THREAD)
        yield storage


@pytest.fixture
def saver(storage: Storage) -> WholeSqliteSaver:
    assert isinstance(storage.checkpointer, WholeSqliteSaver)
    return storage.checkpointer


def _history(saver: WholeSqliteSaver, checkpoint_id: str, channels: tuple[str, ...] = ("messages",)) -> Any:
    config: Any = {"configurable": {**THREAD["configurable"], "checkpoint_id": checkpoint_id}}
    return saver.get_delta_channel_history(config=config, channels=channels)


def _put(saver: WholeSqliteSaver) -> str:
    checkpoint = empty_checkpoint()
    saver.put(THREAD, checkpoint, {"source": "update"}, {})
    return checkpoint["id"]


def test_what_is_read_ahead_is_what_the_database_has(saver: WholeSqliteSaver) -> None:
    newest = saver.get_tuple(THREAD)

    assert saver.read_ahead(THREAD) == newest


def test_a_checkpoint_that_was_read_ahead_is_given_away_once(saver: WholeSqliteSaver) -> None:
    ahead = saver.read_ahead(THREAD)

    assert saver.get_tuple(THREAD) is ahead
    assert saver.get_tuple(THREAD) is not ahead


def test_a_history_that_was_read_ahead_is_given_away_once(saver: WholeSqliteSaver) -> None:
    ahead = saver.read_ahead(THREAD)
    assert ahead is not None
    asked = _history(saver, ahead.checkpoint["id"])
    saver.read_ahead(THREAD)

    first, second = (_history(saver, ahead.checkpoint["id"]) for _ in range(2))

    assert first == second == asked
    assert first["messages"] is not second["messages"]


def test_another_history_than_was_read_ahead_is_read(saver: WholeSqliteSaver) -> None:
    ahead = saver.read_ahead(THREAD)
    assert ahead is not None
    assert ahead.parent_config is not None
    _history(saver, ahead.checkpoint["id"])
    parent = str(ahead.parent_config["configurable"]["checkpoint_id"])
    before = _history(saver, parent)

    saver.read_ahead(THREAD)

    assert _history(saver, parent) == before


def test_a_checkpoint_that_is_named_is_read(saver: WholeSqliteSaver) -> None:
    ahead = saver.read_ahead(THREAD)
    assert ahead is not None
    assert ahead.parent_config is not None

    assert saver.get_tuple(ahead.parent_config) == saver.get_tuple(ahead.parent_config)
    assert saver.get_tuple(ahead.parent_config) != ahead


def test_what_was_read_ahead_of_an_edit_is_not_given_away(saver: WholeSqliteSaver) -> None:
    saver.read_ahead(THREAD)

    written = _put(saver)

    newest = saver.get_tuple(THREAD)
    assert newest is not None
    assert newest.checkpoint["id"] == written


def test_an_edit_by_another_process_as_a_run_begins_is_not_lost(storage: Storage) -> None:
    class Edit(BaseCallbackHandler):
        run_inline = True

        def on_chain_start(self, *_: Any, **__: Any) -> None:
            if not edits:
                with open_storage(storage.url) as other:
                    edits.append(
                        build_graph(storage=other).update_state(THREAD, {"messages": [HumanMessage("I meant Bergen.")]})
                    )

    edits: list[Any] = []

    said = build_graph(storage=storage).invoke({"messages": "Go on."}, {**THREAD, "callbacks": [Edit()]})["messages"]

    assert edits
    assert "I meant Bergen." in [message.content for message in said]


def test_a_run_that_never_began_leaves_nothing_that_was_read_ahead(storage: Storage, saver: WholeSqliteSaver) -> None:
    with pytest.raises(SettingsError):
        build_graph(storage=storage).invoke({"messages": "Hello"}, THREAD, context={"user_id": "somebody else"})
    with open_storage(storage.url) as other:
        assert isinstance(other.checkpointer, WholeSqliteSaver)
        written = _put(other.checkpointer)

    newest = saver.get_tuple(THREAD)

    assert newest is not None
    assert newest.checkpoint["id"] == written


def test_a_run_reads_the_newest_checkpoint_once(storage: Storage, saver: WholeSqliteSaver) -> None:
    read: list[str] = []
    saver.conn.set_trace_callback(read.append)

    build_graph(storage=storage).invoke({"messages": [HumanMessage("Which seat?")]}, THREAD)

    assert sum("metadata FROM checkpoints" in sql and "LIMIT 1" in sql for sql in read) == 1
