"""Processes are killed in the middle of turns: `benchmarks/crash.py`, in all six pairs of API and durability."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import everthread
from attack.conftest import AttackRow
from attack.scale import SCALE, tries
from attack.talk import DURABILITIES

pytestmark = pytest.mark.slow

SOURCE = {**os.environ, "PYTHONPATH": str(Path(everthread.__file__).parents[1])}
CRASH = Path(__file__).parents[2] / "benchmarks" / "crash.py"


APIS = ("sync", "async")


# The short form plays all pairs in one process, which takes seconds to begin.
@pytest.mark.parametrize(
    "durabilities", [DURABILITIES] if SCALE <= 1 else [(one,) for one in DURABILITIES], ids="-".join
)
@pytest.mark.parametrize("apis", [APIS] if SCALE <= 1 else [(one,) for one in APIS], ids="-".join)
def test_a_kill_loses_and_doubles_nothing(
    apis: tuple[str, ...], durabilities: tuple[str, ...], tmp_path: Path, attack_row: AttackRow
) -> None:
    each = tries(3, 100)
    kills = each * len(durabilities)
    short = ["--short", "--begin", "retry", "resume"] if each < 20 else []
    command = [sys.executable, str(CRASH), "--api", *apis, "--durability", *durabilities, "--kills", str(kills), *short]
    files = ["--json", f"{tmp_path}/r.json", "--folder", str(tmp_path)]
    # A process of its own: it forks, which a test session with its threads must not.
    done = subprocess.run([*command, *files], capture_output=True, text=True, timeout=3_000, env=SOURCE, check=False)
    assert (tmp_path / "r.json").exists(), done.stderr
    found = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))

    assert found.pop("seconds") > 0
    for name, trial in found.items():
        attack_row(f"kills: {name.rpartition(', ')[0] or name}", trial["kills"], len(trial["faults"]))
    assert {name: trial["faults"] for name, trial in found.items()} == {name: [] for name in found}
    for api in apis:
        assert sum(trial["kills"] for name, trial in found.items() if name.startswith(api)) == kills
