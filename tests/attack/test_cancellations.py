"""Async runs are cancelled at every step of the event loop; nothing is left behind, and each thread goes on."""

import asyncio
import gc
import random
import threading
from collections.abc import Coroutine, Iterator
from contextlib import suppress
from contextvars import ContextVar
from pathlib import Path
from types import coroutine
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool

from attack.conftest import AttackRow
from attack.scale import PARTS, part_of, tries
from attack.talk import DURABILITIES, Talk, counted_fetches, idle_faults, left_behind
from everthread import EverthreadMiddleware, open_storage
from everthread.models.scripted import ScriptedModel
from everthread.storage.open import Storage

WAYS = ("ainvoke", "astream", "closed", "abandoned", "beside")
"""`beside` another run with the same message, so that most cuts come while the lock is being taken."""


class Cut:
    """Cancels a run when any of its tasks waits for the `at`-th time; counts on afterwards."""

    def __init__(self, at: int) -> None:
        self.at, self.steps = at, 0
        self.task = asyncio.current_task()

    def step(self) -> None:
        if self.steps == self.at and self.task is not None:
            self.task.cancel()
        self.steps += 1


_cut: ContextVar[Cut | None] = ContextVar("cut", default=None)


@coroutine
def _counted(work: Coroutine[Any, Any, Any]) -> Any:
    value, error = None, None
    while True:
        try:
            waits_for = work.send(value) if error is None else work.throw(error)
        except StopIteration as end:
            return end.value
        if (cut := _cut.get()) is not None:
            cut.step()
        value = error = None
        try:
            value = yield waits_for
        except BaseException as raised:  # noqa: BLE001 - it belongs to the coroutine inside
            error = raised


