"""Write `constraints.txt`: the exact versions that the core and the extras `dev` and `studio` resolve to here.

Run it with the oldest supported Python, `make pin PYTHON=python3.11`: what fits there fits on newer ones.
"""

import os
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXTRAS = ("dev", "studio")
HEADER = """\
# Exact versions of everything that the core and the extras `dev` and `studio` install.
# Made by `make pin`; do not edit.
"""


def requirements() -> list[str]:
    """Return what pyproject.toml asks for, without Everthread itself."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    return [*project["dependencies"], *(wanted for extra in EXTRAS for wanted in extras[extra])]


def resolved(wanted: list[str]) -> list[str]:
    """Install into a fresh environment and return `name==version` of all that came with it."""
    with tempfile.TemporaryDirectory(prefix="everthread-pin-") as folder:
        venv.create(folder, with_pip=True)
        python = str(Path(folder, "bin", "python"))
        # A constraint set for the shell would pin to what we are here to replace.
        environment = {name: value for name, value in os.environ.items() if name != "PIP_CONSTRAINT"}
        pip = [python, "-m", "pip", "--disable-pip-version-check"]
        subprocess.run([*pip, "install", "-qq", "--upgrade", *wanted], check=True, env=environment)
        frozen = subprocess.run([*pip, "freeze"], check=True, env=environment, capture_output=True, text=True)
    return frozen.stdout.splitlines()


def main() -> int:
    """Write the file; refuse a line that is not a plain version, such as one with a path or a URL."""
    lines = resolved(requirements())
    odd = [line for line in lines if "==" not in line or "/" in line]
    if odd:
        print(f"cannot pin {odd[0]!r}: constraints.txt takes only `name==version`", file=sys.stderr)
        return 1
    target = ROOT / "constraints.txt"
    target.write_text(HEADER + "\n".join(sorted(lines, key=str.lower)) + "\n", encoding="utf-8")
    print(f"constraints.txt pins {len(lines)} packages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
