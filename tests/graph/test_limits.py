"""What a model may send that a database or a loop cannot take: huge integers, calls without an end."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.errors import GraphRecursionError

from conversation import call
from everthread import Context, build_graph
from everthread.errors import StepLimitError
from everthread.models.scripted import ScriptedModel
from everthread.state import Agent
from everthread.storage.open import Storage

CONFIG: Any = {"configurable": {"thread_id": "t"}}


@tool
def look(n: int) -> str:
    """Look something up."""
    return f"row {n}"


AGENT = Agent(name="test", title="Test", instructions="Be brief.", tools=[look])


async def run(graph: Any, is_async: bool, **config: Any) -> Any:
    arguments: Any = ({"messages": "Hi."}, {**CONFIG, **config})
    if is_async:
        return await graph.ainvoke(*arguments, context=Context())
    return graph.invoke(*arguments, context=Context())


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("number", [2**64, -(2**63) - 1, 10**100, 10**5_000], ids=int.bit_length)
async def test_an_integer_over_64_bits_is_kept_as_text(number: int, is_async: bool, storage: Storage) -> None:
    asked = AIMessage("", tool_calls=[call("look", "c", n=number)], additional_kwargs={"n": [number]})
    graph = build_graph(AGENT, model=ScriptedModel([asked, "done"]), summarizer="offline", storage=storage)

    result = await run(graph, is_async)

    kept = result["messages"][1].tool_calls[0]["args"]["n"]
    assert isinstance(kept, str)
    assert int(kept, 0) == number if number < 10**4_000 else kept == hex(number)
    assert graph.get_state(CONFIG).values["messages"][1].tool_calls[0]["args"] == {"n": kept}
    assert result["messages"][-1].text == "done"


@pytest.mark.parametrize("number", [2**63, 2**70])
def test_the_store_keeps_an_integer_over_64_bits_as_text(number: int, storage: Storage) -> None:
    storage.store.put(("users", "u", "x"), "k", {"n": [number], "m": 1})

    item = storage.store.get(("users", "u", "x"), "k")

    assert item is not None
    assert item.value == {"n": [number if number < 2**64 else str(number)], "m": 1}


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_turn_without_an_end_is_one_sentence_and_goes_on(is_async: bool, storage: Storage) -> None:
    replies = [*(AIMessage("", tool_calls=[call("look", f"c{n}", n=n)]) for n in range(6)), "done"]
    graph = build_graph(AGENT, model=ScriptedModel(replies), summarizer="offline", storage=storage)

    with pytest.raises(StepLimitError, match=r"took 7 steps and was not done.*`recursion_limit`") as raised:
        await run(graph, is_async, recursion_limit=7)

    assert isinstance(raised.value, GraphRecursionError)
    assert graph.invoke(None, CONFIG, context=Context())["messages"][-1].text == "done"


async def test_a_stream_without_an_end_says_so_too(storage: Storage) -> None:
    replies = [AIMessage("", tool_calls=[call("look", f"c{n}", n=n)]) for n in range(40)]
    graph = build_graph(AGENT, model=ScriptedModel(replies), summarizer="offline", storage=storage)
    config: Any = {**CONFIG, "recursion_limit": 5}

    with pytest.raises(StepLimitError):
        list(graph.stream({"messages": "Hi."}, config, context=Context()))
    with pytest.raises(StepLimitError):
        [part async for part in graph.astream(None, config, context=Context())]
