"""Thread locks."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from everthread.errors import ThreadBusyError
from everthread.storage.locations import locate
from everthread.storage.locks import ThreadLocks, _Lease, _place


@pytest.fixture
def pair(tmp_path: Path):  # type: ignore[no-untyped-def]
    location = locate(f"sqlite:///{tmp_path}/a.db")
    locks = [ThreadLocks(location, timeout_seconds=0) for _ in range(2)]
    yield locks
    for lock in locks:
        lock.close()


def test_a_held_thread_is_busy_for_another_process(pair: list[ThreadLocks]) -> None:
    with pair[0].hold("t"), pytest.raises(ThreadBusyError, match="busy"), pair[1].hold("t"):
        pass


def test_who_holds_a_busy_thread_is_told(pair: list[ThreadLocks], tmp_path: Path) -> None:
    with pair[0].hold("t"), pytest.raises(ThreadBusyError, match="another run of this process"), pair[1].hold("t"):
        pass

    assert pair[0]._acquire("t", f"{_place()}:{os.getppid()}:x")
    with pytest.raises(ThreadBusyError, match=f"process {os.getppid()} held its lock"), pair[1].hold("t"):
        pass


def test_another_thread_is_free(pair: list[ThreadLocks]) -> None:
    with pair[0].hold("t"), pair[1].hold("u"):
        pass


def test_a_lock_is_free_after_its_block_failed(pair: list[ThreadLocks]) -> None:
    with pytest.raises(RuntimeError), pair[0].hold("t"):
        raise RuntimeError
    with pair[1].hold("t"):
        pass


def test_the_lock_of_a_dead_holder_is_free_after_expiry(
    pair: list[ThreadLocks], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("everthread.storage.locks.LEASE_SECONDS", -1.0)
    assert pair[0]._acquire("t", "dead")

    with pair[1].hold("t"):
        pass


def test_the_lock_of_a_process_that_is_gone_is_free_at_once(pair: list[ThreadLocks]) -> None:
    child = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    assert pair[0]._acquire("t", f"{_place()}:{int(child.stdout)}:x")

    with pair[1].hold("t"):
        pass


async def test_async_runs_wait_for_each_other(pair: list[ThreadLocks]) -> None:
    async with pair[0].ahold("t"):
        with pytest.raises(ThreadBusyError):
            async with pair[1].ahold("t"):
                pass


def test_renewing_goes_on_after_a_failure(pair: list[ThreadLocks], monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = iter([False, False, True])
    monkeypatch.setattr(pair[0]._stop, "wait", lambda _: next(rounds))
    pair[0]._held["t"] = _Lease("x", 0.0)
    pair[0]._database.execute("DROP TABLE thread_locks")

    pair[0]._renew()

    assert next(rounds, None) is None
