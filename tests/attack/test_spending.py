"""What was spent is counted right while processes are killed, threads forked and providers fail; limits hold."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import everthread
from attack.conftest import AttackRow
from attack.scale import tries

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
SOURCE = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(everthread.__file__).parents[1]), str(HERE.parent)])}


def test_counters_are_what_the_provider_answered_and_limits_hold(
    database_url: str, tmp_path: Path, attack_row: AttackRow
) -> None:
    count, kills = tries(30, 10_000), tries(2, 100)
    options = ["--database", database_url, "--folder", str(tmp_path), "--calls", str(count), "--kills", str(kills)]
    # A process of its own: it forks, which a test session with its threads must not.
    done = subprocess.run(
        [sys.executable, str(HERE / "spending.py"), *options],
        capture_output=True,
        text=True,
        timeout=3_000,
        env=SOURCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    found = json.loads(done.stdout)

    attack_row("spending: calls", found["calls"], len(found["faults"]))
    refusals = [fault for fault in found["faults"] if "after a refusal" in fault]
    attack_row("spending: refusals", found["refusals"], len(refusals))
    attack_row("spending: limits", found["asked"], int(found["passed_by"] > 0))
    assert found["faults"] == []
    assert found["calls"] >= count
    assert found["refusals"] > 0
    assert found["kills"] == kills
