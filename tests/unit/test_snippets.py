"""The check of the snippets in Markdown finds them all."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "scripts"))

from snippets import snippets  # noqa: E402 - the folder of scripts is no package


def test_python_blocks_are_found_by_the_line_they_begin_at() -> None:
    markdown = "# Title\n\n```bash\nls\n```\n\n```python\nx = 1\n```\ntext\n```python\ny = 2\n```\n"

    assert snippets(markdown) == {8: "x = 1\n", 12: "y = 2\n"}


def test_the_readme_has_snippets_that_compile() -> None:
    for line, code in snippets((ROOT / "README.md").read_text(encoding="utf-8")).items():
        compile(code, f"README.md:{line}", "exec")
