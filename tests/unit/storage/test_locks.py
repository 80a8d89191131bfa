"""Thread locks."""

import asyncio
import gc
import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import everthread
from everthread import open_storage
from everthread.errors import ThreadBusyError
from everthread.storage.locks import ThreadLocks

SOURCE = {**os.environ, "PYTHONPATH": str(Path(everthread.__file__).parents[1])}
"""For a child process: it runs the code that is tested."""

HOLD = """
import sys
from pathlib import Path
from everthread.storage.locks import ThreadLocks
with ThreadLocks(Path(sys.argv[1])).hold("t"):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(params=["file", "memory"])
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> list[ThreadLocks]:
    if request.param == "memory":
        return [ThreadLocks(None, timeout_seconds=0)] * 2
    return [ThreadLocks(tmp_path / "a.db", timeout_seconds=0) for _ in range(2)]


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the lock."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "a.db")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=SOURCE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def locks(folder: Path, timeout_seconds: float = 0) -> ThreadLocks:
    return ThreadLocks(folder / "a.db", timeout_seconds=timeout_seconds)


def test_a_held_thread_is_busy_for_another_run(pair: list[ThreadLocks]) -> None:
    with (
        pair[0].hold("t"),
        pytest.raises(ThreadBusyError, match="thread 't' is busy: another run of this process"),
        pair[1].hold("t"),
    ):
        pass


def test_the_process_that_holds_a_thread_is_named(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    with pytest.raises(ThreadBusyError, match=f"process {holder.pid} held its lock"), locks(tmp_path).hold("t"):
        pass


def test_another_thread_is_free(pair: list[ThreadLocks]) -> None:
    with pair[0].hold("t"), pair[1].hold("u"):
        pass


def test_a_lock_is_free_after_its_block_failed(pair: list[ThreadLocks]) -> None:
    with pytest.raises(RuntimeError), pair[0].hold("t"):
        raise RuntimeError
    with pair[1].hold("t"):
        pass


def test_the_lock_of_a_process_that_was_killed_is_free_at_once(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    holder.send_signal(signal.SIGKILL)
    holder.wait()

    with locks(tmp_path).hold("t"):
        pass
    assert os.listdir(tmp_path / "a.db-locks") == []


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGSTOP")
def test_a_stopped_process_keeps_its_lock(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    holder.send_signal(signal.SIGSTOP)

    with pytest.raises(ThreadBusyError), locks(tmp_path).hold("t"):
        pass
    holder.send_signal(signal.SIGCONT)


async def test_async_runs_wait_for_each_other(pair: list[ThreadLocks]) -> None:
    async with pair[0].hold("t"):
        with pytest.raises(ThreadBusyError):
            async with pair[1].hold("t"):
                pass


async def test_a_run_that_is_cancelled_while_it_waits_takes_nothing(pair: list[ThreadLocks]) -> None:
    pair[1].timeout_seconds = 60

    async def wait() -> None:
        async with pair[1].hold("t"):
            pass

    with pair[0].hold("t"):
        waiter = asyncio.create_task(wait())
        await asyncio.sleep(0)
        waiter.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiter

    assert pair[0].are_free()


async def test_a_run_that_is_cancelled_gives_its_lock_back(pair: list[ThreadLocks]) -> None:
    is_held = asyncio.Event()

    async def run() -> None:
        async with pair[0].hold("t"):
            is_held.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(run())
    await is_held.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    with pair[1].hold("t"):
        pass


@pytest.mark.parametrize("is_file", [True, False])
async def test_threads_and_tasks_never_hold_a_lock_at_once(tmp_path: Path, is_file: bool) -> None:
    both = ThreadLocks(tmp_path / "a.db" if is_file else None)
    inside, most = [0], [0]

    def enter() -> None:
        inside[0] += 1
        most[0] = max(most[0], inside[0])

    def work() -> None:
        for _ in range(20):
            with both.hold("t"):
                enter()
                inside[0] -= 1

    async def task() -> None:
        for _ in range(10):
            async with both.hold("t"):
                enter()
                await asyncio.sleep(0)
                inside[0] -= 1

    workers = [threading.Thread(target=work) for _ in range(3)]
    for worker in workers:
        worker.start()
    await asyncio.gather(*(task() for _ in range(4)))
    for worker in workers:
        await asyncio.to_thread(worker.join)

    assert most == [1]
    assert both.are_free()


def test_the_holder_is_named_and_no_lock_is_taken_for_it(pair: list[ThreadLocks]) -> None:
    here, other = pair
    with here.hold("t"):
        assert other.holders(["t", "u"]) == {"t": "another run of this process"}
        assert other.holders(["t"]) == here.holders(["t"])

    assert other.holders(["t", "u"]) == {}


def test_another_process_is_named_and_forgotten_when_it_dies(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    here = locks(tmp_path)
    assert here.holders(["t"]) == {"t": f"process {holder.pid}"}

    holder.kill()
    holder.wait()

    assert here.holders(["t"]) == {}


def test_the_folder_is_for_its_owner_and_as_small_as_the_number_of_runs(tmp_path: Path) -> None:
    with open_storage(f"sqlite:///{tmp_path}/a.db") as storage:
        folder = storage.locks.folder
        assert folder is not None
        for number in range(50):
            with storage.locks.hold(f"thread {number}"):
                assert len(os.listdir(folder)) == 1

        assert os.listdir(folder) == []
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_forked_child_does_not_give_the_lock_back(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FORK, str(tmp_path / "a.db")]
    child = subprocess.run(command, capture_output=True, text=True, env=SOURCE)

    assert child.stdout == "busy\n", child.stderr


FORK = """
import os, sys, warnings
from pathlib import Path
from everthread.errors import ThreadBusyError
from everthread.storage.locks import ThreadLocks
path = Path(sys.argv[1])
with ThreadLocks(path).hold("u"):
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        try:
            with ThreadLocks(path, timeout_seconds=0).hold("u"):
                print("free")
        except ThreadBusyError:
            print("busy")
if not child:
    os._exit(0)
"""


def test_what_a_dead_process_left_is_removed_when_asked_for(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    here = locks(tmp_path)
    assert not here.are_free()
    holder.kill()
    holder.wait()

    assert here.are_free()
    assert os.listdir(tmp_path / "a.db-locks") == []


@pytest.mark.parametrize("is_file", [True, False])
def test_a_lock_whose_event_loop_was_closed_is_free(tmp_path: Path, is_file: bool) -> None:
    both = ThreadLocks(tmp_path / "a.db" if is_file else None, timeout_seconds=0)

    async def stream() -> AsyncIterator[int]:
        async with both.hold("t"):
            yield 1
            await asyncio.sleep(60)

    loop = asyncio.new_event_loop()
    abandoned = stream()
    loop.run_until_complete(anext(abandoned))
    loop.close()
    with pytest.raises(ThreadBusyError), both.hold("t"):
        pass
    del abandoned
    gc.collect()

    with both.hold("t"):
        pass


def test_a_lock_taken_after_the_folder_was_emptied_stays_with_its_holder(tmp_path: Path) -> None:
    here = locks(tmp_path)
    assert here.folder is not None
    with ExitStack() as first, ExitStack() as second:
        first.enter_context(here.hold("t"))
        shutil.rmtree(here.folder)
        second.enter_context(here.hold("t"))
        first.close()

        with pytest.raises(ThreadBusyError), here.hold("t"):
            pass
