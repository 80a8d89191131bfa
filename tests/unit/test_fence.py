"""A run that lost its lease saves nothing."""

import time
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import tool

from conversation import call
from everthread import build_graph, open_storage
from everthread.errors import ThreadBusyError
from everthread.models.scripted import ScriptedModel
from everthread.state import Agent
from everthread.storage import locks
from everthread.storage.open import Storage, aopen_storage

CONFIG: Any = {"configurable": {"thread_id": "t"}}


def standing_still(storage: Storage, monkeypatch: pytest.MonkeyPatch, *, taken: bool) -> Any:
    """Return a graph whose tool stands still for longer than the lease, while another process talks on the thread."""

    @tool
    def wait() -> str:
        """Wait."""
        lease = storage.locks._held["t"]
        storage.locks._held["t"] = locks._Lease(lease.holder, time.time() - 1)
        storage.locks._database.execute("UPDATE thread_locks SET expires = ?", (time.time() - 1,))
        if taken:
            talk_elsewhere(storage.url)
        return "done"

    monkeypatch.setattr(storage.locks, "_renew", lambda: None)
    agent = Agent(name="test", title="Test", instructions="Be brief.", tools=[wait])
    replies = [AIMessage("", tool_calls=[call("wait", "c1")]), "late"]
    return build_graph(agent, model=ScriptedModel(replies), summarizer="offline", storage=storage)


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
