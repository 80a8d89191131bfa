"""Workers on Postgres are killed, cut off and refused: `benchmarks/crash_postgres.py`, a row for each trial."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import everthread
import postgres_server
from attack.conftest import AttackRow
from attack.scale import SCALE, tries

pytestmark = [pytest.mark.slow, pytest.mark.postgres]

SOURCE = {**os.environ, "PYTHONPATH": str(Path(everthread.__file__).parents[1])}
CRASH = Path(__file__).parents[2] / "benchmarks" / "crash_postgres.py"


TRIALS = ("kill", "consolidation", "cut", "restart", "exhausted", "migrate")


@pytest.mark.skipif(postgres_server.binaries() is None, reason=postgres_server.MISSING)
@pytest.mark.parametrize("trials", [TRIALS] if SCALE <= 1 else [(one,) for one in TRIALS], ids="-".join)
def test_a_fault_on_postgres_loses_and_doubles_nothing(
    trials: tuple[str, ...], tmp_path: Path, attack_row: AttackRow
) -> None:
    number, file = tries(1, 50), tmp_path / "r.json"
    command = [sys.executable, str(CRASH), "--tries", str(number), "--json", str(file), "--trial", *trials]
    # A process of its own: it forks, which a test session with its threads must not.
    done = subprocess.run(command, capture_output=True, text=True, timeout=3_000, env=SOURCE, check=False)
    assert file.exists(), done.stderr
    outcomes = json.loads(file.read_text(encoding="utf-8"))

    for trial, outcome in outcomes.items():
        attack_row(f"postgres: {trial}", outcome["tries"], len(outcome["faults"]))
    assert {trial: outcome["faults"] for trial, outcome in outcomes.items()} == {trial: [] for trial in trials}
    assert min(outcome["tries"] for outcome in outcomes.values()) >= number
