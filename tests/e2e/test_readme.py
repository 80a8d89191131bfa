"""The README's lines run as written."""

import re
import runpy
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from everthread import errors
from everthread.cli.app import COMMANDS

README = Path(__file__).parents[2] / "README.md"


def blocks(page: Path = README) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[[str], str]:
    """Run code as a script in an empty folder, and return what it printed."""
    monkeypatch.chdir(tmp_path)

    def run_script(code: str) -> str:
        capsys.readouterr()
        script = tmp_path / "script.py"
        script.write_text(code, encoding="utf-8")
        runpy.run_path(str(script), run_name="__main__")
        return capsys.readouterr().out

    return run_script


@pytest.mark.slow
def test_the_first_lines_of_python_run_and_a_second_process_continues_the_thread(
    tmp_path: Path, run: Callable[[str], str]
) -> None:
    first = run(blocks()[0])
    question = blocks()[0].replace("Remember that I am vegetarian.", "What do you know about me?")
    again = subprocess.run(
        [sys.executable, "-c", question], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout

    assert "vegetarian" in first
    assert "vegetarian" in again
    assert (tmp_path / "everthread.db").exists()


def test_the_example_of_an_own_agent_runs(run: Callable[[str], str]) -> None:
    own = blocks()[1] + "from everthread import build_graph\nprint(build_graph(shop, model='offline').name)\n"

    assert run(own).strip() == "shop"


def test_the_example_of_a_transcript_recalls_what_left_the_prompt(run: Callable[[str], str]) -> None:
    example = next(one for one in blocks(README.parent / "docs" / "parts.md") if "transcript.recall" in one)

    assert "user: My locker code is 4711." in run(example)


def test_the_agent_of_the_tutorial_is_loaded_without_its_conversation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "shop.py").write_text(blocks(README.parent / "docs" / "tutorial.md")[0], encoding="utf-8")

    loaded = runpy.run_path(str(tmp_path / "shop.py"), run_name="shop")

    assert loaded["shop"].name == "shop"
    assert capsys.readouterr().out == ""


def test_every_link_of_readme_and_docs_leads_somewhere() -> None:
    pages = [README, *README.parent.glob("docs/*.md"), README.parent / "CONTRIBUTING.md"]
    links = [(page, link) for page in pages for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text("utf-8"))]

    assert [(page.name, link) for page, link in links if ":" not in link and not (page.parent / link).exists()] == []


def test_every_extra_is_in_the_reference() -> None:
    project = tomllib.loads((README.parent / "pyproject.toml").read_text("utf-8"))["project"]
    _, _, page = (README.parent / "docs" / "reference.md").read_text("utf-8").partition("## Extras")

    named = re.findall(r"^\| `(\w+)` \|", page.partition("\n## ")[0], flags=re.MULTILINE)
    assert sorted(named) == sorted(project["optional-dependencies"])


def test_every_command_is_in_the_reference() -> None:
    _, _, page = (README.parent / "docs" / "reference.md").read_text("utf-8").partition("## Commands")
    cells = re.findall(r"^\| (.*?) \|", page.partition("\n## ")[0], flags=re.MULTILINE)

    named = re.findall(r"`([\w-]+)[^`]*`", "\n".join(cells))
    assert set(COMMANDS) - set(named) == set()


def test_every_error_is_in_the_reference() -> None:
    _, _, page = (README.parent / "docs" / "reference.md").read_text("utf-8").partition("## Errors")
    named = re.findall(r"^\| `(\w+)` \|", page, flags=re.MULTILINE)

    assert sorted(named) == sorted(name for name, value in vars(errors).items() if isinstance(value, type))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["how-to", "tutorial", "stores", "parts", "context"])
def test_the_code_of_the_docs_runs(name: str, run: Callable[[str], str]) -> None:
    for code in blocks(README.parent / "docs" / f"{name}.md"):
        run(code)
