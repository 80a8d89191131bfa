"""A run has the threads that it needs: one for its writes, one for each of several tools."""

import asyncio
import sys
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.tools import tool

from conversation import call
from everthread import build_graph, open_storage
from everthread.graph.workers import for_nodes, for_run
from everthread.models.scripted import ScriptedModel
from everthread.state import Agent
from everthread.storage.open import Storage
from small_agent import CONFIG, calls

VALUES = {"stream_mode": ["values", "updates"]}
MARK: ContextVar[str] = ContextVar("mark", default="none")


@tool
def thread_name() -> str:
    """Tell in which thread it runs."""
    MARK.set("tool")
    return str(threading.get_ident())


@tool
def loop_name() -> str:
    """Run an event loop."""

    async def name() -> str:
        return "a loop of its own"

    return asyncio.run(name())


@tool
def meet(place: int) -> str:
    """Wait for the other one."""
    MEETING.wait(timeout=30)
    return "met"


@tool
def meet_inside() -> str:
    """Let two meet."""
    return " and ".join(RunnableLambda(meet.invoke).batch([{"place": 1}, {"place": 2}]))


@tool
def limit(config: RunnableConfig) -> str:
    """Tell how many may run at once."""
    return str(config.get("max_concurrency"))


MEETING = threading.Barrier(2)
AGENT = Agent(
    name="test", title="Test", instructions="Be brief.", tools=[thread_name, loop_name, meet, meet_inside, limit]
)


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[Storage]:
    with open_storage(f"sqlite:///{tmp_path}/a.db") as opened:
        yield opened


def results(storage: Storage, *wanted: Any, config: Any = CONFIG) -> list[str]:
    """Let a model call tools, and return what they said."""
    model = ScriptedModel([calls(*wanted), AIMessage("done")])
    said: list[BaseMessage] = build_graph(AGENT, model=model, storage=storage).invoke({"messages": "go"}, config)[
        "messages"
    ]
    return [str(message.text) for message in said if message.type == "tool"]


def test_a_single_tool_runs_in_the_thread_of_its_run(storage: Storage) -> None:
    assert results(storage, call("thread_name", "a")) == [str(threading.get_ident())]
    assert MARK.get() == "none"


def test_of_several_tools_one_runs_in_the_thread_of_its_run(storage: Storage) -> None:
    told = results(storage, call("thread_name", "a"), call("thread_name", "b"))

    assert [name == str(threading.get_ident()) for name in told] == [True, False]
    assert MARK.get() == "none"


def test_a_tool_that_fails_leaves_the_others_their_results(storage: Storage) -> None:
    told = results(storage, call("meet", "a", place="x"), call("limit", "b"), call("thread_name", "c", more=1))

    assert told[0].startswith("Error: ")
    assert told[1] == "None"


async def test_a_tool_may_run_an_event_loop_beside_a_running_one(storage: Storage) -> None:
    assert results(storage, call("loop_name", "a")) == ["a loop of its own"]


def test_a_tool_takes_no_event_loop_away(storage: Storage) -> None:
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        results(storage, call("loop_name", "a"))

        assert asyncio.get_event_loop() is loop
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def test_what_a_tool_runs_side_by_side_is_not_limited(storage: Storage) -> None:
    assert results(storage, call("meet_inside", "a")) == ["met and met"]


def test_parallel_tools_run_at_the_same_time(storage: Storage) -> None:
    assert results(storage, call("meet", "a", place=1), call("meet", "b", place=2)) == ["met", "met"]


@pytest.mark.parametrize(("config", "told"), [(CONFIG, "None"), ({**CONFIG, "max_concurrency": 3}, "3")])
def test_a_tool_has_the_limit_of_the_caller(config: Any, told: str, storage: Storage) -> None:
    assert results(storage, call("limit", "a"), config=config) == [told]


def test_the_limit_of_a_run_is_not_saved(storage: Storage) -> None:
    results(storage, call("limit", "a"))

    found = storage.checkpointer.get_tuple(CONFIG)

    assert found is not None
    assert not [name for name in found.metadata if "worker" in name or "concurrency" in name]


def test_a_run_whose_nodes_nobody_watches_has_one_worker() -> None:
    assert (for_run(None, VALUES) or {})["max_concurrency"] == 1


@pytest.mark.parametrize(
    ("config", "options"),
    [
        (None, {"stream_mode": "messages"}),
        (None, {"stream_mode": ["values", "custom"]}),
        (None, {**VALUES, "print_mode": "custom"}),
        (None, {**VALUES, "subgraphs": True}),
        ({"max_concurrency": 4}, VALUES),
    ],
)
def test_any_other_run_keeps_its_config(config: Any, options: dict[str, Any]) -> None:
    assert for_run(config, options) == config


def test_a_run_keeps_the_limit_of_its_graph() -> None:
    assert for_run(None, VALUES, {"max_concurrency": 2}) is None


def test_a_run_keeps_the_limit_of_what_calls_it() -> None:
    def inner(_: Any) -> Any:
        return for_run(None, VALUES)

    assert RunnableLambda(inner).invoke(None, {"max_concurrency": 2}) is None


def test_a_run_that_may_call_tasks_keeps_its_config(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langgraph.func", ModuleType("langgraph.func"))

    assert for_run(None, VALUES) is None


def test_nodes_have_the_rest_of_the_config() -> None:
    given: RunnableConfig = {"tags": ["a"], "configurable": {"thread_id": "t"}}

    with for_nodes(for_run(given, VALUES)) as own:
        assert own == {**given, "max_concurrency": None}