def _counting_tasks(loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> asyncio.Task[Any]:
    async def run() -> Any:
        return await _counted(work)

    task = asyncio.Task(run(), loop=loop, **options)
    # One that is cancelled before it began has not begun what is inside either.
    task.add_done_callback(lambda _: work.close())
    return task


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[Storage]:
    with open_storage(f"sqlite:///{tmp_path}/a.db", lock_timeout_seconds=20) as opened, counted_fetches():
        # What is there already would make each look for abandoned streams take a third of a second.
        gc.collect()
        gc.freeze()
        yield opened


async def attack(talk: Talk, way: str, durability: str, at: int) -> int:
    """Cut a turn off at a step; return how many steps it had, which are fewer when the cut came."""
    options = talk.options(durability)

    async def run() -> int:
        _cut.set(cut := Cut(at if way in ("ainvoke", "astream", "beside") else -1))
        if way in ("ainvoke", "beside"):
            await talk.graph.ainvoke(talk.message, talk.config, **options)
            return cut.steps
        stream = talk.graph.astream(talk.message, talk.config, stream_mode=["updates", "messages"], **options)
        async for _ in stream:
            if way != "astream" and cut.steps >= at:
                break
        if way == "closed":
            await stream.aclose()
        return cut.steps

    other = asyncio.create_task(talk.graph.ainvoke(talk.message, talk.config, **options)) if way == "beside" else None
    with suppress(asyncio.CancelledError):
        at = await asyncio.create_task(run())
    if other is not None:
        await other
    return at


async def settled() -> None:
    """Let the event loop close what was abandoned, as it does when it is idle."""
    gc.collect()
    while others := asyncio.all_tasks() - {asyncio.current_task()}:
        await asyncio.wait(others)


async def steps_of(storage: Storage) -> int:
    """Return how many steps the longest kind of turn has."""
    asyncio.get_running_loop().set_task_factory(_counting_tasks)
    talk, most = Talk(storage, 0), 0
    for _ in range(5):
        most = max(most, await attack(talk, "ainvoke", "sync", 10**9))
        assert await talk.aagain() == []
    return most


@pytest.mark.parametrize("part", PARTS)
async def test_a_run_that_is_cancelled_at_any_step_leaves_nothing_behind(
    part: int, storage: Storage, attack_row: AttackRow
) -> None:
    threads, chance, most, wrong = set(threading.enumerate()), random.Random(part), await steps_of(storage), list[str]()
    talk, numbers = Talk(storage, 1), part_of(range(tries(10, 2_000)), part)
    for number in numbers:
        way, durability = chance.choice(WAYS), chance.choice(DURABILITIES)
        at = int((number * 0.618034 % 1) * most)
        await attack(talk, way, durability, at)
        await settled()
        found = left_behind(storage) + await talk.aagain()
        wrong += [f"{way}, {durability}, step {at}: {fault}" for fault in found]
    wrong += idle_faults(storage, threads)
    attack_row("cancelled runs, 1 thread", len(numbers), len(wrong))
    assert wrong == []


async def test_twenty_threads_whose_runs_are_cancelled_at_once_all_go_on(
    storage: Storage, attack_row: AttackRow
) -> None:
    threads, most, wrong = set(threading.enumerate()), await steps_of(storage), list[str]()
    count = -(-tries(20, 2_000) // 20) * 20

    async def talked(number: int) -> None:
        talk, chance = Talk(storage, number), random.Random(number)
        for _ in range(count // 20):
            way, durability, at = chance.choice(WAYS), chance.choice(DURABILITIES), chance.randrange(most)
            await attack(talk, way, durability, at)
            found = await talk.aagain()
            wrong.extend(f"{way}, {durability}, step {at}: {fault}" for fault in found)

    await asyncio.gather(*(talked(number) for number in range(1, 21)))
    await settled()
    wrong += idle_faults(storage, threads)
    attack_row("cancelled runs, 20 threads", count, len(wrong))
    assert wrong == []


@tool
def look(n: int) -> str:
    """Look at a page."""
    return f"Page {n}. " * 50


def agent(storage: Storage, number: int) -> Any:
    """Return somebody else's agent, whose model looks something up in each turn."""
    calls = [{"name": "look", "args": {"n": number}, "id": f"c-{number}"}]
    model = ScriptedModel([AIMessage("", tool_calls=calls), "Done."] * 4)
    middleware = EverthreadMiddleware(window=2_000, summarizer="offline")
    made = create_agent(model, [look], middleware=[middleware], checkpointer=storage.checkpointer, store=storage.store)
    return storage.guard(made)


async def test_an_agent_with_middleware_goes_on_after_it_was_cancelled_at_any_step(
    storage: Storage, attack_row: AttackRow
) -> None:
    asyncio.get_running_loop().set_task_factory(_counting_tasks)
    count, most, wrong = tries(6, 300), 48, list[str]()
    for number in range(count):
        graph, at = agent(storage, number), int((number * 0.618034 % 1) * most)
        config: Any = {"configurable": {"thread_id": f"t-{number % 3}", "user_id": "u"}}
        message = {"messages": [HumanMessage("Look it up. " * 20, id=f"m-{number}")]}

        async def run(graph: Any = graph, message: Any = message, config: Any = config, at: int = at) -> None:
            _cut.set(Cut(at))
            await graph.ainvoke(message, config)

        with suppress(asyncio.CancelledError):
            await asyncio.create_task(run())
        await settled()
        found = left_behind(storage)
        messages = (await graph.ainvoke(message, config))["messages"]
        asked = {call["id"] for one in messages if isinstance(one, AIMessage) for call in one.tool_calls}
        if messages[-1].text != "Done." or asked != {one.tool_call_id for one in messages if one.type == "tool"}:
            found.append(f"ended with {[one.type for one in messages[-4:]]}")
        if sum(one.id == f"m-{number}" for one in messages) != 1:
            found.append("the message is not there once")
        wrong += [f"step {at}: {fault}" for fault in found]
    attack_row("cancelled runs of an agent with middleware", count, len(wrong))
    assert wrong == []
