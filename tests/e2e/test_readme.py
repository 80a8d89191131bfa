"""The README's lines run as written."""

import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"


def blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)


def run(code: str, folder: Path) -> str:
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_first_lines_of_python_run_and_a_second_process_continues_the_thread(tmp_path: Path) -> None:
    first = run(blocks()[0], tmp_path)
    again = run(blocks()[0].replace("Remember that I am vegetarian.", "What do you know about me?"), tmp_path)

    assert "vegetarian" in first
    assert "vegetarian" in again
    assert (tmp_path / "everthread.db").exists()


def test_the_example_of_an_own_agent_runs(tmp_path: Path) -> None:
    own_tool = "from langchain_core.tools import tool\n@tool\ndef my_tool() -> str:\n    'Do it.'\n    return 'done'\n"

    run(own_tool + blocks()[1], tmp_path)
