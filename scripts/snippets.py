"""Check the types of the Python snippets of README.md, each one a program of its own.

python scripts/snippets.py [FILE …]      # default: README.md
"""

import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def snippets(markdown: str) -> dict[int, str]:
    """Return the Python blocks by the line at which each one begins."""
    return {markdown[: block.start(1)].count("\n") + 1: block[1] for block in _BLOCK.finditer(markdown)}


def main(arguments: Sequence[str]) -> int:
    """Let mypy check every snippet; the names of the files say where a snippet is."""
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for path in map(Path, arguments):
            for line, code in snippets(path.read_text(encoding="utf-8")).items():
                file = Path(folder, f"{path.stem}_line_{line}.py".replace("-", "_"))
                file.write_text(code, encoding="utf-8")
                files.append(str(file))
        if not files:
            print("there is no Python snippet", file=sys.stderr)
            return 1
        command = [sys.executable, "-m", "mypy", "--strict", "--config-file", str(ROOT / "pyproject.toml"), *files]
        return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
