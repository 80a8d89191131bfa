"""The README's lines run as written."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"


def blocks(page: Path = README) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)


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
    own = blocks()[1] + "from everthread import build_graph\nprint(build_graph(shop, model='offline').name)\n"

    assert run(own, tmp_path).strip() == "shop"


def test_the_example_of_a_transcript_recalls_what_left_the_prompt(tmp_path: Path) -> None:
    example = next(one for one in blocks(README.parent / "docs" / "parts.md") if "transcript.recall" in one)

    assert "user: My locker code is 4711." in run(example, tmp_path)


def test_the_agent_of_the_tutorial_is_loaded_without_its_conversation(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(blocks(README.parent / "docs" / "tutorial.md")[0], encoding="utf-8")

    assert run("from shop import shop\nprint(shop.name)\n", tmp_path) == "shop\n"


def test_every_link_of_readme_and_docs_leads_somewhere() -> None:
    pages = [README, *README.parent.glob("docs/*.md"), README.parent / "CONTRIBUTING.md"]
    links = [(page, link) for page in pages for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text("utf-8"))]

    assert [(page.name, link) for page, link in links if ":" not in link and not (page.parent / link).exists()] == []


def test_every_extra_is_in_the_reference() -> None:
    project = tomllib.loads((README.parent / "pyproject.toml").read_text("utf-8"))["project"]
    _, _, page = (README.parent / "docs" / "reference.md").read_text("utf-8").partition("## Extras")

    named = re.findall(r"^\| `(\w+)` \|", page.partition("\n## ")[0], flags=re.MULTILINE)
    assert sorted(named) == sorted(project["optional-dependencies"])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["how-to", "tutorial", "stores", "parts", "context"])
def test_the_code_of_the_docs_runs(name: str, tmp_path: Path) -> None:
    for code in blocks(README.parent / "docs" / f"{name}.md"):
        run(code, tmp_path)
