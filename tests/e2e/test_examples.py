"""The examples run as they are, without a key."""

import os
import runpy
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
def test_an_example_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [name])
    for key in [key for key in os.environ if key.endswith("_API_KEY")]:
        monkeypatch.delenv(key)

    runpy.run_path(str(EXAMPLES / name), run_name="__main__")

    printed = capsys.readouterr()
    assert printed.err == ""
    assert all(words in printed.out for words in SAYS[name])


@pytest.mark.parametrize(
    ("name", "package"), [("claude_caching", "langchain_anthropic"), ("fastapi_service", "fastapi")]
)
def test_an_example_says_which_package_it_needs(name: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)  # as if it were not installed

    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(EXAMPLES / f"{name}.py"))

    told = str(ended.value.code)
    assert told.startswith(f"{package!r} is not installed: ")
    assert "pip install" in told
    assert "\n" not in told
