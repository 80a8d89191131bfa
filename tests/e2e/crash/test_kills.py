"""The short version of `benchmarks/crash.py`: kills, processes that meet on one thread, a holder that dies."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "crash.py"


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("crash")
    sizes = ["--kills", "12", "--turns", "10", "--threads", "3", "--short", "--begin", "retry", "resume"]
    # A process of its own: it forks, which a test session with its threads must not.
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *sizes, "--json", str(folder / "found.json"), "--folder", str(folder)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    told: dict[str, Any] = json.loads((folder / "found.json").read_text(encoding="utf-8"))
    return told


@pytest.mark.parametrize("where", ["before a write", "at any moment"])
def test_a_kill_loses_and_doubles_nothing(found: dict[str, Any], where: str) -> None:
    assert found[where]["faults"] == []
    assert found[where]["kills"] == 6


def test_two_processes_on_one_thread_keep_every_message_in_a_serial_order(found: dict[str, Any]) -> None:
    assert found["one thread"]["faults"] == []
    assert found["one thread"]["messages"] == 2 * 2 * 10


def test_two_processes_on_the_same_threads_have_no_errors(found: dict[str, Any]) -> None:
    assert found["many threads"]["faults"] == []
    assert found["many threads"]["messages"] == 2 * 2 * 3


def test_a_process_that_waits_goes_on_when_the_holder_is_killed(found: dict[str, Any]) -> None:
    assert found["holder killed"]["faults"] == []


def test_an_erasure_that_is_killed_is_finished_by_the_next_one(found: dict[str, Any]) -> None:
    assert found["while erasing"]["faults"] == []
    assert found["while erasing"]["kills"] == 2


def test_a_process_that_stood_still_does_not_hide_what_was_said_meanwhile(found: dict[str, Any]) -> None:
    assert found["process stopped"]["faults"] == []
