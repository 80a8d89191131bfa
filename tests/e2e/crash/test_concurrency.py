"""The short version of `benchmarks/concurrency.py`; that of `benchmarks/crash.py` is in `tests/attack`."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


def results(script: str, folder: Path, *arguments: str) -> dict[str, Any]:
    """Run a script in a process of its own: it forks, which a test session with its threads must not."""
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / script), *arguments, "--json", f"{folder}/r.json", "--folder", str(folder)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    figures: dict[str, Any] = json.loads((folder / "r.json").read_text(encoding="utf-8"))
    return figures


def test_processes_and_tasks_that_meet_keep_every_message(tmp_path: Path) -> None:
    sizes = ("--turns", "20", "--threads", "3", "--holders", "1", "--stopped-seconds", "1.5")

    found = results("concurrency.py", tmp_path, *sizes)

    assert {name: trial["faults"] for name, trial in found.items()} == {name: [] for name in found}
    assert [trial["messages"] for trial in found.values()] == [2 * 20 * 2, 2 * 3 * 2 * 2, 8 * 10 * 2, 2, 4]
