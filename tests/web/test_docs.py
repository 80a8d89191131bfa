"""The examples of docs/serve.md run as written, one behind the other."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from everthread.cli import main
from web_process import start_worker

PAGE = Path(__file__).parents[2] / "docs" / "serve.md"


@pytest.mark.slow
def test_the_examples_of_the_page_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first, *blocks = re.findall(r"```bash\n(.*?)```", PAGE.read_text("utf-8"), flags=re.DOTALL)
    monkeypatch.chdir(tmp_path)
    assert main(["serve-key", "ada", "--api-keys", "keys.txt"]) == 0
    key = capsys.readouterr().out.strip()
    assert "everthread serve-key ada --api-keys keys.txt" in first

    with start_worker(tmp_path, "--api-keys", "keys.txt", "--model", "offline") as worker:
        script = "set -euo pipefail\n" + "\n".join(blocks)
        environment = {"KEY": key, "EVERTHREAD": worker.url, "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
        done = subprocess.run(
            ["bash", "-c", script], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=60
        )

    assert (done.returncode, done.stderr) == (0, "")
    assert "vegetarian" in done.stdout
    assert "event: done" in done.stdout
    assert done.stdout.strip().endswith("True")
