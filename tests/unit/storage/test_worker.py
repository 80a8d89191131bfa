"""Async calls: one hop, and none after the run that made it is over."""

import asyncio
import contextvars
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from everthread import open_storage
from everthread.errors import StorageError
from everthread.storage.worker import RunScope, Worker, current_run

CONFIG: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": "c"}}


@pytest.fixture
def worker() -> Iterator[Worker]:
    opened = Worker()
    yield opened
    opened.close()


@pytest.fixture
def scope() -> Iterator[RunScope]:
    opened = RunScope()
    token = current_run.set(opened)
    yield opened
    current_run.reset(token)


async def test_a_call_runs_on_the_one_worker_thread(worker: Worker) -> None:
    names = {await worker.call(threading.get_ident) for _ in range(3)}

    assert len(names) == 1
    assert threading.get_ident() not in names


async def test_a_call_sees_the_context_variables_of_its_caller(worker: Worker) -> None:
    variable = contextvars.ContextVar("variable", default="none")
    variable.set("here")

    assert await worker.call(variable.get) == "here"


async def test_an_error_reaches_the_caller(worker: Worker) -> None:
    with pytest.raises(ZeroDivisionError):
        await worker.call(lambda: 1 / 0)


async def test_a_closed_run_finishes_what_is_in_flight_and_starts_nothing_more(worker: Worker) -> None:
    scope, go_on, done = RunScope(), threading.Event(), list[str]()
    current_run.set(scope)

    def slow() -> None:
        assert go_on.wait(30)
        done.append("slow")

    first = asyncio.create_task(worker.call(slow))
    second = asyncio.create_task(worker.call(done.append, "queued"))
    await asyncio.sleep(0)
    first.cancel()
    second.cancel()
    scope.close()
    drained = asyncio.create_task(scope.drain())
    await asyncio.sleep(0)
    assert not drained.done()
    go_on.set()
    await drained

    assert done == ["slow", "queued"]
    with pytest.raises(StorageError, match="nothing more of it is saved"):
        await worker.call(done.append, "late")
    current_run.set(None)


async def test_waiting_goes_on_while_the_waiter_is_cancelled(worker: Worker) -> None:
    scope, go_on = RunScope(), threading.Event()
    current_run.set(scope)
    call = asyncio.create_task(worker.call(go_on.wait, 30))
    await asyncio.sleep(0)
    current_run.set(None)
    drained = asyncio.create_task(scope.drain())
    for _ in range(3):
        await asyncio.sleep(0)
        drained.cancel()
        await asyncio.sleep(0)
    assert not drained.done()
    go_on.set()

    with pytest.raises(asyncio.CancelledError):
        await drained
    assert await call


def test_a_node_in_a_thread_of_its_own_writes_nothing_after_its_run_is_over() -> None:
    with open_storage("sqlite://") as storage:
        scope = RunScope()
        token = current_run.set(scope)
        node = contextvars.copy_context()
        current_run.reset(token)
        node.run(storage.store.put, ("a",), "k", {"x": 1})
        scope.close()

        for write in (
            lambda: storage.store.put(("a",), "k", {"x": 2}),
            lambda: storage.checkpointer.put_writes(CONFIG, [("messages", "late")], "task"),
        ):
            with pytest.raises(StorageError, match="nothing more of it is saved"):
                node.run(write)

        item = storage.store.get(("a",), "k")
        assert item is not None
        assert item.value == {"x": 1}
