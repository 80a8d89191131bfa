"""The table itself: an attack that fails, or breaks off, is a red row and the exit code 1."""

import os
import re
import subprocess
import sys
from pathlib import Path

TESTS = """
def test_held(attack_row):
    attack_row("held", 1000, 0)

def test_held_too(attack_row):
    attack_row("held", 234, 0)

def test_counted_only(attack_row):
    attack_row("not held", 10, 3)

def test_broke_off(attack_row):
    raise OSError("no disk")
"""

RED, GREEN = "\x1b[31m", "\x1b[32m"


def table(folder: Path, *arguments: str) -> tuple[int, dict[str, list[str]]]:
    """Run the tests; return the exit code and the rows, by attack, as colour, tries and failures."""
    (folder / "conftest.py").write_text(Path(__file__).with_name("conftest.py").read_text(encoding="utf-8"))
    (folder / "test_attacks.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-p", "xdist", "-p", "no:cacheprovider", "--color=yes", *arguments]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        [*command, str(folder)], cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    found = re.findall(r"^(\x1b\[3\dm)(.+?)  +([\d,]+)  +(\d+)\x1b\[0m$", done.stdout, re.MULTILINE)
    return done.returncode, {attack: [colour, *counts] for colour, attack, *counts in found}


def test_rows_are_added_up_and_a_failure_that_was_only_counted_is_red(tmp_path: Path) -> None:
    code, rows = table(tmp_path, "-n2", "-k", "held or counted")

    assert (code, rows) == (1, {"held": [GREEN, "1,234", "0"], "not held": [RED, "10", "3"]})


def test_a_test_that_breaks_off_is_a_red_row(tmp_path: Path) -> None:
    assert table(tmp_path, "-k", "broke") == (1, {"test_broke_off": [RED, "1", "1"]})
