"""The examples run as they are, without a key."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"

SAYS = {
    "create_agent_app.py": ("in a window of 6,000", "the rule is in the last one: True"),
    "store_alone.py": (
        "'zurich': [('n2', 'Moved from Zürich to Lisbon.')]",
        "users:  ['ada', 'grace']",
        "async:  ['Allergic",
    ),
    "claude_caching.py": ("tokens, 0% from the cache", "turn 5: 1,4", "89% from the cache"),
    "own_graph.py": ("asked: Order a boat?", "ordered: ['a boat']"),
    "fastapi_service.py": ("ann on a-1: 200", "bob on b-1: 200", "bob on a-1: 404"),
}
"""What each example has to print."""


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("*.py")))
def test_an_example_runs(name: str, tmp_path: Path) -> None:
    environment = {key: value for key, value in os.environ.items() if not key.endswith("_API_KEY")}

    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert all(words in done.stdout for words in SAYS[name])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "package"), [("claude_caching", "langchain_anthropic"), ("fastapi_service", "fastapi")]
)
def test_an_example_says_which_package_it_needs(name: str, package: str, tmp_path: Path) -> None:
    (tmp_path / f"{package}.py").write_text(f"raise ModuleNotFoundError('gone', name={package!r})", encoding="utf-8")
    code = f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(EXAMPLES)!r}]; import {name}"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)

    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith(f"{package!r} is not installed: ")
    assert "pip install" in done.stderr
