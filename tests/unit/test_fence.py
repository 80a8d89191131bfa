"""A run that lost its lease saves nothing."""

import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.store.base import PutOp

from conversation import call
from everthread import build_graph, open_storage
from everthread.errors import ThreadBusyError
from everthread.models.scripted import ScriptedModel
from everthread.state import Agent, namespaces
from everthread.storage import locks
from everthread.storage.open import Storage, aopen_storage

CONFIG: Any = {"configurable": {"thread_id": "t"}}
LONG = "a long result " * 3_000
"""Goes to the transcript before its step is saved."""


def standing_still(
    storage: Storage, monkeypatch: pytest.MonkeyPatch, *, taken: bool, result: str = "done", then: Any = None
) -> Any:
    """Return a graph whose tool stands still for longer than the lease, while another process talks on the thread."""

    @tool
    def wait() -> str:
        """Wait."""
        expire(storage, "t")
        if taken:
            talk_elsewhere(storage.url)
        if then is not None:
            then()
        return result

    monkeypatch.setattr(storage.locks, "_renew", lambda: None)
    agent = Agent(name="test", title="Test", instructions="Be brief.", tools=[wait])
    replies = [AIMessage("", tool_calls=[call("wait", "c1")]), "late"]
    return build_graph(agent, model=ScriptedModel(replies), summarizer="offline", storage=storage)


def expire(storage: Storage, lease: str) -> None:
    held = storage.locks._held[lease]
    storage.locks._held[lease] = locks._Lease(held.holder, time.time() - 1)
    storage.locks._database.execute("UPDATE thread_locks SET expires = ? WHERE thread_id = ?", (time.time() - 1, lease))


def talk_elsewhere(url: str) -> None:
    with open_storage(url) as other:
        graph = build_graph(model=ScriptedModel(["in time"]), summarizer="offline", storage=other)
        graph.invoke({"messages": "second"}, CONFIG)


def texts(url: str) -> list[str]:
    with open_storage(url) as storage:
        graph = build_graph(model="offline", storage=storage)
        return [str(message.text) for message in graph.get_state(CONFIG).values["messages"]]


def test_a_run_whose_lease_went_to_another_saves_nothing_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"sqlite:///{tmp_path}/a.db"
    with open_storage(url) as storage:
        graph = standing_still(storage, monkeypatch, taken=True)
        with pytest.raises(ThreadBusyError, match="went to another run"):
            graph.invoke({"messages": "first"}, CONFIG)

    assert texts(url)[-2:] == ["second", "in time"]
    assert "late" not in texts(url)


async def test_an_async_run_whose_lease_went_to_another_saves_nothing_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path}/a.db"
    async with aopen_storage(url) as storage:
        graph = standing_still(storage, monkeypatch, taken=True)
        with pytest.raises(ThreadBusyError, match="went to another run"):
            await graph.ainvoke({"messages": "first"}, CONFIG)

        talk_elsewhere(url)  # the database is not left locked

    assert texts(url)[-2:] == ["second", "in time"]


def test_a_run_whose_lease_ran_out_but_went_to_nobody_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"sqlite:///{tmp_path}/a.db"
    with open_storage(url) as storage:
        graph = standing_still(storage, monkeypatch, taken=False)
        done = graph.invoke({"messages": "first"}, CONFIG)

    assert done["messages"][-1].text == "late"


def test_a_state_may_be_edited_without_a_lease(tmp_path: Path) -> None:
    with open_storage(f"sqlite:///{tmp_path}/a.db") as storage:
        graph = build_graph(model=ScriptedModel(["hello"]), summarizer="offline", storage=storage)
        graph.invoke({"messages": "hi"}, CONFIG)
        graph.update_state(CONFIG, {"turns": 7})

        assert graph.get_state(CONFIG).values["turns"] == 7


def records(url: str) -> dict[tuple[str, ...], Any]:
    """Return every record of the store."""
    with open_storage(url) as storage:
        spaces = storage.store.list_namespaces(limit=999)
        return {(*space, item.key): item.value for space in spaces for item in storage.store.search(space, limit=999)}


def test_a_run_whose_lease_went_to_another_writes_no_record_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path}/a.db"
    known: list[Any] = []
    with open_storage(url) as storage:
        graph = standing_still(storage, monkeypatch, taken=True, result=LONG, then=lambda: known.append(records(url)))
        with pytest.raises(ThreadBusyError, match="went to another run"):
            graph.invoke({"messages": "first"}, CONFIG)

    assert records(url) == known[0]


async def test_an_async_run_whose_lease_went_to_another_writes_no_record_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path}/a.db"
    known: list[Any] = []
    async with aopen_storage(url) as storage:
        graph = standing_still(storage, monkeypatch, taken=True, result=LONG, then=lambda: known.append(records(url)))
        with pytest.raises(ThreadBusyError, match="went to another run"):
            await graph.ainvoke({"messages": "first"}, CONFIG)

        assert records(url) == known[0]
        talk_elsewhere(url)  # the database is not left locked


@pytest.mark.parametrize(
    ("namespace", "value"),
    [
        (("threads", "t", "ledger"), {}),
        (("users", "ada", "trips"), {"thread_id": "t"}),
        (("sessions",), {}),
    ],
)
def test_records_that_name_a_lost_thread_are_refused(
    tmp_path: Path, namespace: tuple[str, ...], value: dict[str, Any]
) -> None:
    url = f"sqlite:///{tmp_path}/a.db"
    with open_storage(url) as storage, open_storage(url) as other, storage.locks.hold("t"):
        storage.store.put(namespace, "t", {**value, "old": True})
        expire(storage, "t")
        with other.locks.hold("t"):
            for change in (value, None):
                with pytest.raises(sqlite3.Error):
                    storage.store.batch([PutOp(namespace, "t", change)])

            assert storage.store.get(namespace, "t").value == {**value, "old": True}


def test_the_notes_of_a_user_are_refused_when_their_lease_is_lost(tmp_path: Path) -> None:
    url, key = f"sqlite:///{tmp_path}/a.db", namespaces.user_key("ada")
    with open_storage(url) as storage, open_storage(url) as other, storage.locks.hold(key):
        expire(storage, key)
        with other.locks.hold(key), pytest.raises(sqlite3.Error):
            storage.store.put(namespaces.notes("ada"), "n-1", {"text": "late"})

        assert other.store.get(namespaces.notes("ada"), "n-1") is None


def test_records_of_other_threads_are_written_although_a_lease_is_lost(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/a.db"
    with open_storage(url) as storage, open_storage(url) as other, storage.locks.hold("t"):
        expire(storage, "t")
        with other.locks.hold("t"):
            storage.store.put(("threads", "t2", "ledger"), "k", {})
            storage.store.put(("users", "ada", "trips"), "k", {"thread_id": "t2"})

        assert storage.store.get(("users", "ada", "trips"), "k") is not None


def test_a_run_that_stood_still_is_waited_for_by_its_own_process(tmp_path: Path) -> None:
    with open_storage(f"sqlite:///{tmp_path}/a.db", lock_timeout_seconds=0) as storage, storage.locks.hold("t"):
        expire(storage, "t")

        with pytest.raises(ThreadBusyError, match="another run of this process"), storage.locks.hold("t"):
            pass
