"""Texts that are far too long: a turn with one costs seconds, and not minutes."""

import time
from collections.abc import Callable

import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import tool

from attack.scale import tries
from everthread import Agent, Context, build_graph, open_storage
from everthread.models.scripted import ScriptedModel

LONG = 50_000_000
SECONDS = 5
SHAPES = ("row 17 of the table, paid and packed\n", "-", "a ", "(", "https://example.com/?q=", "漢字")


@pytest.mark.slow
def test_a_result_of_fifty_megabytes_costs_seconds(attack_row: Callable[[str, int, int], None]) -> None:
    shapes = SHAPES[: 2 * tries(1)]

    slow = [shape for shape in shapes if _cpu_seconds(shape) > SECONDS]

    attack_row("a tool result of 50 MB", len(shapes), len(slow))
    assert not slow


def _cpu_seconds(shape: str) -> float:
    text = (shape * (LONG // len(shape) + 1))[:LONG]

    @tool
    def look() -> str:
        """Look something up."""
        return text

    agent = Agent(name="small", title="Small", instructions="Be brief.", tools=[look])
    call = AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": "c", "type": "tool_call"}])
    with open_storage("sqlite://") as storage:
        graph = build_graph(agent, model=ScriptedModel([call, "done"]), storage=storage)
        began = time.process_time()
        values = graph.invoke({"messages": "look"}, {"configurable": {"thread_id": "t"}}, context=Context(window=8_000))
        assert values["messages"][-1].text == "done"
        return time.process_time() - began
